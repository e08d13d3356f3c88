// SPDX-License-Identifier: Apache-2.0
// The clients of a schedule.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/control/protocol/schedule_run.h"

namespace penstock::protocol::schedule {

ClientId Run::StartClient() {
  const ClientId id(++names_);
  Client& client = clients_[id];
  client.id = id;
  StartProcess(client);
  return id;
}

void Run::StartProcess(Client& client) {
  client.running = true;
  client.slow = clock_.OneIn(3);
  client.paused = client.leaving = client.welcomed = client.end = false;
  client.pending.reset();
  client.incarnation = Incarnation(++names_);
  client.receivers.clear();
  for (size_t p = 0; p < durable_.record.partitions.size(); ++p)
    if (const PartitionId id(p + 1); !Of(client.written, id).empty()) ReceiverOf(client, id);
  for (auto& [id, worker] : workers_) worker.links[client.id].received.clear();
  client.last_heard = clock_.now();
  OpenStream(client);
  clock_.After(1, [this, id = client.id, i = client.incarnation] { Act(id, i); });
}

Receiver& Run::ReceiverOf(Client& client, PartitionId partition) {
  auto found = client.receivers.find(partition);
  if (found == client.receivers.end()) {
    const IndexSet& delivered = Of(client.written, partition);  // nothing if it writes no states
    found = client.receivers.emplace(partition, Receiver(partition, delivered, broken_)).first;
  }
  return found->second;
}

void Run::Send(Client& client, std::function<void()> arrives) {
  client.to_dispatcher.Send(clock_, [this, id = client.id, incarnation = client.incarnation,
                                     arrives = std::move(arrives)] {
    if (client_stream_[id] == incarnation) client_seen_[id] = clock_.now();
    clients_.at(id).last_heard = clock_.now();  // as a heartbeat's answer would
    arrives();
  });
}

void Run::OpenStream(Client& client) {
  Connect connect{.client = client.id,
                  .incarnation = client.incarnation,
                  .state = client.from_state,
                  .reports_all = client.reports_all()};
  client.awaits_welcome = client.reports_all();
  client.owes_completion = false;
  client.named.clear();
  for (auto& [partition, receiver] : client.receivers) receiver.OnConnected();
  Send(client, [this, connect] {
    client_stream_[connect.client] = connect.incarnation;
    client_seen_[connect.client] = clock_.now();
    Settle(OnConnect(durable_.record, context_, connect));
  });
  auto again = [this, id = client.id, incarnation = client.incarnation] {
    return std::make_tuple(this, id, incarnation);
  };
  if (client.pending)
    Send(client, [this, a = again(), commit = *client.pending] {
      Settle(OnCommit(durable_.record, context_, std::get<1>(a), std::get<2>(a), commit));
    });
  if (client.leaving) {
    Leave leave;
    for (auto& [partition, receiver] : client.receivers)
      leave.delivered.Add(partition, receiver.delivered());
    Send(client, [this, a = again(), leave] {
      Settle(OnLeave(durable_.record, context_, std::get<1>(a), std::get<2>(a), leave));
    });
  }
}

// Returns whether it has reported all partitions. A first report may take several messages, between
// which elements arrive.
bool Run::ReportsPartitions(Client& client) {
  for (auto& [partition, receiver] : client.receivers) {
    if (client.reports_all() && !client.named.contains(partition) && receiver.AllIndices().empty())
      continue;
    auto news = receiver.News();
    if (!news) continue;
    client.named.insert(partition);
    Send(client, [this, id = client.id, incarnation = client.incarnation, news = *news] {
      Settle(OnReport(durable_.record, context_, id, incarnation, news));
    });
    if (client.owes_completion && clock_.OneIn(3)) return false;
  }
  return true;
}

void Run::Report(Client& client) {
  if (client.awaits_welcome || !ReportsPartitions(client)) return;
  if (!std::exchange(client.owes_completion, false)) return;
  Send(client, [this, id = client.id, incarnation = client.incarnation] {
    Settle(OnReportsComplete(durable_.record, context_, id, incarnation));
  });
}

// One step of a client's process: takes, reports, writes, commits, dials.
void Run::Act(ClientId id, Incarnation incarnation) {
  Client& client = clients_.at(id);
  if (!client.running || client.incarnation != incarnation) return;
  clock_.After(clock_.Draw(1, 6), [this, id, incarnation] { Act(id, incarnation); });
  if (client.paused || client.leaving) return;
  Send(client, [] {});  // heartbeat
  if (!client.welcomed) return;
  for (auto& [worker_id, worker] : workers_)
    if (worker.running && !worker.links[id].up) Dial(client, worker);
  // Rule 6: without a message from the dispatcher it stops before it is declared dead.
  const bool leased = clock_.now() - client.last_heard < kLease;
  std::vector<std::pair<PartitionId, Index>> received;
  for (auto& [partition, receiver] : client.receivers)
    for (const auto& interval : receiver.received().intervals())
      for (Index i = interval.begin; i < interval.end; ++i) received.emplace_back(partition, i);
  if (leased && !received.empty() && (client.slow ? clock_.OneIn(12) : !clock_.OneIn(3))) {
    auto [partition, index] =
        received[static_cast<size_t>(clock_.Draw(0, static_cast<int64_t>(received.size()) - 1))];
    client.receivers.at(partition).OnDelivered(index);
  }
  if (clock_.OneIn(3)) Report(client);
  if (received.empty() && clock_.OneIn(8))
    Send(client, [this, id, incarnation] {
      OnWaits(durable_.record, context_, id, incarnation);
      Settle({});
    });
  if (!states_ || !clock_.OneIn(8)) return;
  ReceivedSets state;
  for (auto& [partition, receiver] : client.receivers) state.Add(partition, receiver.delivered());
  client.written = state;
  if (client.pending || clock_.OneIn(3)) return;  // written but not (yet) committed
  client.pending = Commit{++client.commits, state};
  Send(client, [this, id, incarnation, commit = *client.pending] {
    Settle(OnCommit(durable_.record, context_, id, incarnation, commit));
  });
}

void Run::Dial(Client& client, Worker& worker) {
  Link& link = worker.links[client.id];
  link.up = true;
  link.to_worker.Break();
  link.to_client.Break();
  link.dialled = ++link.dials;
  link.to_worker.Send(clock_, [&worker, &link, id = client.id, i = client.incarnation,
                               number = link.dialled, received = link.received] {
    if (!worker.running || link.accepted == number) return;  // or a repeated message
    link.accepted = number;
    link.open = true;
    link.incarnation = i;
    for (auto& [partition, task] : worker.tasks) {
      if (!task.sender) continue;
      auto held = received.find({partition, task.sender->placement()});
      task.sender->OnLinkUp(id, i, held == received.end() ? IndexSet{} : held->second);
    }
  });
}

void Run::KillClient(Client& client) {
  client.running = false;
  client.to_dispatcher.Break();
  client.from_dispatcher.Break();
  for (auto& [id, worker] : workers_)
    if (worker.links[client.id].up) BreakLink(worker, client.id);
}

void Run::Restart(ClientId id) {
  Client& client = clients_.at(id);
  client.from_state = client.written;
  StartProcess(client);
}

}  // namespace penstock::protocol::schedule
