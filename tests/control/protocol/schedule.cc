// SPDX-License-Identifier: Apache-2.0
#include "tests/control/protocol/schedule.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/protocol/iteration_desk.h"
#include "control/protocol/receiver.h"
#include "control/protocol/sender.h"
#include "penstock/check.h"

namespace penstock::protocol {
namespace {

constexpr int64_t kLease = 400;        // silence after which somebody is declared dead
constexpr int64_t kTooLong = 200'000;  // a run that lasts so long is stuck

// A clock that is set forward to the next thing to happen.
class Clock {
 public:
  explicit Clock(uint64_t seed) : random_(seed) {}
  int64_t now() const { return now_; }
  void At(int64_t when, std::function<void()> what) {
    queue_.push({std::max(when, now_), count_++, std::move(what)});
  }
  void After(int64_t delay, std::function<void()> what) { At(now_ + delay, std::move(what)); }
  bool Step() {
    if (queue_.empty()) return false;
    Event event = queue_.top();
    queue_.pop();
    now_ = event.when;
    event.what();
    return true;
  }
  int64_t Draw(int64_t low, int64_t high) {  // both included
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool OneIn(int64_t n) { return Draw(1, n) == 1; }
  int64_t count() const { return static_cast<int64_t>(count_); }

 private:
  struct Event {
    int64_t when;
    uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(other.when, other.order) < std::tie(when, order);
    }
  };
  std::mt19937_64 random_;
  int64_t now_ = 0;
  uint64_t count_ = 0;
  std::priority_queue<Event> queue_;
};

// One direction between two processes: in order, delayed, sometimes twice, and
// nothing any more once it broke.
class Pipe {
 public:
  void Send(Clock& clock, const std::function<void()>& deliver) {
    const int copies = clock.OneIn(40) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      last_ = std::max(last_, clock.now() + clock.Draw(1, clock.OneIn(20) ? 100 : 8));
      clock.At(last_, [deliver, life = life_, mine = *life_] {
        if (*life == mine) deliver();
      });
    }
  }
  void Break() { ++*life_; }

 private:
  int64_t last_ = 0;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

struct SplitGiven {
  PartitionId partition;
  int64_t split;
};
using Journaled = std::variant<IterationChange, SplitGiven>;

// What the dispatcher's journal makes.
struct Durable {
  IterationRecord record;
  std::vector<std::vector<int64_t>> given;  // splits, by partition
  std::vector<Index> retired;               // nothing below is replayed, by partition
  int64_t next_split = 0;

  void Apply(const Journaled& change) {
    if (const auto* split = std::get_if<SplitGiven>(&change)) {
      given[split->partition.value() - 1].push_back(split->split);
      next_split = split->split + 1;
      return;
    }
    const auto& iteration = std::get<IterationChange>(change);
    protocol::Apply(record, iteration);
    given.resize(record.partitions.size());
    retired.resize(record.partitions.size());
    if (const auto* below = std::get_if<BookmarksRetired>(&iteration))
      retired[below->partition.value() - 1] = below->below;
  }
};

class Run {
 public:
  Run(uint64_t seed, Broken broken) : clock_(seed), broken_(broken) {}
  Outcome Play();

 private:
  struct Client {
    ClientId id;
    Incarnation incarnation;
    bool running = false;  // the process
    bool over = false;     // the session: refused, left, or dead for good
    bool paused = false;
    bool leaving = false;
    bool welcomed = false;
    bool end = false;
    int64_t last_heard = 0;  // by its own clock: its lease
    std::optional<Holdings> from_state;
    Holdings written;  // the newest state on its disk
    std::optional<Commit> pending;
    int64_t commits = 0;
    std::map<PartitionId, Receiver> receivers;
    Pipe to_dispatcher, from_dispatcher;
  };
  // A link of a client's process to a worker's.
  struct Link {
    bool up = false;    // as the client sees it
    bool open = false;  // as the worker sees it
    int dialled = 0;    // the newest connection the client made; 0: it broke
    int accepted = 0;   // the newest one the worker knows
    int dials = 0;
    Incarnation incarnation;
    // What landed on the newest connection on which anything did: that is all the
    // client says on the next (rule 5).
    std::map<PartitionId, IndexSet> landed;
    int landed_on = 0;
    Pipe to_client, to_worker;
  };
  struct Task {
    std::optional<Sender> sender;
    Placement highest;
    std::vector<int64_t> splits;
    bool no_more = false;
    bool asked = false;
    bool said_end = false;
    Index said_bookmark = 0;
  };
  struct Worker {
    WorkerId id;
    bool running = false;
    bool paused = false;
    bool draining = false;
    std::map<PartitionId, Task> tasks;
    std::map<ClientId, Link> links;
    Pipe to_dispatcher, from_dispatcher;
  };

