// SPDX-License-Identifier: Apache-2.0
// The parts of the session that its user and the dispatcher call.
#include "dataplane/client/session.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "control/observe/fail_point.h"
#include "control/stub/this_process.h"
#include "control/sync/boot_time.h"
#include "control/sync/mutex.h"
#include "control/sync/start_thread.h"
#include "dataplane/client/counters.h"
#include "dataplane/memory/pool.h"
#include "penstock/status.h"

namespace penstock::client {
namespace {

// Nothing signals cancellation, which is a flag: it is checked this often.
constexpr absl::Duration kLookForCancelled = absl::Milliseconds(20);
// How long a session that ends waits for the answer to its goodbye.
constexpr absl::Duration kGoodbyeTimeout = absl::Seconds(2);
// A reader that has not called Next() for this long keeps nothing that others wait for.
constexpr absl::Duration kIdleAfter = absl::Milliseconds(500);
// The credit windows of a coordinated read and of an ordered merge. Other messages limit how far
// their workers may send.
constexpr int64_t kRoundsWindow = 1024;
constexpr int64_t kOrderedWindow = 1 << 15;

// Returns the manager with the elements and bytes that credits may cover.
CreditManager MakeCreditManager(const DistributeOptions& options) {
  constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();
  if (options.order == MergeOrder::kDeterministic) return CreditManager(kOrderedWindow, kNoBound);
  if (options.num_consumers.has_value()) return CreditManager(kRoundsWindow, kNoBound);
  return CreditManager(options.max_outstanding_requests, options.max_outstanding_bytes);
}

}  // namespace

control::PartitionReport ToMessage(protocol::Report report) {
  return {.partition = report.partition,
          .placement = report.placement,
          .delivered = std::move(report.delivered),
          .received = std::move(report.received),
          .handed = std::move(report.handed),
          .returned = std::move(report.returned),
          .whole = report.whole};
}

Session::Session(SessionOptions options, control::DispatcherStub& stub)
    : options_(std::move(options)),
      stub_(stub),
      merge_(options_.distribute.order),
      credits_(MakeCreditManager(options_.distribute)),
      receive_limits_(options_.distribute.max_outstanding_requests,
                      options_.distribute.max_outstanding_bytes) {
  if (options_.state.has_value()) {
    int64_t rounds = 0;
    for (const auto& [partition, delivered] : *options_.state) {
      receivers_.try_emplace(partition, partition, delivered);
      rounds += delivered.size();
    }
    rounds_ = protocol::RoundQueue(rounds);
    committed_indices_ = *options_.state;
  }
  heard_ = options_.heard;
  leaving_ = options_.claims_only;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Begin(SessionOptions options,
                                                        control::DispatcherStub& stub) {
  std::unique_ptr<Session> session(new Session(std::move(options), stub));
  MutexLock lock(session->mu_);  // events may come before stream_ is set
  session->stopping_ = true;     // ends the thread, unless the stream follows
  ASSIGN_OR_RETURN(session->thread_,
                   StartThread("reading from the service", [s = session.get()] { s->Run(); }));
  ASSIGN_OR_RETURN(
      session->stream_,
      stub.KeepClientSession(session.get(), {.timeout = session->options_.distribute.timeout}));
  session->stopping_ = false;
  return session;
}

Session::~Session() {
  {
    Lock lock(mu_);
    for_good_ = true;
    if (MayLeave()) SayGoodbye(lock, kGoodbyeTimeout);
    stopping_ = true;
    WakeAgent();
  }
  if (thread_.joinable()) thread_.join();
  if (stream_ != nullptr) stream_->Stop();  // until then a membership may still add readers
  if (!lost_.empty()) NoteLostConsumers(options_.job.name, 0);
  for (auto& [worker, reader] : readers_) reader->Close();
}

bool Session::Ready() {
  Lock lock(mu_);
  if (end_seen_ || !error_.ok()) return true;
  const protocol::Agreed::Round* round = rounds_.Next();
  return (round != nullptr ? !round->unfilled : merge_.ready()) && LeaseHolds();
}

absl::StatusOr<std::optional<Element>> Session::Next() {
  PendingDeliveries* const pending =
      options_.delivers_later ? PendingDeliveries::Current() : nullptr;
  Lock lock(mu_);
  times_.Called();
  ++calls_;
  if (std::exchange(idle_, false)) WakeAgent();
  unreachable_ = absl::OkStatus();  // from an earlier call
  while (true) {
    if (end_seen_) return std::nullopt;
    if (IsCancelled()) return absl::CancelledError("the iterator was stopped");
    if (!error_.ok()) return error_;
    if (rounds_.Next() != nullptr && LeaseHolds()) {
      absl::StatusOr<std::optional<Element>> element = DeliverRound();
      if (!element.ok() || element->has_value()) return element;
      continue;
    }
    if (merge_.ready() && LeaseHolds()) break;
    if (IsOver()) {
      if (!std::exchange(end_seen_, true)) WakeAgent();
      return std::nullopt;
    }
    if (!blocked_.ok()) return std::exchange(blocked_, absl::OkStatus());
    if (!unreachable_.ok()) return std::exchange(unreachable_, absl::OkStatus());
    if (report_at_once_ && !times_.waiting()) WakeAgent();
    times_.Waits();
    const bool unsaid = coordinated() && news_ && welcomed_;
    if (unsaid && MustSay()) WakeAgent();
    received_.WaitFor(lock, unsaid ? kLongestUnsaid : absl::ToChronoNanoseconds(kLookForCancelled));
  }
  ReceivedElement received = merge_.Pop();
  if (times_.waiting()) times_.Goes(AddressOf(received.from), ProtocolOf(received.from));
  times_.Returns();
  if (pending != nullptr) {
    const Index position = PositionOf(received.identity);
    ReceiverOf(received.identity.partition).OnHanded(position);
    pending->Add({this, received.identity.partition, position});
    ++handed_;
  } else if (!reads_window()) {
    ReceiverOf(received.identity.partition).OnDelivered(PositionOf(received.identity));
  }
  if (ordered()) {
    SendReceiveLimit(received.identity.partition);
  } else {
    credits_.OnReleased(received.from, static_cast<int64_t>(received.bytes));
  }
  news_ = true;
  // A shared job closes when everything is delivered, and the last element here may be the last of
  // all.
  if (report_at_once_ && !(shared() && merge_.ready())) WakeAgent();
  const protocol::Positions positions = merge_.ordered().queue().positions();
  const ToGrants grants = TakeGrants();
  // These credits may have gone to a worker with nothing to send.
  if (!grants.empty() && !recalls_soon_ && credits_.Starving()) WakeAgent();
  lock.unlock();
  Apply(grants);
  if (!received.error.ok()) return received.error;
  if (options_.distribute.num_consumers.has_value()) {
    const int64_t step = positions.StepOf(received.identity.partition, received.identity.index);
    return AtStep(step, std::move(received));
  }
  return CopyOutOfFrame(DefaultPool(), std::move(received.element));
}

absl::Status Session::OnDelivered(absl::Span<const PendingDelivery> deliveries) {
  Lock lock(mu_);
  while (!LeaseHolds()) {
    if (IsCancelled()) return absl::CancelledError("the iterator was stopped");
    if (!error_.ok()) return error_;
    received_.WaitFor(lock, absl::ToChronoNanoseconds(kLookForCancelled));
  }
  if (leave_sent_) return absl::CancelledError("the iterator was stopped");
  for (const PendingDelivery& delivery : deliveries)
    ReceiverOf(delivery.partition).OnDelivered(delivery.position);
  handed_ -= static_cast<int64_t>(deliveries.size());
  news_ = true;
  if (end_ && handed_ == 0) WakeAgent();  // it may leave now
  return absl::OkStatus();
}

std::string Session::AddressOf(WorkerId worker) const {
  const auto reader = readers_.find(worker);
  return reader == readers_.end() ? "" : reader->second->worker().address;
}

std::string Session::ProtocolOf(WorkerId worker) const {
  const auto reader = readers_.find(worker);
  return reader == readers_.end() ? "" : reader->second->progress().selection.offer.protocol;
}

IndicesByPartition Session::delivered() const {
  MutexLock lock(mu_);
  return DeliveredLocked();
}

control::Heard Session::heard() const {
  MutexLock lock(mu_);
  return heard_;
}

IndicesByPartition Session::DeliveredLocked() const {
  IndicesByPartition delivered;
  for (const auto& [partition, receiver] : receivers_) {
    if (!receiver.delivered().empty()) delivered.emplace(partition, receiver.delivered());
  }
  return delivered;
}

bool Session::ended() const {
  MutexLock lock(mu_);
  return (end_seen_ && handed_ == 0) || options_.claims_only;
}

int64_t Session::others_took_all() const {
  MutexLock lock(mu_);
  return end_seen_ && handed_ == 0 && DeliveredLocked().empty() ? elements_in_all_ : 0;
}

absl::StatusOr<bool> Session::Commit(const control::Commit& commit) {
  FailPoint("save_before_commit");
  MutexLock one_at_a_time(committing_mu_);
  Lock lock(mu_);
  if (commit.number <= committed_) return true;  // this or a later state was committed
  if (left_ || leave_sent_ || (over_ && error_.ok() && !Owes())) return false;
  committing_ = commit;
  absl::Cleanup not_committing = [this]() REQUIRES(mu_) { committing_.reset(); };
  if (welcomed_) stream_->Send(commit);
  const absl::Time deadline = BootTime() + options_.distribute.timeout;
  while (committed_ < commit.number) {
    if (!error_.ok()) return error_;
    if (IsCancelled()) return absl::CancelledError("the iterator was stopped");
    if (over_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the session with the dispatcher at ", stub_.address(), " is over (", given_up_.message(),
          "); Restore() this state in a new iterator and commit it there"));
    }
    if (BootTime() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("the dispatcher at ", stub_.address(), " did not confirm a commit within ",
                       absl::FormatDuration(options_.distribute.timeout)));
    }
    changed_.wait_for(lock, absl::ToChronoMilliseconds(kLookForCancelled));
  }
  for (const control::Commit::OfRepetition& repetition : commit.repetitions) {
    if (repetition.repetition != options_.repetition) continue;
    for (const control::PartitionIndices& committed : repetition.committed) {
      committed_indices_[committed.partition] = committed.indices;
    }
  }
  return true;
}

