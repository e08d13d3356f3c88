// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/transaction.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/iteration_end.h"
#include "control/dispatcher/messages/peer_messages.h"
#include "control/dispatcher/messages/refusals.h"
#include "control/dispatcher/monitoring/counters.h"
#include "control/observe/fail_point.h"
#include "control/policy/replay_start.h"
#include "control/policy/snapshots.h"
#include "control/protocol/invariant.h"
#include "control/state/format.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

constexpr size_t kMaxAuditText = 4096;  // bytes of a field of an event
constexpr absl::Duration kBetweenRefusals = absl::Seconds(1);

// Called when memory runs out in the middle of an event: half an event must not be journaled.
[[noreturn]] void AbortWithoutMemory() {
  std::fputs("out of memory while the dispatcher handled an event\n", stderr);
  std::abort();
}

}  // namespace

Transaction::~Transaction() {
  if (std::uncaught_exceptions() > exceptions_ && !changes_.empty()) AbortWithoutMemory();
  membership_.Send(*this);
  Append();
  TakeSnapshot();
  for (auto& send : pending_replies_) core_.replies_.Add(shared_.sequence, std::move(send));
  lock_.unlock();
  if (!unwritable_.ok()) core_.OnDurable(unwritable_);
  core_.Deliver();
  for (Event& event : log_) {
    CountEvent(event.name);
    shared_.options.events->Write(std::move(event));
  }
  if (--core_.transactions_.count == 0) ++core_.transactions_.ends;
}

// Returns whether the change is valid without the rest of its transaction, because it concerns only
// the elements of one reader. If the journal ends after this change, the rest is decided again.
static bool StandsAlone(const Change& change) {
  const auto* altered = std::get_if<IterationAltered>(&change);
  return altered != nullptr &&
         (std::holds_alternative<protocol::ReaderCommitted>(altered->change) ||
          std::holds_alternative<protocol::ReaderEnded>(altered->change));
}

absl::StatusOr<std::vector<std::string>> Transaction::Records() const {
  const auto encode = [&](size_t begin, size_t end) {
    return EncodeChanges(absl::MakeSpan(changes_).subspan(begin, end - begin), shared_.state,
                         shared_.options.record_bytes);
  };
  absl::StatusOr<std::string> whole = encode(0, changes_.size());
  if (whole.ok()) return std::vector<std::string>{*std::move(whole)};
  for (const Change& change : changes_)
    if (!std::holds_alternative<IterationAltered>(change)) return whole.status();
  std::vector<std::string> records;
  size_t begin = 0;
  for (size_t end = 1; end <= changes_.size(); ++end) {
    if (end < changes_.size() && !StandsAlone(changes_[end - 1]) && !StandsAlone(changes_[end]))
      continue;
    ASSIGN_OR_RETURN(records.emplace_back(), encode(begin, end));
    begin = end;
  }
  return records;
}

void Transaction::Append() {
  core_.mu_.AssertHeld();
  if ((changes_.empty() && !appends_anyway_) || !core_.replies_.failed().ok()) return;
  absl::StatusOr<std::vector<std::string>> records = Records();
  if (!records.ok()) {
    ++shared_.sequence;
    unwritable_ = records.status();
    core_.replies_.Fail(unwritable_);
    return;
  }
  core_.appending_ = CurrentThread();
  for (std::string& record : *records) {
    CountRecord(record.size());
    ++shared_.since_snapshot.records;
    shared_.since_snapshot.bytes += record.size();
    core_.journal_->Append(++shared_.sequence, std::move(record));
  }
  core_.appending_ = ThreadId();
  FailPoint("append_before_answer");
}

void Transaction::TakeSnapshot() {
  core_.mu_.AssertHeld();
  if (!core_.replies_.failed().ok()) return;
  if (!shared_.snapshots.under_way()) {
    if (!SnapshotIsDue(shared_.since_snapshot, shared_.options.per_snapshot)) return;
    shared_.since_snapshot = {};
    shared_.snapshots.BeginSnapshot(shared_.state, shared_.sequence);
  }
  absl::StatusOr<std::optional<SnapshotTaker::Taken>> taken = shared_.snapshots.Continue(
      shared_.state, shared_.sequence, shared_.options.snapshot_bytes_at_once);
  if (!taken.ok()) {  // the log continues without a snapshot
    Log("snapshot_refused", {{"reason", std::string(taken.status().message())}});
  } else if (taken->has_value()) {
    core_.journal_->Snapshot((*taken)->sequence, std::move((*taken)->changes));
  }
}

