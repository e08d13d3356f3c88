// SPDX-License-Identifier: Apache-2.0
// The dispatcher of a schedule: its journal, the messages that leave once it is durable, its clock,
// its restart.
#include <utility>

#include "penstock/check.h"
#include "tests/control/protocol/schedule_run.h"

namespace penstock::protocol::schedule {

void Run::Journal(Journaled change) {
  durable_.Apply(change);
  PENSTOCK_CHECK(IsKept(durable_.record));
  journal_.push_back(std::move(change));
}

void Run::Settle(Decision decision) {
  do {
    for (IterationChange& change : decision.changes) Journal(std::move(change));
    for (Message& message : decision.messages)
      outbox_.emplace_back(journal_.size(), [this, m = std::move(message)] { Deliver(m); });
    decision = Consequences(durable_.record, context_);
  } while (!decision.empty());
  PENSTOCK_CHECK(context_.IsKept(durable_.record));
}

void Run::Flush() {
  flushed_ = journal_.size();
  while (!outbox_.empty() && outbox_.front().first <= flushed_) {
    outbox_.front().second();
    outbox_.pop_front();
  }
}

void Run::SendToClient(ClientId client, Incarnation incarnation,
                       std::function<void(Client&)> handler) {
  Client& to = clients_.at(client);
  auto stream = client_stream_.find(client);
  if (stream == client_stream_.end() || stream->second != incarnation) return;
  to.from_dispatcher.Send(clock_, [&to, incarnation, handler = std::move(handler)] {
    if (to.running && to.incarnation == incarnation) handler(to);
  });
}

void Run::SendToWorker(WorkerId worker, std::function<void(Worker&)> handler) {
  if (!registered_.contains(worker)) return;
  Worker& to = workers_.at(worker);
  to.from_dispatcher.Send(clock_, [&to, handler = std::move(handler)] {
    if (to.running) handler(to);
  });
}

void Run::Deliver(const Message& message) {
  if (const auto* m = std::get_if<Welcome>(&message)) {
    SendToClient(m->client, m->incarnation, [this, m = *m](Client& client) {
      client.welcomed = true;
      client.from_state.reset();
      client.awaits_welcome = false;
      client.owes_completion = m.partial;
      for (const Placed& p : m.placements) {
        ReceiverOf(client, p.partition).OnWelcome(p.placement);
        client.named.insert(p.partition);
      }
    });
  } else if (const auto* m = std::get_if<Refused>(&message)) {
    SendToClient(m->client, m->incarnation, [](Client& client) {
      client.running = false;
      client.over = true;
    });
  } else if (const auto* m = std::get_if<ToClient<Fence>>(&message)) {
    SendToClient(m->client, m->incarnation, [this, m = *m](Client& client) {
      Receiver& receiver = ReceiverOf(client, m.partition);
      client.named.insert(m.partition);
      IndexSet returns;
      if (m.give_back) {
        for (const auto& interval : receiver.received().intervals())
          for (Index i = interval.begin; i < interval.end; ++i)
            if (clock_.OneIn(2)) returns.Add(i);
      }
      const protocol::Report answer = receiver.OnFence(m.placement, returns);
      Send(client, [this, id = client.id, incarnation = client.incarnation, answer] {
        Settle(OnReport(durable_.record, context_, id, incarnation, answer));
      });
    });
  } else if (const auto* m = std::get_if<ToClient<End>>(&message)) {
    SendToClient(m->client, m->incarnation, [](Client& client) { client.end = true; });
  } else if (const auto* m = std::get_if<ToClient<Committed>>(&message)) {
    SendToClient(m->client, m->incarnation, [number = m->number](Client& client) {
      if (client.pending && client.pending->number == number) client.pending.reset();
    });
  } else if (const auto* m = std::get_if<ToClient<Left>>(&message)) {
    SendToClient(m->client, m->incarnation, [this](Client& client) {
      KillClient(client);
      const auto reader = durable_.record.FindReader(client.id);
      client.over = !reader || durable_.record.readers[*reader].status != ReaderStatus::kActive;
      if (!client.over && clock_.OneIn(2))  // with its written state
        clock_.After(clock_.Draw(1, 3 * kLease), [this, id = client.id] { Restart(id); });
    });
  } else if (const auto* m = std::get_if<Assign>(&message)) {
    if ((m->bookmark ? m->bookmark->index : 0) < durable_.retired[m->partition.value() - 1] &&
        outcome_.fault.empty())
      outcome_.fault = "lost: a replay begins below what was retired";
    SendToWorker(m->worker, [this, m = *m, splits = durable_.given[m->partition.value() - 1]](
                                Worker& worker) { OnAssign(worker, m, splits); });
  } else if (const auto* m = std::get_if<AddReader>(&message)) {
    SendToWorker(m->worker, [m = *m](Worker& worker) {
      Task& task = worker.tasks[m.partition];
      if (!task.sender || task.sender->placement() != m.placement) return;
      if (!task.sender->OnAddReader(m.reader)) return;
      auto link = worker.links.find(m.reader.client);
      if (link != worker.links.end() && link->second.open)
        task.sender->OnLinkUp(m.reader.client, link->second.incarnation, {});
    });
  } else if (const auto* m = std::get_if<Unassign>(&message)) {
    SendToWorker(m->worker, [m = *m](Worker& worker) {
      Task& task = worker.tasks[m.partition];
      if (task.sender && task.sender->placement() == m.placement) task.sender.reset();
    });
  }
}

void Run::OnSplitRequest(WorkerId worker, PartitionId partition, Placement placement, size_t have) {
  const PartitionRecord& record = durable_.record.partition(partition);
  if (record.worker != worker || record.placement != placement) return;
  auto& given = durable_.given[partition.value() - 1];
  if (given.size() <= have && durable_.next_split < static_cast<int64_t>(rows_.size()))
    Journal(SplitGiven{partition, durable_.next_split});
  const bool no_more =
      given.size() <= have && durable_.next_split >= static_cast<int64_t>(rows_.size());
  outbox_.emplace_back(journal_.size(), [=, this, splits = given] {
    SendToWorker(worker, [=](Worker& to) {
      Task& task = to.tasks[partition];
      if (!task.sender || task.sender->placement() != placement) return;
      task.splits = splits;
      task.no_more = no_more;
      task.asked = false;
    });
  });
}

// The dispatcher's own work: makes records durable, finds dead clients, places partitions.
void Run::Tick() {
  Flush();
  for (const auto& [id, seen] : std::map(client_seen_)) {
    auto reader = durable_.record.FindReader(id);
    if (!reader || durable_.record.readers[*reader].status != ReaderStatus::kActive ||
        clock_.now() - seen <= 2 * kLease)
      continue;
    Settle(OnReaderExpired(durable_.record, context_, id));
  }
  for (const auto& [id, seen] : std::map(worker_seen_)) {
    if (clock_.now() - seen <= kLease) continue;
    worker_seen_.erase(id);
    registered_.erase(id);
    workers_.at(id).from_dispatcher.Break();
    Settle(OnWorkerGone(durable_.record, context_, id));
  }
  for (PartitionId partition : Assignable(durable_.record, context_)) {
    std::vector<WorkerId> able;
    for (WorkerId id : registered_)
      if (!workers_.at(id).draining) able.push_back(id);
    if (!able.empty() && clock_.OneIn(2))
      Place(partition,
            able[static_cast<size_t>(clock_.Draw(0, static_cast<int64_t>(able.size()) - 1))]);
  }
  if (audiences_ && !durable_.record.partitions.empty() && clock_.OneIn(20)) {
    const auto last = static_cast<int64_t>(durable_.record.partitions.size());
    Settle(ExtendAudience(durable_.record, context_,
                          PartitionId(static_cast<uint64_t>(clock_.Draw(1, last))), DrawReaders()));
  }
  // If all clients have died, a new one comes to read on at the end.
  if (failures_left_ <= 0 && std::none_of(clients_.begin(), clients_.end(),
                                          [](const auto& entry) { return entry.second.running; }))
    StartClient();
  clock_.After(clock_.Draw(1, 10), [this] { Tick(); });
}

// Returns some of the readers that read, at least one if there are any.
IndexSet Run::DrawReaders() {
  std::vector<Index> reading;
  for (size_t r = 0; r < durable_.record.readers.size(); ++r)
    if (durable_.record.readers[r].reads()) reading.push_back(static_cast<Index>(r));
  IndexSet drawn;
  for (Index reader : reading)
    if (clock_.OneIn(2)) drawn.Add(reader);
  if (drawn.empty() && !reading.empty()) drawn.Add(reading.front());
  return drawn;
}

void Run::Place(PartitionId partition, WorkerId worker) {
  std::optional<IndexSet> audience;
  if (audiences_ && !clock_.OneIn(4)) audience = DrawReaders();
  const IndexSet must = MustAnswer(durable_.record, context_, partition, audience);
  Settle(must.empty() ? AssignTo(durable_.record, context_, partition, worker, audience)
                      : ExtendAudience(durable_.record, context_, partition, must));
}

void Run::RestartDispatcher() {
  journal_.resize(flushed_);
  outbox_.clear();
  Durable recovered;
  recovered.record.commit_policy = durable_.record.commit_policy;
  for (const Journaled& change : journal_) recovered.Apply(change);
  durable_ = std::move(recovered);
  context_ = MakeIterationContext(durable_.record, broken_);
  registered_.clear();
  worker_seen_.clear();
  client_seen_.clear();
  client_stream_.clear();
  // Lease clocks restart.
  for (const ReaderRecord& reader : durable_.record.readers)
    client_seen_[reader.client] = clock_.now();
  for (const PartitionRecord& partition : durable_.record.partitions)
    if (partition.worker) worker_seen_[partition.worker] = clock_.now();
  for (auto& [id, client] : clients_) {
    client.to_dispatcher.Break();
    client.from_dispatcher.Break();
    if (client.running) OpenStream(client);
  }
  for (auto& [id, worker] : workers_) {
    worker.to_dispatcher.Break();
    worker.from_dispatcher.Break();
    if (worker.running) Register(worker);
  }
}

}  // namespace penstock::protocol::schedule