void Session::Leave(absl::Duration bound) {
  Lock lock(mu_);
  if (MayLeave()) SayGoodbye(lock, bound);
}

void Session::SayGoodbye(Lock& lock, absl::Duration bound) {
  leaving_ = true;
  WakeAgent();  // without a stream, the goodbye goes over the next one
  changed_.wait_for(lock, absl::ToChronoMilliseconds(std::min(bound, absl::Minutes(10))),
                    [&]() REQUIRES(mu_) { return left_ || over_ || !error_.ok(); });
}

void Session::Abandon() {
  MutexLock lock(mu_);
  abandoned_ = true;
}

// --- The stream's events -------------------------------------------------------

control::ClientUp Session::Hello() {
  MutexLock lock(mu_);
  DoubtEnded();
  welcomed_ = false;
  leave_sent_ = false;
  unanswered_.clear();
  hello_sent_ = BootTime();
  control::ClientHello hello{.job = options_.job.job,
                             .repetition = options_.repetition,
                             .client = options_.client,
                             .incarnation = options_.incarnation,
                             .state = std::nullopt,
                             .process = control::ThisProcess(),
                             .token = options_.job.token,
                             .heard = heard_};
  if (options_.state.has_value()) {
    hello.state = ToMessage(*options_.state);
    for (const auto& [partition, delivered] : *options_.state) hello.round += delivered.size();
  }
  hello.consumer = options_.distribute.consumer_index.value_or(-1);
  return hello;
}

