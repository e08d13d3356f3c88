// SPDX-License-Identifier: Apache-2.0
// The workers of a schedule, and their links to clients.
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/check.h"
#include "tests/control/protocol/schedule_run.h"

namespace penstock::protocol::schedule {

void Run::StartWorker() {
  const WorkerId id(++names_);
  Worker& worker = workers_[id];
  worker.id = id;
  worker.running = true;
  Register(worker);
  clock_.After(1, [this, id] { Act(id); });
}

void Run::Send(Worker& worker, std::function<void()> arrives) {
  worker.to_dispatcher.Send(clock_, [this, id = worker.id, arrives = std::move(arrives)] {
    if (registered_.contains(id)) worker_seen_[id] = clock_.now();
    arrives();
  });
}

void Run::Register(Worker& worker) {
  std::vector<HeldPlacement> held;
  for (auto& [partition, task] : worker.tasks) {
    if (task.sender) held.push_back({partition, task.sender->placement()});
    task.sent_end = task.asked = false;
    task.sent_bookmark = 0;
  }
  Send(worker, [this, id = worker.id, held] {
    registered_.insert(id);
    worker_seen_[id] = clock_.now();
    Settle(OnWorkerRegisters(durable_.record, context_, id, held));
  });
}

void Run::OnAssign(Worker& worker, const Assign& assign, const std::vector<int64_t>& splits) {
  Task& task = worker.tasks[assign.partition];
  if (assign.placement <= task.highest) return;
  task = Task{};
  task.highest = assign.placement;
  task.splits = splits;
  task.sender.emplace(assign, broken_);
  if (assign.bookmark)
    PENSTOCK_CHECK(assign.bookmark->bytes == absl::StrCat(assign.bookmark->index));
  for (auto& [client, link] : worker.links)
    if (link.open) task.sender->OnLinkUp(client, link.incarnation, {});
}

int64_t Run::RowsBefore(const std::vector<int64_t>& splits, size_t count) const {
  int64_t rows = 0;
  for (size_t i = 0; i < count; ++i) rows += rows_[static_cast<size_t>(splits[i])];
  return rows;
}

void Run::Request(Worker& worker, PartitionId partition, Task& task) {
  if (task.asked || task.no_more) return;
  task.asked = true;
  Send(worker, [this, id = worker.id, partition, g = task.sender->placement(),
                have = task.splits.size()] { OnSplitRequest(id, partition, g, have); });
}

// One step of a worker's process: produces, sends, reports its position and its end.
void Run::Act(WorkerId id) {
  Worker& worker = workers_.at(id);
  if (!worker.running) return;
  clock_.After(clock_.Draw(1, 4), [this, id] { Act(id); });
  if (worker.paused) return;
  Send(worker, [this, id] {  // heartbeat; a worker declared dead by mistake registers again
    Worker& sender = workers_.at(id);
    if (!registered_.contains(id) && sender.running) Register(sender);
  });
  for (auto& [partition, task] : worker.tasks)
    if (task.sender) SendOne(worker, partition, task);
}

void Run::SendOne(Worker& worker, PartitionId partition, Task& task) {
  Sender& sender = *task.sender;
  const Placement g = sender.placement();
  const int64_t known = RowsBefore(task.splits, task.splits.size());
  if (sender.next() >= known) {
    if (task.no_more)
      sender.OnEnd(known);
    else
      Request(worker, partition, task);
  }
  while (sender.next() < known && !sender.Wants(sender.next())) sender.OnPassed(sender.next());
  std::vector<ClientId> readers;
  for (const Sender::Served& served : sender.readers())
    if (served.linked) readers.push_back(served.reader.client);
  const bool again = !sender.again().empty();
  if (!readers.empty() && (again || sender.next() < known)) {
    const Index index = again ? sender.again().intervals()[0].begin : sender.next();
    const ClientId to =
        readers[static_cast<size_t>(clock_.Draw(0, static_cast<int64_t>(readers.size()) - 1))];
    sender.OnSent(to, index);
    Link& link = worker.links.at(to);
    if (link.dialled == link.accepted)
      link.to_client.Send(clock_, [this, &worker, &link, to, partition, g, index,
                                   incarnation = link.incarnation, number = link.dialled] {
        Client& client = clients_.at(to);
        if (!client.running || client.incarnation != incarnation || client.leaving) return;
        if (std::exchange(link.received_on, number) != number) link.received.clear();
        if (ReceiverOf(client, partition).OnElement(g, index) != ReceiveResult::kOldPlacement)
          link.received[{partition, g}].Add(index);
        link.to_worker.Send(clock_, [&worker, to, partition, g, index] {
          Task& sent = worker.tasks[partition];
          if (sent.sender && sent.sender->placement() == g)
            sent.sender->OnReceived(to, IndexSet::Of(index, index + 1));
        });
      });
  }
  if (sender.next() > task.sent_bookmark && clock_.OneIn(5)) {
    task.sent_bookmark = sender.next();
    const Bookmark bookmark{sender.next(), absl::StrCat(sender.next())};
    Send(worker, [this, id = worker.id, partition, g, bookmark] {
      Settle(OnBookmark(durable_.record, context_, id, partition, g, bookmark));
    });
  }
  if (sender.ended() && !task.sent_end) {
    task.sent_end = true;
    Send(worker, [this, id = worker.id, partition, g, end = *sender.end()] {
      Settle(OnEnded(durable_.record, context_, id, partition, g, end));
    });
  }
}

// Both ends notice the break at different times; messages under way are lost.
void Run::BreakLink(Worker& worker, ClientId id) {
  Link& link = worker.links[id];
  link.to_client.Break();
  link.to_worker.Break();
  link.dialled = 0;
  clock_.After(clock_.Draw(0, 30), [&link] { link.up = false; });
  if (clock_.OneIn(4)) return;  // the worker notices only when the client dials again
  link.open = false;
  for (auto& [partition, task] : worker.tasks)
    if (task.sender) task.sender->OnLinkBroken(id);
}

void Run::KillWorker(Worker& worker) {
  worker.running = false;
  worker.to_dispatcher.Break();
  worker.from_dispatcher.Break();
  for (auto& [client, link] : worker.links) {
    link.to_client.Break();
    link.to_worker.Break();
  }
}

}  // namespace penstock::protocol::schedule