void Transaction::Guard(absl::FunctionRef<void()> body, absl::Status* reason) {
  const IterationId around = std::exchange(at_work_, IterationId());
  std::string what;
  try {
    const protocol::InvariantsThrow throws;
    body();
    at_work_ = around;
    return;
  } catch (const std::logic_error& broken) {  // includes std::out_of_range
    what = broken.what();
  } catch (const std::bad_alloc&) {
    AbortWithoutMemory();
  }
  const IterationId id = std::exchange(at_work_, around);
  const IterationState* iteration = id ? shared_.state.FindIteration(id) : nullptr;
  if (iteration == nullptr) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
  }
  Log("invariant_broken", {{"iteration", absl::StrCat(id.value())}, {"what", what}});
  const absl::Status why = absl::InternalError(
      absl::StrCat("the dispatcher found this job in an impossible state (", what,
                   ") and ended it; other jobs continue. Please report this, with the journal's "
                   "last records (`penstock journal print`)"));
  shared_.contexts.erase(id);
  membership_.Forget(id);
  if (shared_.state.GoesOn(*iteration)) EndOf(*iteration).Fail(why);
  if (reason != nullptr) *reason = why;
}

// Returns the number of passes of the iteration's providers that have begun and are not over.
static size_t NumPasses(const State& state, IterationId id) {
  const IterationState* iteration = id ? state.FindIteration(id) : nullptr;
  return iteration == nullptr ? 0 : iteration->handed_out.size();
}

// Counts a change where placing depends on it (partition_placer.h). `passes`: NumPasses() before
// the change.
static void CountForPlacing(SharedState& shared, const Change& change, size_t passes) {
  if (const auto* registered = std::get_if<WorkerRegistered>(&change)) {
    shared.worker_changes.Add(registered->worker.id);
  } else if (const auto* draining = std::get_if<WorkerDraining>(&change)) {
    shared.worker_changes.Add(draining->worker);
  } else if (const auto* gone = std::get_if<WorkerGone>(&change)) {
    shared.worker_changes.Add(gone->worker);
  } else if (std::holds_alternative<FormatFinalised>(change)) {
    shared.worker_changes.Add(WorkerId());  // then readers may read fewer workers
  }
  const IterationId iteration = IterationOf(change);
  const auto context = shared.contexts.find(iteration);
  if (context == shared.contexts.end()) return;
  if (const auto* altered = std::get_if<IterationAltered>(&change))
    protocol::CountForPlacing(context->second, altered->change);
  // While a pass goes on, its splits only become fewer. When a pass begins or is over, there are
  // more splits to give out.
  if (NumPasses(shared.state, iteration) != passes) ++context->second.placing_changes;
}

// Counts the partitions at work after a change that ends iterations at once.
static void CountWhatEnded(NamespaceRoom& room, const State& state, const Change& applied) {
  if (const auto* failed = std::get_if<IterationFailed>(&applied)) room.Count(failed->iteration);
  if (const auto* cancelled = std::get_if<JobCancelled>(&applied))
    for (const IterationId id : state.IterationsOf(cancelled->job)) room.Count(id);
}

void Transaction::Apply(Change change) {
  core_.mu_.AssertHeld();
  const IterationId iteration = IterationOf(change);
  if (iteration) at_work_ = iteration;
  PENSTOCK_INVARIANT(FormatOf(change) <= shared_.state.format);
  // Allocates first: once a change is applied, it must be appended.
  if (changes_.size() == changes_.capacity()) changes_.reserve(2 * changes_.size() + 1);
  const size_t passes = NumPasses(shared_.state, iteration);
  shared_.snapshots.BeforeChange(shared_.state, change);
  shared_.state.Apply(change);
  CountForPlacing(shared_, change, passes);
  changes_.push_back(std::move(change));
  const Change& applied = changes_.back();
  if (const auto* altered = std::get_if<IterationAltered>(&applied)) {
    shared_.counts.Changed(altered->iteration,
                           shared_.state.iterations.at(altered->iteration).record, altered->change);
    core_.placer_.NoteChange(altered->iteration, altered->change);
  }
  CountWhatEnded(core_.placer_.room(), shared_.state, applied);
}

protocol::IterationContext& Transaction::GetContext(IterationId iteration) {
  at_work_ = iteration;
  auto found = shared_.contexts.find(iteration);
  if (found == shared_.contexts.end()) {
    const protocol::IterationRecord& record = shared_.state.iterations.at(iteration).record;
    found = shared_.contexts
                .emplace(iteration, protocol::MakeIterationContext(record, shared_.options.broken))
                .first;
    shared_.counts.Begin(iteration, record);
  }
  return found->second;
}

// --- Sending ----------------------------------------------------------------------