void Session::OnMessage(control::ClientDown message, uint64_t sequence) {
  std::vector<ReceivedElement> given_back;
  MutexLock lock(mu_);
  heard_.sequence = std::max(heard_.sequence, sequence);
  std::visit([this](const auto& its) REQUIRES(mu_) { Handle(its); }, message);
  given_back.swap(given_back_);
  WakeWaiting();
}

void Session::Handle(const control::Welcome& welcome) {
  if (welcome.token != options_.job.token || welcome.life.term < heard_.life.term) {
    return Fail(absl::FailedPreconditionError(absl::StrCat(
        "the dispatcher at ", stub_.address(), " welcomed this reader of ",
        ToString(options_.job.job), " to another job, or is an earlier one than it has heard")));
  }
  heard_.life = welcome.life;
  welcome_ = welcome;
  welcomed_ = true;
  renewed_ = hello_sent_;
  next_heartbeat_ = absl::InfinitePast();
  for (const control::Fence& placed : welcome.placements) {
    ReceiverOf(placed.partition).OnWelcome(placed.placement);
    partitions_ = std::max(partitions_, placed.partition.value());
  }
  for (auto& [partition, receiver] : receivers_) receiver.OnConnected();
  round_errors_said_ = 0;
  SendReport();
  if (committing_.has_value()) stream_->Send(*committing_);
  if (ordered()) OpenOrdered(welcome);
  WakeAgent();
}