  // --- the dispatcher ---
  void Settle(Decision decision);
  void Journal(Journaled change);
  void Flush();
  void Deliver(const Message& message);
  void Tick();
  void RestartDispatcher();
  void Says(ClientId client, Incarnation incarnation, std::function<void(Client&)> hears);
  void Tells(WorkerId worker, std::function<void(Worker&)> hears);
  void OnSplitRequest(WorkerId worker, PartitionId partition, Placement placement, size_t have);
  // --- clients ---
  ClientId StartClient();
  void StartProcess(Client& client);
  void Present(Client& client);
  void Send(Client& client, std::function<void()> arrives);
  void Act(ClientId id, Incarnation incarnation);
  void Report(Client& client);
  void Dial(Client& client, Worker& worker);
  Receiver& ReceiverOf(Client& client, PartitionId partition);
  void KillClient(Client& client);
  void Restart(ClientId id);
  // --- workers ---
  void StartWorker();
  void Register(Worker& worker);
  void Send(Worker& worker, std::function<void()> arrives);
  void Act(WorkerId id);
  void SendOne(Worker& worker, PartitionId partition, Task& task);
  void OnAssign(Worker& worker, const Assign& assign, const std::vector<int64_t>& splits);
  void BreakLink(Worker& worker, ClientId client);
  void KillWorker(Worker& worker);
  void Request(Worker& worker, PartitionId partition, Task& task);
  // --- failures ---
  void Fail();
  std::vector<ClientId> Living() const;
  // --- what must hold ---
  bool Done() const;
  std::string Tell() const;  // how it stands, for a fault to be understood
  void Check();
  int64_t RowsBefore(const std::vector<int64_t>& splits, size_t count) const;

  Clock clock_;
  Broken broken_;
  Outcome outcome_;
  bool states_ = false;
  std::vector<int64_t> rows_;  // of each split
  int failures_left_ = 0;
  uint64_t names_ = 0;

  Durable durable_;  // as the dispatcher has it in memory
  Desk desk_;
  std::vector<Journaled> journal_;
  size_t flushed_ = 0;
  std::deque<std::pair<size_t, std::function<void()>>> outbox_;  // leaves at that length
  std::map<ClientId, int64_t> client_seen_;
  std::map<ClientId, Incarnation> client_stream_;
  std::map<WorkerId, int64_t> worker_seen_;
  std::set<WorkerId> registered_;