// Adds the message to those for the peer, which leave together. `batches`: of all peers of a kind.
template <class Peer, class Down>
static void AddTo(Transaction& txn,
                  std::map<const Peer*, std::shared_ptr<MessageBatch<Down>>>& batches,
                  const std::shared_ptr<Peer>& peer, std::shared_ptr<const Down> message) {
  std::shared_ptr<MessageBatch<Down>>& batch = batches[peer.get()];
  if (batch == nullptr) {
    batch = std::make_shared<MessageBatch<Down>>();
    txn.WhenDurableWithSequence(
        [writer = peer->writer, batch](const absl::Status& durable, uint64_t sequence) {
          if (durable.ok()) writer->SendAll(*batch, sequence);
        });
  }
  batch->push_back(std::move(message));
}

void Transaction::Send(const std::shared_ptr<ClientPeer>& peer, ClientDown message) {
  SendShared(peer, std::make_shared<const ClientDown>(std::move(message)));
}

void Transaction::Send(const std::shared_ptr<WorkerPeer>& peer, WorkerDown message) {
  AddTo(*this, to_workers_, peer, std::make_shared<const WorkerDown>(std::move(message)));
}

void Transaction::SendShared(const std::shared_ptr<ClientPeer>& peer,
                             std::shared_ptr<const ClientDown> message) {
  AddTo(*this, to_clients_, peer, std::move(message));
}

void Transaction::Send(IterationId iteration, ClientId client, ClientDown message) {
  auto found = shared_.sessions.find({iteration, client});
  if (found != shared_.sessions.end()) Send(found->second, std::move(message));
}

void Transaction::Send(WorkerId worker, WorkerDown message) {
  auto found = shared_.workers.find(worker);
  if (found != shared_.workers.end()) Send(found->second, std::move(message));
}

void Transaction::SendToSessions(IterationId iteration, const ClientDown& message) {
  for (const auto& peer : shared_.SessionsOf(iteration)) Send(peer, message);
}

void Transaction::Close(const std::shared_ptr<ClientPeer>& peer, const absl::Status& reason) {
  Send(peer, SessionError{reason, shared_.state.lives.back().life});
  WhenDurable([writer = peer->writer, reason](const absl::Status&) { writer->Finish(reason); });
  auto found = shared_.sessions.find({peer->iteration, peer->client});
  if (found != shared_.sessions.end() && found->second == peer) {
    shared_.sessions.erase(found);
    const IterationState* iteration = shared_.state.FindIteration(peer->iteration);
    if (iteration != nullptr && shared_.state.GoesOn(*iteration)) {
      protocol::OnDisconnect(iteration->record, GetContext(iteration->id), peer->client);
    }
  }
  core_.liveness_.OnStreamOver(peer->heartbeats.key, peer->heartbeats.stream);
  peer->iteration = IterationId();
}

void Transaction::Close(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& reason) {
  Send(peer, WorkerRefused{reason, shared_.state.lives.back().life});
  WhenDurable([writer = peer->writer, reason](const absl::Status&) { writer->Finish(reason); });
  auto found = shared_.workers.find(peer->worker);
  if (found != shared_.workers.end() && found->second == peer) shared_.workers.erase(found);
  peer->worker = WorkerId();
}

void Transaction::Log(std::string name, EventFields fields) {
  log_.push_back({std::move(name), std::move(fields)});
}

void Transaction::Audit(std::string name, EventFields fields) {
  for (auto& [key, text] : fields) {
    if (text.size() > kMaxAuditText) text = absl::StrCat(text.substr(0, kMaxAuditText), "...");
  }
  if (caller_.has_value()) fields.push_back({"principal", caller_->name});
  Log(std::move(name), std::move(fields));
}

absl::Status Transaction::AuditRefusal(absl::Status status) {
  if (!absl::IsPermissionDenied(status) && !absl::IsResourceExhausted(status)) return status;
  const absl::Time now = shared_.options.now();
  if (now < shared_.refused + kBetweenRefusals) {
    ++shared_.refused_since;
    CountEvent("refused");
    return status;
  }
  shared_.refused = now;
  EventFields fields = {{"why", std::string(status.message().substr(0, kMaxAuditText))}};
  if (const int64_t others = std::exchange(shared_.refused_since, 0); others > 0)
    fields.push_back({"others", absl::StrCat(others)});
  Audit("refused", std::move(fields));
  return status;
}

// --- The protocol's messages --------------------------------------------------------

struct Transaction::MessageRouter {
  Transaction& txn;
  const IterationState& iteration;