void Session::OpenOrdered(const control::Welcome& welcome) {
  if (welcome.passed.empty() || welcome.passed.size() != welcome.placements.size()) {
    return Fail(absl::InternalError("the dispatcher does not say where the order begins"));
  }
  const protocol::Positions positions{.partitions = static_cast<int64_t>(welcome.passed.size()),
                                      .consumers = options_.distribute.num_consumers.value_or(1),
                                      .first = welcome.first};
  const int64_t most = options_.distribute.max_outstanding_requests;
  const int64_t shares = positions.shares();
  if (most > 0 && most < shares) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "order kDeterministic takes an element of each of ", shares,
        " partitions in turn: max_outstanding_requests must be at least that, not ", most)));
  }
  merge_.ordered().Open(positions, options_.distribute.consumer_index.value_or(0), welcome.passed);
  receive_limits_.Open(welcome.passed.size(), shares, positions.stride());
  receive_limits_.Forget();
  waits_since_ = absl::InfiniteFuture();  // missing consumers are reported again
  for (size_t p = 0; p < welcome.passed.size(); ++p) SendReceiveLimit(PartitionId(p + 1));
}

void Session::SendReceiveLimit(PartitionId partition) {
  if (!welcomed_) return;  // all limits are sent again after the next Welcome
  const std::optional<Index> next = merge_.ordered().queue().NextOf(partition);
  if (!next) return;  // this consumer gets nothing of it
  if (const std::optional<Index> below = receive_limits_.TakeUpdate(partition, *next)) {
    stream_->Send(control::ReceiveLimit{{{partition, *below}}});
  }
}

void Session::Handle(const control::ClientHeartbeatAnswer& answer) {
  auto sent = unanswered_.find(answer.counter);
  if (sent == unanswered_.end()) return;
  renewed_ = std::max(renewed_, sent->second);
  unanswered_.erase(unanswered_.begin(), std::next(sent));
}

void Session::Handle(const control::Membership& membership) {
  std::set<WorkerId> named;  // workers that partitions are placed on
  for (const control::Membership::Partition& partition : membership.partitions) {
    named.insert(partition.worker);
    partitions_ = std::max(partitions_, partition.partition.value());
  }
  std::map<WorkerId, const control::Membership::Worker*> placed;
  const TargetWorkers target =
      welcome_.has_value() ? welcome_->terms.target_workers : TargetWorkers::kAuto;
  for (const control::Membership::Worker& worker : membership.workers) {
    const bool local = worker.process == control::ThisProcess();
    if (!control::Reads(target, local, worker.tags)) continue;
    if (named.contains(worker.worker)) placed[worker.worker] = &worker;
  }
  for (auto& [id, reader] : readers_) {
    Reader::Progress& progress = reader->progress();
    const bool wanted = placed.contains(id);
    if (progress.wanted && !wanted) progress.unwanted_since = BootTime();
    if (!progress.wanted && wanted) progress.ForgetFailures();
    progress.wanted = wanted;
    progress.placed = named.contains(id);
  }
  NoteWhetherServed(membership);
  credits_.BoundBytes(membership.max_bytes_in_flight);
  receive_limits_.BoundBytes(membership.max_bytes_in_flight);
  for (const control::Membership::Partition& partition : membership.partitions) {
    if (ordered() && partition.end.has_value()) {
      merge_.ordered().SetEnd(partition.partition, *partition.end);
    }
  }
  for (const auto& [id, worker] : placed) {
    ReaderEvents& events = *this;
    if (!readers_.contains(id)) readers_[id] = std::make_shared<Reader>(*worker, events);
  }
  WakeAgent();
}

// While one partition has a worker, elements come or are about to.
void Session::NoteWhetherServed(const control::Membership& membership) {
  const bool served =
      membership.closed ||
      std::any_of(membership.partitions.begin(), membership.partitions.end(),
                  [](const control::Membership::Partition& its) { return bool{its.worker}; });
  no_worker_since_ = served ? absl::InfiniteFuture() : std::min(no_worker_since_, BootTime());
}

