// SPDX-License-Identifier: Apache-2.0
// One schedule being played: its dispatcher, clients and workers, with the code that surrounds the
// protocol's machines in the program.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/receiver.h"
#include "control/protocol/sender.h"
#include "tests/control/protocol/schedule.h"
#include "tests/control/protocol/schedule_clock.h"

namespace penstock::protocol::schedule {

inline constexpr int64_t kLease = 400;  // silence after which a process is declared dead

struct SplitGiven {
  PartitionId partition;
  int64_t split;
};
using Journaled = std::variant<IterationChange, SplitGiven>;

// The state that the dispatcher's journal makes.
struct Durable {
  IterationRecord record;
  std::vector<std::vector<int64_t>> given;  // splits of each partition
  std::vector<Index> retired;               // by partition: no replay goes below this index
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
  Run(uint64_t seed, Broken broken, std::optional<Fault> only)
      : clock_(seed), broken_(broken), only_(only), audiences_(seed % 2 == 0) {}
  Outcome Play();

 private:
  struct Client {
    ClientId id;
    Incarnation incarnation;
    bool running = false;  // the process
    bool over = false;     // the session was refused, has left, or is dead for good
    bool paused = false;
    bool slow = false;  // takes rarely: others wait for its elements
    bool leaving = false;
    bool welcomed = false;
    bool end = false;
    // Every second client reports all it has (rule 33). `awaits_welcome`: on its new stream;
    // `owes_completion`: it has not said yet that it has reported all; `named`: by its Welcome, or
    // reported since.
    bool reports_all() const { return id.value() % 2 == 0; }
    bool awaits_welcome = false;
    bool owes_completion = false;
    std::set<PartitionId> named;
    int64_t last_heard = 0;  // for its lease, by its own clock
    std::optional<ReceivedSets> from_state;
    ReceivedSets written;  // the newest state on its disk
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
    // The elements received on the newest connection that carried any, and their placements. The
    // client presents only these on the next connection (rule 5): elements of an earlier placement
    // may have been given back.
    std::map<std::pair<PartitionId, Placement>, IndexSet> received;
    int received_on = 0;
    Pipe to_client, to_worker;
  };
  struct Task {
    std::optional<Sender> sender;
    Placement highest;
    std::vector<int64_t> splits;
    bool no_more = false;
    bool asked = false;
    bool sent_end = false;
    Index sent_bookmark = 0;
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
  void Place(PartitionId partition, WorkerId worker);
  IndexSet DrawReaders();
  void RestartDispatcher();
  void SendToClient(ClientId client, Incarnation incarnation, std::function<void(Client&)> handler);
  void SendToWorker(WorkerId worker, std::function<void(Worker&)> handler);
  void OnSplitRequest(WorkerId worker, PartitionId partition, Placement placement, size_t have);
  // --- clients ---
  ClientId StartClient();
  void StartProcess(Client& client);
  void OpenStream(Client& client);
  void Send(Client& client, std::function<void()> arrives);
  void Act(ClientId id, Incarnation incarnation);
  void Report(Client& client);
  bool ReportsPartitions(Client& client);
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
  void Drain(Worker& worker);
  void Request(Worker& worker, PartitionId partition, Task& task);
  // --- failures ---
  void Fail();
  void Strike(Fault fault, Worker& worker, Client& client, bool last_client);
  std::vector<ClientId> Living() const;
  // --- checks -----------
  bool Done() const;
  std::string Describe() const;  // the state of the run, to explain a fault
  void Check();
  int64_t RowsBefore(const std::vector<int64_t>& splits, size_t count) const;

  Clock clock_;
  Broken broken_;
  std::optional<Fault> only_;
  bool audiences_;  // most assignments name some of the readers
  Outcome outcome_;
  bool states_ = false;
  std::vector<int64_t> rows_;  // of each split
  int failures_left_ = 0;
  uint64_t names_ = 0;

  Durable durable_;  // the dispatcher's copy in memory
  IterationContext context_;
  std::vector<Journaled> journal_;
  size_t flushed_ = 0;
  std::deque<std::pair<size_t, std::function<void()>>> outbox_;  // (journal length needed, message)
  std::map<ClientId, int64_t> client_seen_;
  std::map<ClientId, Incarnation> client_stream_;
  std::map<WorkerId, int64_t> worker_seen_;
  std::set<WorkerId> registered_;

  std::map<ClientId, Client> clients_;
  std::map<WorkerId, Worker> workers_;
};

}  // namespace penstock::protocol::schedule
