// SPDX-License-Identifier: Apache-2.0
#include "tests/control/protocol/schedule.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "penstock/check.h"
#include "tests/control/protocol/schedule_run.h"

namespace penstock::protocol::schedule {
namespace {

constexpr int64_t kTooLong = 200'000;  // a run that lasts this long is stuck

// The faults to draw from; links break twice as often.
constexpr Fault kFaults[] = {
    Fault::kKillWorker,        Fault::kStopWorker,  Fault::kKillClient, Fault::kStopClient,
    Fault::kRestartDispatcher, Fault::kBreakLink,   Fault::kBreakLink,  Fault::kBreakStream,
    Fault::kDrainOrMove,       Fault::kJoinOrLeave,
};

}  // namespace

// --- Failures --------------------------------------------------------------------

std::vector<ClientId> Run::Living() const {
  std::vector<ClientId> living;
  for (const auto& [id, client] : clients_)
    if (client.running && !client.leaving && !client.paused) living.push_back(id);
  return living;
}

void Run::Fail() {
  if (failures_left_-- == 0) return;
  clock_.After(clock_.Draw(5, 400), [this] { Fail(); });
  ++outcome_.failures;
  auto any = [&](auto& map) -> auto& {
    return std::next(map.begin(), clock_.Draw(0, static_cast<int64_t>(map.size()) - 1))->second;
  };
  Worker& worker = any(workers_);
  const std::vector<ClientId> living = Living();
  if (living.empty()) return;
  Client& client = clients_.at(
      living[static_cast<size_t>(clock_.Draw(0, static_cast<int64_t>(living.size()) - 1))]);
  Strike(only_ ? *only_ : kFaults[static_cast<size_t>(clock_.Draw(0, std::size(kFaults) - 1))],
         worker, client, living.size() == 1);
}

void Run::Strike(Fault fault, Worker& worker, Client& client, bool last_client) {
  switch (fault) {
    case Fault::kKillWorker:
      if (worker.running) KillWorker(worker);
      StartWorker();
      break;
    case Fault::kStopWorker:
      worker.paused = true;
      clock_.After(clock_.Draw(10, 3 * kLease), [&worker] { worker.paused = false; });
      break;
    case Fault::kKillClient:
      KillClient(client);
      if (states_ && !clock_.OneIn(3))
        clock_.After(clock_.Draw(1, 3 * kLease), [this, id = client.id] { Restart(id); });
      if (last_client || clock_.OneIn(2)) StartClient();
      break;
    case Fault::kStopClient:
      client.paused = true;
      clock_.After(clock_.Draw(10, 4 * kLease), [&client] { client.paused = false; });
      if (last_client) StartClient();
      break;
    case Fault::kRestartDispatcher:
      RestartDispatcher();
      break;
    case Fault::kBreakLink:
      if (worker.links[client.id].up) BreakLink(worker, client.id);
      break;
    case Fault::kBreakStream:
      client.to_dispatcher.Break();
      client.from_dispatcher.Break();
      OnDisconnect(durable_.record, context_, client.id);
      OpenStream(client);
      break;
    case Fault::kDrainOrMove:
      if (clock_.OneIn(2) && worker.running) {
        StartWorker();
        Drain(worker);
      } else {
        Settle(OnRelieve(durable_.record, context_,
                         PartitionId(static_cast<uint64_t>(clock_.Draw(
                             1, static_cast<int64_t>(durable_.record.partitions.size()))))));
      }
      break;
    case Fault::kJoinOrLeave:
      if (last_client || clock_.OneIn(2)) {
        StartClient();
      } else if (!client.end) {
        client.leaving = true;
        OpenStream(client);  // to send Leave
      }
      break;
    case Fault::kAddOrRemoveWorker: {
      const auto stays = [&](const auto& entry) {
        return entry.second.id != worker.id && entry.second.running && !entry.second.draining;
      };
      if (clock_.OneIn(2) || std::none_of(workers_.begin(), workers_.end(), stays))
        StartWorker();
      else if (worker.running)
        Drain(worker);
      break;
    }
  }
}

void Run::Drain(Worker& worker) {
  worker.draining = true;
  Settle(OnWorkerGone(durable_.record, context_, worker.id));
}

// --- What must hold --------------------------------------------------------------

bool Run::Done() const {
  if (failures_left_ > 0) return false;
  // All partitions have ended. Or they are open again, but no reader is left.
  for (const PartitionRecord& partition : durable_.record.partitions)
    if (!partition.end) return false;
  for (const ReaderRecord& reader : durable_.record.readers)
    if (reader.reads()) return false;
  for (const auto& [id, client] : clients_) {
    auto reader = durable_.record.FindReader(id);
    const bool active = reader && durable_.record.readers[*reader].status == ReaderStatus::kActive;
    if (!client.running) {
      if (active && !durable_.record.finished) return false;  // it must still be declared dead
      continue;
    }
    if (client.paused || client.leaving || !client.welcomed || !client.end) return false;
    for (const auto& [partition, receiver] : client.receivers)
      if (!receiver.received().empty()) return false;
  }
  return true;
}

std::string Run::Describe() const {
  std::string text;
  const IterationRecord& record = durable_.record;
  absl::StrAppend(&text, "\n", record.closed ? "closed" : "open", " splits given ",
                  durable_.next_split, " of ", rows_.size());
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionRecord& partition = record.partitions[p];
    absl::StrAppend(&text, "\n", ToString(PartitionId(p + 1)), " g ", partition.placement.value(),
                    " on ", ToString(partition.worker), " ended ",
                    context_.partitions[p].ended.value_or(-1));
    for (size_t r = 0; r < record.readers.size(); ++r)
      absl::StrAppend(&text, "\n  ", ToString(record.readers[r].client), " status ",
                      static_cast<int>(record.readers[r].status),
                      record.readers[r].end_notified ? " told end" : "", " heard at ",
                      context_.partitions[p].acks.Of(r).at.value(), " has ",
                      context_.partitions[p].acks.Of(r).reported.ToString(), " committed ",
                      Of(record.readers[r].committed, PartitionId(p + 1)).ToString());
  }
  for (const auto& [id, client] : clients_)
    absl::StrAppend(&text, "\n", ToString(id), client.running ? " running" : "",
                    client.welcomed ? " welcomed" : "", client.over ? " over" : "",
                    client.paused ? " paused" : "", client.leaving ? " leaving" : "",
                    client.end ? " end" : "");
  for (const auto& [id, worker] : workers_) {
    absl::StrAppend(&text, "\n", ToString(id), worker.running ? " running" : "",
                    worker.paused ? " paused" : "", worker.draining ? " draining" : "",
                    registered_.contains(id) ? " registered" : "");
    for (const auto& [partition, task] : worker.tasks)
      if (task.sender)
        absl::StrAppend(&text, "\n  ", ToString(partition), " g ", task.sender->placement().value(),
                        " next ", task.sender->next(), " again ", task.sender->again().ToString(),
                        " unconfirmed ", task.sender->unconfirmed().ToString(),
                        task.sender->ended() ? " ended" : "", task.asked ? " asked" : "");
    for (const auto& [client, link] : worker.links)
      absl::StrAppend(&text, "\n  link to ", ToString(client), link.up ? " up" : "",
                      link.open ? " open" : "");
  }
  return text;
}