void Session::Handle(const control::Fence& fence) {
  // Both under one lock: nothing is received between this answer and the refusals that follow it.
  protocol::Receiver& receiver = ReceiverOf(fence.partition);
  IndexSet returns;
  if (fence.give_back && shared() && !options_.distribute.early_end &&
      fence.placement > receiver.lowest()) {
    returns = GiveBack(fence.partition);
  }
  stream_->Send(control::FenceAnswer{ToMessage(receiver.OnFence(fence.placement, returns))});
}

IndexSet Session::GiveBack(PartitionId partition) {
  idle_ = !times_.waiting() && calls_ == calls_seen_ && BootTime() >= called_ + kIdleAfter;
  const size_t keeps = idle_ ? 0 : (merge_.CountOf(partition) + 1) / 2;
  IndexSet returns;
  for (ReceivedElement& received : merge_.GiveBack(partition, keeps)) {
    returns.Add(received.identity.index);
    credits_.OnReleased(received.from, static_cast<int64_t>(received.bytes));
    given_back_.push_back(std::move(received));
  }
  recalls_all_ |= idle_;
  WakeAgent();
  return returns;
}

void Session::Handle(const control::ReportAtOnce&) {
  report_at_once_ = true;
  WakeAgent();
}

void Session::Handle(const control::Committed& committed) {
  committed_ = std::max(committed_, committed.number);
}

void Session::Handle(const control::End& end) {
  end_ = true;
  if (ordered()) merge_.ordered().SetAllEnded();
  rounds_in_all_ = end.rounds;
  elements_in_all_ = end.elements;
  WakeAgent();
}

void Session::Handle(const control::Left&) {
  left_ = true;
}

void Session::Handle(const control::SessionError& error) {
  Fail(error.status);
}

void Session::OnLost(const absl::Status&) {
  MutexLock lock(mu_);
  welcomed_ = false;
  WakeWaiting();
}

void Session::OnGivenUp(const absl::Status& status) {
  MutexLock lock(mu_);
  welcomed_ = false;
  // After the end, waiting for a dispatcher that is away loses nothing. Without the dispatcher,
  // what is not committed would be lost.
  const bool owes = Owes() || handed_ > 0;
  if (absl::IsUnavailable(status) && error_.ok() && IsOver() && !left_ && !for_good_ && owes) {
    reopens_ = true;
    WakeAgent();
    return WakeWaiting();
  }
  over_ = true;
  given_up_ = status;
  // Without a lease, received elements cannot be returned any more.
  if (!left_ && (!IsOver() || handed_ > 0)) {
    Fail(status);
  }
  WakeWaiting();
}

// --- With the lock held ----------------------------------------------------------

protocol::Receiver& Session::ReceiverOf(PartitionId partition) {
  return receivers_.try_emplace(partition, partition).first->second;
}

void Session::SendReport(bool waits) {
  control::Report report{.waits = waits};
  for (auto& [partition, receiver] : receivers_) {
    if (std::optional<protocol::Report> news = receiver.News()) {
      report.partitions.push_back(ToMessage(*std::move(news)));
    }
  }
  news_ = false;
  if (coordinated()) report.rounds = SayRounds();
  if (!report.partitions.empty() || coordinated() || waits) stream_->Send(std::move(report));
}

bool Session::MayLeave() const {
  if (left_ || over_ || abandoned_ || !error_.ok() || !welcome_.has_value()) return false;
  if (committing_.has_value()) return false;  // the commit names other repetitions too
  return for_good_ || !Owes();
}

bool Session::Owes() const {
  return welcome_.has_value() && welcome_->terms.keep == Keep::kCommitted &&
         DeliveredLocked() != committed_indices_;
}

void Session::SendLeave() {
  leave_sent_ = true;
  stream_->Send(control::Leave{ToMessage(DeliveredLocked())});
}

bool Session::LeaseHolds() const {
  return welcome_.has_value() && BootTime() < renewed_ + welcome_->lease;
}

bool Session::IsCancelled() const {
  return leaving_ ||
         (options_.cancelled != nullptr && options_.cancelled->load(std::memory_order_relaxed));
}

void Session::Fail(const absl::Status& status) {
  if (error_.ok()) error_ = status;
  WakeAgent();
}

void Session::WakeAgent() {
  agent_.notify_all();
}

void Session::WakeWaiting() {
  changed_.notify_all();
  received_.NotifyAll();
}

}  // namespace penstock::client