  PlacedPartition Placed(const auto& message) const {
    return PlacedBy(txn.shared_.state, iteration.id, message.partition, message.placement);
  }
  std::string Token() const {
    return txn.shared_.tokens.Of(txn.shared_.state.jobs.at(iteration.job));
  }
  // Returns the stream of this incarnation of the reader; null if there is none.
  std::shared_ptr<ClientPeer> PeerOf(ClientId client, Incarnation incarnation) const {
    auto found = txn.shared_.sessions.find({iteration.id, client});
    if (found == txn.shared_.sessions.end() || found->second->incarnation != incarnation) {
      return nullptr;
    }
    return found->second;
  }
  // Replaces the bookmark if the worker cannot read it.
  void ChooseBookmark(const protocol::Assign& m, Assign& assign) const {
    const auto peer = txn.shared_.workers.find(m.worker);
    if (peer == txn.shared_.workers.end()) return;  // nothing is sent
    const std::optional<protocol::Bookmark> start =
        ReplayStart(iteration, m.partition, *m.bookmark, peer->second->reads);
    assign.bookmark_index = start.has_value() ? start->index : 0;
    assign.bookmark = start.has_value() ? start->bytes : std::string();
    if (assign.bookmark_index == m.bookmark->index) return;
    txn.Log("bookmark_passed_over", {{"iteration", absl::StrCat(iteration.id.value())},
                                     {"partition", absl::StrCat(m.partition.value())},
                                     {"worker", absl::StrCat(absl::Hex(m.worker.value()))},
                                     {"index", absl::StrCat(m.bookmark->index)},
                                     {"begins_at", absl::StrCat(assign.bookmark_index)}});
  }
  void SendToClient(ClientId client, Incarnation incarnation, ClientDown message) const {
    if (auto peer = PeerOf(client, incarnation)) txn.Send(peer, std::move(message));
  }

  void operator()(const protocol::Welcome& m) const {
    const std::shared_ptr<ClientPeer> peer = PeerOf(m.client, m.incarnation);
    if (peer == nullptr) return;
    Welcome welcome = WelcomeOf(txn.shared_.state, iteration, m);
    welcome.token = Token();
    welcome.heartbeat_interval = txn.shared_.options.heartbeat_interval;
    welcome.lease = txn.shared_.options.client_timeout;
    welcome.version = peer->version;
    txn.Send(peer, std::move(welcome));
    txn.membership_.OnWelcome(peer);
  }
  void operator()(const protocol::Refused& m) const {
    if (auto peer = PeerOf(m.client, m.incarnation)) txn.Close(peer, ToStatus(m));
  }
  template <class Payload>
  void operator()(const protocol::ToClient<Payload>& m) const {
    SendToClient(m.client, m.incarnation, static_cast<const Payload&>(m));
  }
  void operator()(const protocol::ToClient<End>& m) const {
    SendToClient(m.client, m.incarnation, End{m.rounds, iteration.record.elements});
  }
  void operator()(const protocol::AllowRows& m) const {
    txn.Send(m.worker, AllowRows{Placed(m), m.rows, m.remainder});
  }
  void operator()(const protocol::Assign& m) const {
    Assign assign = AssignOf(txn.shared_.state, iteration, m);
    assign.token = Token();
    if (m.bookmark.has_value()) ChooseBookmark(m, assign);
    txn.Send(m.worker, std::move(assign));
  }
  void operator()(const protocol::AddReader& m) const {
    txn.Send(m.worker, AddReader{Placed(m), m.reader});
  }
  void operator()(const protocol::RemoveReader& m) const {
    txn.Send(m.worker, RemoveReader{Placed(m), m.client});
  }
  void operator()(const protocol::Unassign& m) const { txn.Send(m.worker, Unassign{Placed(m)}); }
};

// --- What follows from a decision ----------------------------------------------------

void Transaction::Settle(IterationId iteration, protocol::Decision decision,
                         const MarkedBookmark* marks) {
  core_.mu_.AssertHeld();
  Apply(iteration, std::move(decision), marks);
  core_.placer_.OpenAndPlace(*this, iteration);
}

void Transaction::Apply(IterationId id, protocol::Decision decision, const MarkedBookmark* marks) {
  core_.mu_.AssertHeld();
  const IterationState& iteration = shared_.state.iterations.at(id);
  do {
    for (protocol::IterationChange& change : decision.changes) {
      membership_.OnChange(iteration, change);
      const auto* bookmark_added = std::get_if<protocol::BookmarkAdded>(&change);
      const PartitionKey partition{
          id, bookmark_added == nullptr ? PartitionId() : bookmark_added->partition};
      Apply(IterationAltered{id, std::move(change)});
      if (partition.partition && marks != nullptr && !marks->is_empty()) {
        Apply(BookmarkMarked{partition, *marks});
      }
    }
    for (const protocol::Message& message : decision.messages) {
      std::visit(MessageRouter{*this, iteration}, message);
    }
    decision = protocol::Consequences(iteration.record, GetContext(id));
  } while (!decision.empty());
  core_.placer_.room().Count(id);
}

IterationEnd Transaction::EndOf(const IterationState& iteration) {
  core_.mu_.AssertHeld();
  return IterationEnd(
      {*this, shared_, shared_.contexts, core_.sessions_, core_.links_, core_.placer_}, iteration);
}

}  // namespace penstock::control