// Checks that each element is in exactly one history.
void Run::Check() {
  const auto partitions = durable_.record.partitions.size();
  std::vector<int> split_uses(rows_.size(), 0);
  for (size_t p = 0; p < partitions; ++p) {
    const PartitionId id(p + 1);
    for (int64_t split : durable_.given[p]) ++split_uses[static_cast<size_t>(split)];
    const Index size = RowsBefore(durable_.given[p], durable_.given[p].size());
    std::vector<int> times(static_cast<size_t>(size), 0);
    for (const ReaderRecord& reader : durable_.record.readers) {
      const Client& client = clients_.at(reader.client);
      const bool lives = reader.status == ReaderStatus::kActive && client.running;
      auto receiver = client.receivers.find(id);
      const IndexSet history = !lives                               ? Of(reader.committed, id)
                               : receiver == client.receivers.end() ? IndexSet{}
                                                                    : receiver->second.delivered();
      for (const auto& interval : history.intervals())
        for (Index i = interval.begin; i < interval.end; ++i) {
          PENSTOCK_CHECK(i < size);
          ++times[static_cast<size_t>(i)];
        }
    }
    const IndexSet owed = Owed(durable_.record, PositionsOf(durable_.record), id);
    for (Index i = 0; i < size; ++i) {
      const int n = times[static_cast<size_t>(i)];
      if (n > 1 && outcome_.fault.empty())
        outcome_.fault = absl::StrCat("doubled: partition ", p + 1, " index ", i);
      if (n == 0 && owed.Contains(i))
        ++outcome_.given_up;
      else if (n == 0 && outcome_.fault.empty())
        outcome_.fault = absl::StrCat("lost: partition ", p + 1, " index ", i);
    }
  }
  for (size_t s = 0; s < rows_.size(); ++s)
    if (split_uses[s] != 1 && outcome_.fault.empty())
      outcome_.fault = absl::StrCat("split ", s, " given ", split_uses[s], " times");
}

Outcome Run::Play() {
  states_ = clock_.OneIn(2) || only_ == Fault::kKillClient;
  const int64_t wanted = clock_.Draw(20, 200);
  while (outcome_.elements < wanted) {
    rows_.push_back(clock_.Draw(0, 12));
    outcome_.elements += rows_.back();
  }
  durable_.record.commit_policy = states_ ? CommitPolicy::kExplicit : CommitPolicy::kOnDelivery;
  context_ = MakeIterationContext(durable_.record, broken_);
  const int64_t partitions = clock_.Draw(1, 4);
  for (int64_t p = 0; p < partitions; ++p) Settle(OpenPartition(durable_.record, context_));
  for (int64_t w = clock_.Draw(1, 4); w > 0; --w) StartWorker();
  for (int64_t c = clock_.Draw(1, 4); c > 0; --c) StartClient();
  failures_left_ = static_cast<int>(clock_.Draw(0, 12));
  clock_.After(clock_.Draw(5, 200), [this] { Fail(); });
  Tick();
  while (outcome_.fault.empty() && !Done() && clock_.Step())
    if (clock_.now() > kTooLong) outcome_.fault = "stuck: not all have shown the end" + Describe();
  if (outcome_.fault.empty()) {
    Check();
    if (!outcome_.fault.empty()) outcome_.fault += Describe();
  }
  outcome_.events = clock_.count();
  return outcome_;
}

}  // namespace penstock::protocol::schedule

namespace penstock::protocol {

Outcome RunSchedule(uint64_t seed, Broken broken) {
  return schedule::Run(seed, broken, std::nullopt).Play();
}

Outcome RunSchedule(uint64_t seed, Fault only) {
  return schedule::Run(seed, Broken::kNone, only).Play();
}

}  // namespace penstock::protocol