  std::map<ClientId, Client> clients_;
  std::map<WorkerId, Worker> workers_;
};

// --- The dispatcher --------------------------------------------------------------

void Run::Journal(Journaled change) {
  durable_.Apply(change);
  journal_.push_back(std::move(change));
}

void Run::Settle(Decision decision) {
  do {
    for (IterationChange& change : decision.changes) Journal(std::move(change));
    for (Message& message : decision.messages)
      outbox_.emplace_back(journal_.size(), [this, m = std::move(message)] { Deliver(m); });
    decision = Consequences(durable_.record, desk_);
  } while (!decision.empty());
}

void Run::Flush() {
  flushed_ = journal_.size();
  while (!outbox_.empty() && outbox_.front().first <= flushed_) {
    outbox_.front().second();
    outbox_.pop_front();
  }
}

void Run::Says(ClientId client, Incarnation incarnation, std::function<void(Client&)> hears) {
  Client& to = clients_.at(client);
  auto stream = client_stream_.find(client);
  if (stream == client_stream_.end() || stream->second != incarnation) return;
  to.from_dispatcher.Send(clock_, [&to, incarnation, hears = std::move(hears)] {
    if (to.running && to.incarnation == incarnation) hears(to);
  });
}

void Run::Tells(WorkerId worker, std::function<void(Worker&)> hears) {
  if (!registered_.contains(worker)) return;
  Worker& to = workers_.at(worker);
  to.from_dispatcher.Send(clock_, [&to, hears = std::move(hears)] {
    if (to.running) hears(to);
  });
}

void Run::Deliver(const Message& message) {
  if (const auto* m = std::get_if<Welcome>(&message)) {
    Says(m->client, m->incarnation, [this, placed = m->placements](Client& client) {
      client.welcomed = true;
      client.from_state.reset();
      for (const Placed& p : placed) ReceiverOf(client, p.partition).OnWelcome(p.placement);
    });
  } else if (const auto* m = std::get_if<Refused>(&message)) {
    Says(m->client, m->incarnation, [](Client& client) {
      client.running = false;
      client.over = true;
    });
  } else if (const auto* m = std::get_if<Fence>(&message)) {
    Says(m->client, m->incarnation, [this, m = *m](Client& client) {
      const protocol::Report answer = ReceiverOf(client, m.partition).OnFence(m.placement);
      Send(client, [this, id = client.id, incarnation = client.incarnation, answer] {
        Settle(OnReport(durable_.record, desk_, id, incarnation, answer));
      });
    });
  } else if (const auto* m = std::get_if<End>(&message)) {
    Says(m->client, m->incarnation, [](Client& client) { client.end = true; });
  } else if (const auto* m = std::get_if<CommitDone>(&message)) {
    Says(m->client, m->incarnation, [number = m->number](Client& client) {
      if (client.pending && client.pending->number == number) client.pending.reset();
    });
  } else if (const auto* m = std::get_if<LeaveDone>(&message)) {
    Says(m->client, m->incarnation, [](Client& client) {
      client.running = false;
      client.over = true;
    });
  } else if (const auto* m = std::get_if<Assign>(&message)) {
    if ((m->bookmark ? m->bookmark->index : 0) < durable_.retired[m->partition.value() - 1] &&
        outcome_.fault.empty())
      outcome_.fault = "lost: a replay begins below what was retired";
    Tells(m->worker, [this, m = *m, splits = durable_.given[m->partition.value() - 1]](
                         Worker& worker) { OnAssign(worker, m, splits); });
  } else if (const auto* m = std::get_if<AddReader>(&message)) {
    Tells(m->worker, [m = *m](Worker& worker) {
      Task& task = worker.tasks[m.partition];
      if (!task.sender || task.sender->placement() != m.placement) return;
      if (!task.sender->OnAddReader(m.reader)) return;
      auto link = worker.links.find(m.reader.client);
      if (link != worker.links.end() && link->second.open)
        task.sender->OnLinkUp(m.reader.client, link->second.incarnation, {});
    });
  } else if (const auto* m = std::get_if<Unassign>(&message)) {
    Tells(m->worker, [m = *m](Worker& worker) {
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
    Tells(worker, [=](Worker& to) {
      Task& task = to.tasks[partition];
      if (!task.sender || task.sender->placement() != placement) return;
      task.splits = splits;
      task.no_more = no_more;
      task.asked = false;
    });
  });
}

// What the dispatcher does by itself: make durable, look for the dead, place.
void Run::Tick() {
  Flush();
  for (const auto& [id, seen] : std::map(client_seen_)) {
    auto reader = durable_.record.FindReader(id);
    if (!reader || durable_.record.readers[*reader].standing != Standing::kLiving ||
        clock_.now() - seen <= 2 * kLease)
      continue;
    Settle(OnReaderDead(durable_.record, desk_, id));
  }
  for (const auto& [id, seen] : std::map(worker_seen_)) {
    if (clock_.now() - seen <= kLease) continue;
    worker_seen_.erase(id);
    registered_.erase(id);
    workers_.at(id).from_dispatcher.Break();
    Settle(OnWorkerGone(durable_.record, desk_, id));
  }
  for (PartitionId partition : Assignable(durable_.record, desk_)) {
    std::vector<WorkerId> able;
    for (WorkerId id : registered_)
      if (!workers_.at(id).draining) able.push_back(id);
    if (!able.empty() && clock_.OneIn(2))
      Settle(AssignTo(
          durable_.record, desk_, partition,
          able[static_cast<size_t>(clock_.Draw(0, static_cast<int64_t>(able.size()) - 1))]));
  }
  // Somebody comes to read on in the end, where all have died.
  if (failures_left_ <= 0 && std::none_of(clients_.begin(), clients_.end(),
                                          [](const auto& entry) { return entry.second.running; }))
    StartClient();
  clock_.After(clock_.Draw(1, 10), [this] { Tick(); });
}

void Run::RestartDispatcher() {
  journal_.resize(flushed_);
  outbox_.clear();
  Durable recovered;
  recovered.record.keep = durable_.record.keep;
  for (const Journaled& change : journal_) recovered.Apply(change);
  durable_ = std::move(recovered);
  desk_ = OpenDesk(durable_.record, broken_);
  registered_.clear();
  worker_seen_.clear();
  client_seen_.clear();
  client_stream_.clear();
  // Lease clocks start anew.
  for (const ReaderRecord& reader : durable_.record.readers)
    client_seen_[reader.client] = clock_.now();
  for (const PartitionRecord& partition : durable_.record.partitions)
    if (partition.worker) worker_seen_[partition.worker] = clock_.now();
  for (auto& [id, client] : clients_) {
    client.to_dispatcher.Break();
    client.from_dispatcher.Break();
    if (client.running) Present(client);
  }
  for (auto& [id, worker] : workers_) {
    worker.to_dispatcher.Break();
    worker.from_dispatcher.Break();
    if (worker.running) Register(worker);
  }
}

// --- Clients ---------------------------------------------------------------------

ClientId Run::StartClient() {
  const ClientId id(++names_);
  Client& client = clients_[id];
  client.id = id;
  StartProcess(client);
  return id;
}

void Run::StartProcess(Client& client) {
  client.running = true;
  client.paused = client.leaving = client.welcomed = client.end = false;
  client.pending.reset();
  client.incarnation = Incarnation(++names_);
  client.receivers.clear();
  for (auto& [id, worker] : workers_) worker.links[client.id].landed.clear();
  client.last_heard = clock_.now();
  Present(client);
  clock_.After(1, [this, id = client.id, i = client.incarnation] { Act(id, i); });
}

Receiver& Run::ReceiverOf(Client& client, PartitionId partition) {
  auto found = client.receivers.find(partition);
  if (found == client.receivers.end()) {
    const IndexSet taken = client.written.size() >= partition.value() && states_
                               ? Of(client.written, partition)
                               : IndexSet{};
    found = client.receivers.emplace(partition, Receiver(partition, taken, broken_)).first;
  }
  return found->second;
}

void Run::Send(Client& client, std::function<void()> arrives) {
  client.to_dispatcher.Send(clock_, [this, id = client.id, incarnation = client.incarnation,
                                     arrives = std::move(arrives)] {
    if (client_stream_[id] == incarnation) client_seen_[id] = clock_.now();
    clients_.at(id).last_heard = clock_.now();  // the answer of a heartbeat, say
    arrives();
  });
}

void Run::Present(Client& client) {
  Presents presents{client.id, client.incarnation, client.from_state};
  for (auto& [partition, receiver] : client.receivers) receiver.OnPresented();
  Send(client, [this, presents] {
    client_stream_[presents.client] = presents.incarnation;
    client_seen_[presents.client] = clock_.now();
    Settle(OnPresents(durable_.record, desk_, presents));
  });
  auto again = [this, id = client.id, incarnation = client.incarnation] {
    return std::make_tuple(this, id, incarnation);
  };
  if (client.pending)
    Send(client, [this, a = again(), commit = *client.pending] {
      Settle(OnCommit(durable_.record, desk_, std::get<1>(a), std::get<2>(a), commit));
    });
  if (client.leaving) {
    Leave leave;
    for (auto& [partition, receiver] : client.receivers)
      At(leave.taken, partition) = receiver.taken();
    Send(client, [this, a = again(), leave] {
      Settle(OnLeave(durable_.record, desk_, std::get<1>(a), std::get<2>(a), leave));
    });
  }
}

void Run::Report(Client& client) {
  for (auto& [partition, receiver] : client.receivers)
    if (auto news = receiver.News())
      Send(client, [this, id = client.id, incarnation = client.incarnation, news = *news] {
        Settle(OnReport(durable_.record, desk_, id, incarnation, news));
      });
}

// A client's process: takes, reports, writes, commits, dials.
void Run::Act(ClientId id, Incarnation incarnation) {
  Client& client = clients_.at(id);
  if (!client.running || client.incarnation != incarnation) return;
  clock_.After(clock_.Draw(1, 6), [this, id, incarnation] { Act(id, incarnation); });
  if (client.paused || client.leaving) return;
  Send(client, [] {});  // heartbeat
  if (!client.welcomed) return;
  for (auto& [worker_id, worker] : workers_)
    if (worker.running && !worker.links[id].up) Dial(client, worker);
  // Rule 6: without word from the dispatcher it stops before it is declared dead.
  const bool leased = clock_.now() - client.last_heard < kLease;
  std::vector<std::pair<PartitionId, Index>> landed;
  for (auto& [partition, receiver] : client.receivers)
    for (const auto& interval : receiver.landed().intervals())
      for (Index i = interval.begin; i < interval.end; ++i) landed.emplace_back(partition, i);
  if (leased && !landed.empty() && !clock_.OneIn(3)) {
    auto [partition, index] =
        landed[static_cast<size_t>(clock_.Draw(0, static_cast<int64_t>(landed.size()) - 1))];
    client.receivers.at(partition).OnTaken(index);
  }
  if (clock_.OneIn(3)) Report(client);
  if (!states_ || !clock_.OneIn(8)) return;
  Holdings state;
  for (auto& [partition, receiver] : client.receivers) At(state, partition) = receiver.taken();
  client.written = state;
  if (client.pending || clock_.OneIn(3)) return;  // written, and not (yet) committed
  client.pending = Commit{++client.commits, state};
  Send(client, [this, id, incarnation, commit = *client.pending] {
    Settle(OnCommit(durable_.record, desk_, id, incarnation, commit));
  });
}

void Run::Dial(Client& client, Worker& worker) {
  Link& link = worker.links[client.id];
  link.up = true;
  link.to_worker.Break();
  link.to_client.Break();
  link.dialled = ++link.dials;
  link.to_worker.Send(clock_, [&worker, &link, id = client.id, i = client.incarnation,
                               number = link.dialled, holdings = link.landed] {
    if (!worker.running || link.accepted == number) return;  // or said twice
    link.accepted = number;
    link.open = true;
    link.incarnation = i;
    for (auto& [partition, task] : worker.tasks) {
      if (!task.sender) continue;
      auto held = holdings.find(partition);
      task.sender->OnLinkUp(id, i, held == holdings.end() ? IndexSet{} : held->second);
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

// --- Workers ---------------------------------------------------------------------

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
  std::vector<Held> held;
  for (auto& [partition, task] : worker.tasks) {
    if (task.sender) held.push_back({partition, task.sender->placement()});
    task.said_end = task.asked = false;
    task.said_bookmark = 0;
  }
  Send(worker, [this, id = worker.id, held] {
    registered_.insert(id);
    worker_seen_[id] = clock_.now();
    Settle(OnWorkerRegisters(durable_.record, desk_, id, held));
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

// A worker's process: produces, sends, says where it is and when it is done.
void Run::Act(WorkerId id) {
  Worker& worker = workers_.at(id);
  if (!worker.running) return;
  clock_.After(clock_.Draw(1, 4), [this, id] { Act(id); });
  if (worker.paused) return;
  Send(worker, [this, id] {  // heartbeat; one declared dead by mistake registers anew
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
        if (std::exchange(link.landed_on, number) != number) link.landed.clear();
        if (ReceiverOf(client, partition).OnElement(g, index) != Landing::kOldPlacement)
          link.landed[partition].Add(index);
        link.to_worker.Send(clock_, [&worker, to, partition, g, index] {
          Task& sent = worker.tasks[partition];
          if (sent.sender && sent.sender->placement() == g)
            sent.sender->OnLanded(to, IndexSet::Of(index, index + 1));
        });
      });
  }
  if (sender.next() > task.said_bookmark && clock_.OneIn(5)) {
    task.said_bookmark = sender.next();
    const Bookmark bookmark{sender.next(), absl::StrCat(sender.next())};
    Send(worker, [this, id = worker.id, partition, g, bookmark] {
      Settle(OnBookmark(durable_.record, desk_, id, partition, g, bookmark));
    });
  }
  if (sender.ended() && !task.said_end) {
    task.said_end = true;
    Send(worker, [this, id = worker.id, partition, g, end = *sender.end()] {
      Settle(OnEnded(durable_.record, desk_, id, partition, g, end));
    });
  }
}

// Both ends notice, at different times; what was under way is gone.
void Run::BreakLink(Worker& worker, ClientId id) {
  Link& link = worker.links[id];
  link.to_client.Break();
  link.to_worker.Break();
  link.dialled = 0;
  clock_.After(clock_.Draw(0, 30), [&link] { link.up = false; });
  if (clock_.OneIn(4)) return;  // the worker learns it only when the client dials again
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
  switch (clock_.Draw(0, 9)) {
    case 0:  // a worker dies, another is started
      if (worker.running) KillWorker(worker);
      StartWorker();
      break;
    case 1:  // stops, is declared dead or not, and goes on
      worker.paused = true;
      clock_.After(clock_.Draw(10, 3 * kLease), [&worker] { worker.paused = false; });
      break;
    case 2:  // a client dies; it comes back from its state, or another one joins
      KillClient(client);
      if (states_ && !clock_.OneIn(3))
        clock_.After(clock_.Draw(1, 3 * kLease), [this, id = client.id] { Restart(id); });
      if (living.size() == 1 || clock_.OneIn(2)) StartClient();
      break;
    case 3:  // a client stops for longer than its lease, or less
      client.paused = true;
      clock_.After(clock_.Draw(10, 4 * kLease), [&client] { client.paused = false; });
      if (living.size() == 1) StartClient();
      break;
    case 4:
      RestartDispatcher();
      break;
    case 5:
    case 6:
      if (worker.links[client.id].up) BreakLink(worker, client.id);
      break;
    case 7: {  // the client's stream to the dispatcher breaks
      client.to_dispatcher.Break();
      client.from_dispatcher.Break();
      OnDisconnects(durable_.record, desk_, client.id);
      Present(client);
      break;
    }
    case 8:  // drain one, or move a partition
      if (clock_.OneIn(2) && worker.running) {
        worker.draining = true;
        StartWorker();
        Settle(OnWorkerGone(durable_.record, desk_, worker.id));
      } else {
        Settle(OnRelieve(durable_.record, desk_,
                         PartitionId(static_cast<uint64_t>(clock_.Draw(
                             1, static_cast<int64_t>(durable_.record.partitions.size()))))));
      }
      break;
    case 9:  // one joins, or leaves
      if (living.size() == 1 || clock_.OneIn(2)) {
        StartClient();
      } else if (!client.end) {
        client.leaving = true;
        Present(client);  // says Leave
      }
      break;
  }
}

// --- What must hold --------------------------------------------------------------

bool Run::Done() const {
  if (failures_left_ > 0) return false;
  // Closed; or opened again, and nobody is left to read what is owed.
  for (const PartitionRecord& partition : durable_.record.partitions)
    if (!partition.end) return false;
  for (const ReaderRecord& reader : durable_.record.readers)
    if (reader.reads()) return false;
  for (const auto& [id, client] : clients_) {
    auto reader = durable_.record.FindReader(id);
    const bool living = reader && durable_.record.readers[*reader].standing == Standing::kLiving;
    if (!client.running) {
      if (living && !durable_.record.finished) return false;  // to be declared dead
      continue;
    }
    if (client.paused || client.leaving || !client.welcomed || !client.end) return false;
    for (const auto& [partition, receiver] : client.receivers)
      if (!receiver.landed().empty()) return false;
  }
  return true;
}

std::string Run::Tell() const {
  std::string text;
  const IterationRecord& record = durable_.record;
  absl::StrAppend(&text, "\n", record.closed ? "closed" : "open", " splits given ",
                  durable_.next_split, " of ", rows_.size());
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionRecord& partition = record.partitions[p];
    absl::StrAppend(&text, "\n", ToString(PartitionId(p + 1)), " g ", partition.placement.value(),
                    " on ", ToString(partition.worker), " ended ",
                    desk_.partitions[p].ended.value_or(-1));
    for (size_t r = 0; r < record.readers.size(); ++r)
      absl::StrAppend(&text, "\n  ", ToString(record.readers[r].client), " standing ",
                      static_cast<int>(record.readers[r].standing),
                      record.readers[r].told_end ? " told end" : "", " heard at ",
                      desk_.partitions[p].readers[r].at.value(), " has ",
                      desk_.partitions[p].readers[r].has.ToString(), " kept ",
                      Of(record.readers[r].kept, PartitionId(p + 1)).ToString());
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

// By element: each in one history.
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
      const bool lives = reader.standing == Standing::kLiving && client.running;
      auto receiver = client.receivers.find(id);
      const IndexSet history = !lives                               ? Of(reader.kept, id)
                               : receiver == client.receivers.end() ? IndexSet{}
                                                                    : receiver->second.taken();
      for (const auto& interval : history.intervals())
        for (Index i = interval.begin; i < interval.end; ++i) {
          PENSTOCK_CHECK(i < size);
          ++times[static_cast<size_t>(i)];
        }
    }
    const IndexSet owed = Owed(durable_.record, id);
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
  states_ = clock_.OneIn(2);
  const int64_t wanted = clock_.Draw(20, 200);
  while (outcome_.elements < wanted) {
    rows_.push_back(clock_.Draw(0, 12));
    outcome_.elements += rows_.back();
  }
  durable_.record.keep = states_ ? KeepPolicy::kCommitted : KeepPolicy::kTaken;
  desk_ = OpenDesk(durable_.record, broken_);
  const int64_t partitions = clock_.Draw(1, 4);
  for (int64_t p = 0; p < partitions; ++p) Settle(OpenPartition(durable_.record, desk_));
  for (int64_t w = clock_.Draw(1, 4); w > 0; --w) StartWorker();
  for (int64_t c = clock_.Draw(1, 4); c > 0; --c) StartClient();
  failures_left_ = static_cast<int>(clock_.Draw(0, 12));
  clock_.After(clock_.Draw(5, 200), [this] { Fail(); });
  Tick();
  while (outcome_.fault.empty() && !Done() && clock_.Step())
    if (clock_.now() > kTooLong) outcome_.fault = "stuck: not all have shown the end" + Tell();
  if (outcome_.fault.empty()) {
    Check();
    if (!outcome_.fault.empty()) outcome_.fault += Tell();
  }
  outcome_.events = clock_.count();
  return outcome_;
}

}  // namespace

Outcome RunSchedule(uint64_t seed, Broken broken) {
  return Run(seed, broken).Play();
}

}  // namespace penstock::protocol
