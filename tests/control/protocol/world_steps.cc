// SPDX-License-Identifier: Apache-2.0
// The possible next steps, and their effects.
#include <algorithm>
#include <utility>
#include <vector>

#include "tests/control/protocol/world.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {

void World::Take(const Step& step) {
  const int w = step.worker, c = step.client, p = step.partition;
  Worker& worker = workers_[w];
  Client& client = clients_[c];
  auto pop = [](Channel& channel) {
    const Wire head = channel.front();
    channel.erase(channel.begin());
    return head;
  };
  switch (step.kind) {
    case Step::kToWorker:
      ArrivesAtWorker(w, pop(worker.in));
      break;
    case Step::kFromWorker: {
      const Wire head = pop(worker.out);
      Older older(*this, worker.with_old);
      ArrivesFromWorker(w, head);
      break;
    }
    case Step::kToClient:
      ArrivesAtClient(c, pop(client.in), step.index == 1);
      break;
    case Step::kFromClient: {
      const Wire head = pop(client.out);
      Older older(*this, client.with_old);
      ArrivesFromClient(c, head);
      break;
    }
    case Step::kLeftClient: {
      const Wire head = pop(client.left);
      Older older(*this, step.old);
      ArrivesFromClient(c, head);
      break;
    }
    case Step::kLeftWorker: {
      const Wire head = pop(worker.left);
      Older older(*this, step.old);
      ArrivesFromWorker(w, head);
      break;
    }
    case Step::kLoseWorker: {
      Older older(*this, step.old);
      Settle(OnWorkerGone(record_, context_, WorkerName(w)));
      break;
    }
    case Step::kReturn:
      --left_.returns;
      [[fallthrough]];
    case Step::kTurn:
      Turn(c);
      break;
    case Step::kReturnWorker:
      --left_.returns;
      [[fallthrough]];
    case Step::kTurnWorker:
      TurnWorker(w);
      break;
    case Step::kBeginBeside:
      --left_.second_lives;
      BeginBeside();
      break;
    case Step::kElement:
      ReceiveElement(w, c, pop(worker.links[c]));
      break;
    case Step::kSend: {
      Sender& sender = *worker.senders[p];
      sender.OnSent(ClientName(c), step.index);
      for (const Sender::Served& served : sender.readers())
        if (served.reader.client == ClientName(c))
          worker.links[c].push_back({.kind = Wire::kElement,
                                     .p = Byte(p),
                                     .g = Byte(sender.placement()),
                                     .a = step.index,
                                     .b = Byte(served.reader.incarnation)});
      break;
    }
    case Step::kTake: {
      client.receivers[p].OnDelivered(step.index);
      const ReaderRecord* reader = ReaderOf(c);
      took_when_dead_ |= reader && reader->status == ReaderStatus::kExpired;
      break;
    }
    case Step::kHand:
      client.receivers[p].OnHanded(step.index);
      break;
    case Step::kWrite:
      for (int q = 0; q < scene_->partitions; ++q)
        client.written[q] = Mask(client.receivers[q].delivered());
      client.wrote_beyond = client.beyond;
      break;
    case Step::kCommit:
      client.committed = client.written;
      client.commit_pending = true;
      client.out.push_back({.kind = Wire::kCommit, .a = client.incarnation, .m = client.written});
      break;
    case Step::kDial:
      worker.link_broken[c] = false;
      for (int q = 0; q < scene_->partitions; ++q)
        if (worker.senders[q])
          worker.senders[q]->OnLinkUp(ClientName(c), Incarnation(client.incarnation),
                                      NamedOnDial(w, c, q));
      break;
    case Step::kLearn:
      Learn(c);
      break;
    case Step::kForget:
      --left_.forgets;
      worker.received[static_cast<size_t>(c)] = {};
      break;
    case Step::kAssign: {
      Older older(*this, step.old);
      Place(w, Partition(p), step.index);
      break;
    }
    case Step::kDeclareSplit:
      if (scene_->beside == Beside::kTakenOver)
        client.lapsed = scene_->broken != Broken::kRenewWithoutJournal;
      else
        --left_.split_deaths;
      [[fallthrough]];
    case Step::kDeclareDead: {
      Older older(*this, step.old);
      DeclareDead(c);
      break;
    }
    case Step::kRestart:
    case Step::kLateRestart:
      Restart(c);
      break;
    case Step::kStopWorker:
      --left_.worker_stops;
      worker.lost = true;
      worker.in.clear();
      Settle(OnWorkerGone(record_, context_, WorkerName(w)));
      break;
    case Step::kKillClient:
      --left_.client_deaths;
      client.in.clear();
      if (step.index == 1) client.out.clear();
      if (scene_->states) {
        client.process = Process::kDown;
      } else {
        client.process = Process::kGone;
        DeclareDead(c);
      }
      break;
    case Step::kBreakLink:
      --left_.broken_links;
      worker.link_broken[c] = true;
      worker.links[c].clear();
      for (std::optional<Sender>& sender : worker.senders)
        if (sender) sender->OnLinkBroken(ClientName(c));
      break;
    case Step::kRestartDispatcher:
      --left_.dispatcher_restarts;
      RestartDispatcher();
      break;
    case Step::kCopy:
      copy_ = Copy{record_, retired_};
      changed_ = false;
      break;
    case Step::kBeginFromCopy:
      --left_.old_copies;
      BeginFromCopy();
      break;
    case Step::kBeginEmpty:
      --left_.empty_starts;
      BeginEmpty();
      break;
    case Step::kMove:
      --left_.moves;
      Settle(OnRelieve(record_, context_, Partition(p)));
      break;
    case Step::kAdmit:
      --left_.admissions;
      Settle(ExtendAudience(record_, context_, Partition(p),
                            IndexSet::Of(step.index, step.index + 1)));
      break;
    case Step::kWaits:
      if (!scene_->idle) --left_.waits;
      client.out.push_back({.kind = Wire::kWaits, .a = client.incarnation});
      break;
    case Step::kFollow:
      client.consumer = static_cast<int8_t>(step.index);
      [[fallthrough]];
    case Step::kJoinClient:
      if (step.kind == Step::kJoinClient) --left_.client_joins;
      client.process = Process::kRunning;
      client.incarnation = 1;
      for (int q = 0; q < scene_->partitions; ++q)
        client.receivers.emplace_back(Partition(q), IndexSet{}, scene_->broken);
      OpenStream(c);
      break;
    case Step::kJoinWorker:
      --left_.worker_joins;
      worker.joined = worker.registered = true;
      break;
    case Step::kLeave: {
      --left_.leaves;
      Masks delivered = {};
      for (int q = 0; q < scene_->partitions; ++q)
        delivered[q] = Mask(client.receivers[q].delivered());
      client.out.push_back({.kind = Wire::kLeave, .a = client.incarnation, .m = delivered});
      if (scene_->states) {  // its written state may come back
        client.process = Process::kDown;
      } else {
        client.process = Process::kLeaving;
        client.written = delivered;
      }
      break;
    }
  }
  Tidy();
}

void World::Next(Steps& steps) const {
  steps.clear();
  if (failed_) return;
  auto add = [&](Step::Kind kind, int w, int c, int p = 0, int i = 0) {
    steps.push_back({kind, Byte(w), Byte(c), Byte(p), Byte(i)});
  };
  const bool closed = record_.closed;
  int workers_left = 0;
  for (const Worker& worker : workers_) workers_left += worker.joined && !worker.lost;

  for (int w = 0; w < kMaxWorkers; ++w) {
    const Worker& worker = workers_[w];
    if (!worker.joined) continue;
    if (!worker.in.empty()) add(Step::kToWorker, w, 0);
    if (!worker.out.empty()) add(Step::kFromWorker, w, 0);
    if (left_.worker_stops && !worker.lost && workers_left > 1 && !closed)
      add(Step::kStopWorker, w, 0);
    for (int c = 0; c < kMaxClients; ++c) {
      const Client& client = clients_[c];
      if (!worker.links[c].empty()) add(Step::kElement, w, c);
      if (worker.link_broken[c] && Running(c) && client.welcomed) add(Step::kDial, w, c);
      bool serves = false;
      for (int p = 0; p < scene_->partitions; ++p) {
        const std::optional<Sender>& sender = worker.senders[p];
        if (!sender || !sender->MaySendTo(ClientName(c)) || client.gave_back) continue;
        serves = true;
        if (Running(c) && client.receivers[p].lowest() > sender->placement() &&
            scene_->broken != Broken::kAcceptOldPlacements)
          continue;  // it would be dropped
        const bool again = !sender->again().empty();
        const Index index = again ? sender->again().intervals()[0].begin : sender->next();
        if (!again && (index >= ElementsOf(p) || !HasRoom(p, static_cast<int>(index)))) continue;
        if (scene_->order_consumers &&
            PositionsOf(record_).ConsumerOf(Partition(p), index) != client.consumer)
          continue;
        add(Step::kSend, w, c, p, static_cast<int>(index));
      }
      if (serves && left_.broken_links && Running(c)) add(Step::kBreakLink, w, c);
    }
  }
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (!client.in.empty()) {
      const Wire& head = client.in.front();
      const bool asked = head.kind == Wire::kFence && head.a && Running(c) &&
                         client.receivers[head.p].received() != client.receivers[head.p].handed();
      if (asked) add(Step::kToClient, 0, c, 0, 1);
      if (!asked || !IsIdle(c)) add(Step::kToClient, 0, c);
    }
    if (!client.out.empty()) add(Step::kFromClient, 0, c);
    const ReaderRecord* reader = ReaderOf(c);
    if (client.process == Process::kDown) {
      const bool active = reader && reader->status == ReaderStatus::kActive && !record_.finished;
      if (active) add(Step::kDeclareDead, 0, c);
      add(active ? Step::kRestart : Step::kLateRestart, 0, c);
    }
    // The copy does not know that this client is gone.
    if (scene_->budget.old_copies && client.process == Process::kGone && reader &&
        reader->status == ReaderStatus::kActive && !record_.finished)
      add(Step::kDeclareDead, 0, c);
    if (client.process == Process::kAbsent && left_.client_joins) {
      add(Step::kJoinClient, 0, c);
      break;  // all later ones are absent too
    }
    if (!Running(c) || !client.welcomed) continue;
    if (MayWait(c)) add(Step::kWaits, 0, c);
    bool write = false;
    if (!IsIdle(c)) AddTakes(c, steps);
    for (int p = 0; p < scene_->partitions; ++p)
      write |= client.written[p] != Mask(client.receivers[p].delivered());
    if (scene_->states) {
      if (write) add(Step::kWrite, 0, c);
      if (client.written != client.committed && !client.commit_pending) add(Step::kCommit, 0, c);
    }
    if (left_.client_deaths) {
      add(Step::kKillClient, 0, c, 0, 1);
      if (scene_->states && !client.out.empty()) add(Step::kKillClient, 0, c, 0, 0);
    }
    if (left_.leaves && (!client.end || scene_->behind)) add(Step::kLeave, 0, c);
  }
  if (scene_->order_consumers) AddFollowers(steps);
  AddAssignments(steps);
  if (left_.moves && !closed)
    for (int p = 0; p < scene_->partitions; ++p)
      if (!record_.partitions[p].collecting()) add(Step::kMove, 0, 0, p);
  if (left_.dispatcher_restarts) add(Step::kRestartDispatcher, 0, 0);
  if (left_.old_copies) add(copy_ ? Step::kBeginFromCopy : Step::kCopy, 0, 0);
  if (left_.second_lives) {
    if (scene_->beside == Beside::kCopy && !copy_) add(Step::kCopy, 0, 0);
    add(Step::kBeginBeside, 0, 0);
  }
  AddStepsOfTwo(steps);
  if (left_.forgets) AddForgets(steps);
  if (left_.empty_starts) add(Step::kBeginEmpty, 0, 0);
  if (left_.worker_joins && !closed)
    for (int w = 0; w < kMaxWorkers; ++w)
      if (!workers_[w].joined) {
        add(Step::kJoinWorker, w, 0);
        break;
      }
}

void World::AddAssignments(Steps& steps) const {
  unsigned reads = 0;
  for (size_t r = 0; r < record_.readers.size(); ++r) reads |= record_.readers[r].reads() << r;
  const auto add = [&](Step::Kind kind, int w, PartitionId partition, unsigned index) {
    steps.push_back({kind, Byte(w), 0, Byte(At(partition)), Byte(index)});
  };
  for (PartitionId partition : Assignable(record_, context_))
    for (int w = 0; w < kMaxWorkers; ++w) {
      if (!workers_[w].registered || workers_[w].lost || workers_[w].with_old) continue;
      if (!scene_->audiences) add(Step::kAssign, w, partition, 0);
      for (unsigned mask = 1; scene_->audiences && mask <= reads; ++mask)
        if ((mask & ~reads) == 0) add(Step::kAssign, w, partition, mask);
    }
  if (!left_.admissions || record_.closed) return;
  for (int p = 0; p < scene_->partitions; ++p)
    for (size_t r = 0; r < record_.readers.size(); ++r)
      if (!record_.partitions[p].collecting() && record_.readers[r].reads() &&
          !record_.partitions[p].MayServe(r))
        add(Step::kAdmit, 0, Partition(p), static_cast<unsigned>(r));
}

// A policy that wants readers which have not answered yet fences them first.
void World::Place(int w, PartitionId partition, uint8_t audience) {
  std::optional<IndexSet> readers;
  if (scene_->audiences) readers = Set(audience);
  const IndexSet must = MustAnswer(record_, context_, partition, readers);
  Settle(must.empty() ? AssignTo(record_, context_, partition, WorkerName(w), readers)
                      : ExtendAudience(record_, context_, partition, must));
}

// Beside an idle client, it sends Waits whenever the last one was not received, or something was
// given back for it.
bool World::MayWait(int c) const {
  const Client& client = clients_[c];
  if (client.end || record_.closed || HasReceived(c) || IsIdle(c)) return false;
  if (!scene_->idle) return left_.waits > 0;
  const auto said = [](const Wire& wire) { return wire.kind == Wire::kWaits; };
  const std::optional<size_t> reader = record_.FindReader(ClientName(c));
  return reader && !context_.waits[*reader] &&
         std::none_of(client.out.begin(), client.out.end(), said);
}

bool World::HasReceived(int c) const {
  for (const Receiver& receiver : clients_[c].receivers)
    if (receiver.received() != receiver.handed()) return true;
  return false;
}

// Adds what Next() may return: any received element, or the one that is next in order. Nodes may
// return any element that they hold.
void World::AddTakes(int c, Steps& steps) const {
  const Client& client = clients_[c];
  if (client.lapsed) return;
  const auto add = [&](int p, int64_t index) {
    const bool hand = scene_->behind && !client.receivers[p].handed().Contains(index);
    if (!hand && scene_->behind == Scene::kUntilTheEnd && !client.end) return;
    steps.push_back({hand ? Step::kHand : Step::kTake, 0, Byte(c), Byte(p), Byte(index)});
  };
  if (scene_->order_consumers) {
    const std::optional<protocol::PartitionRow> next = QueueOf(c).Next();
    if (next && client.receivers[At(next->partition)].received().Contains(next->row))
      add(At(next->partition), next->row);
    return;
  }
  for (int p = 0; p < scene_->partitions; ++p)
    for (const IndexSet::Interval& i : client.receivers[p].received().intervals())
      for (Index index = i.begin; index < i.end; ++index) add(p, index);
}

// --- Order kDeterministic ----------------------------------------------------------

uint8_t World::IndicesOf(int c, int p, uint8_t rows) const {
  if (!scene_->order_consumers) return rows;
  RowUnion row_union(PositionsOf(record_), Partition(p));
  row_union.Add(clients_[c].consumer, Set(rows));
  return Mask(std::move(row_union).Indices());
}

uint8_t World::RowOf(int index) const {
  return scene_->order_consumers ? Byte(PositionsOf(record_).RowOf(index)) : Byte(index);
}

OrderQueue World::QueueOf(int c) const {
  const Client& client = clients_[c];
  std::vector<IndexSet> passed;
  for (int p = 0; p < scene_->partitions; ++p) {
    passed.push_back(Set(client.passed[p]));
    passed.back().Add(client.receivers[p].delivered());
  }
  OrderQueue queue(PositionsOf(record_), client.consumer, std::move(passed));
  for (int p = 0; p < scene_->partitions; ++p)
    if (record_.closed || context_.partitions[p].ended) queue.SetEnd(Partition(p), ElementsOf(p));
  return queue;
}

// Whether every reader has got all its elements of the partition below the last row.
bool World::HasRoom(int p, int index) const {
  if (!scene_->order_consumers) return true;
  const Positions positions = PositionsOf(record_);
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (!Running(c) || client.end || !positions.OffsetOf(Partition(p), client.consumer)) continue;
    if (!client.welcomed) return false;
    if (index >= *QueueOf(c).NextOf(Partition(p)) + positions.stride()) return false;
  }
  return true;
}

// Adds new processes with the number of a consumer that will not come back.
void World::AddFollowers(Steps& steps) const {
  if (record_.finished) return;
  for (int number = 0; number < record_.order_consumers; ++number) {
    int absent = -1;
    bool there = false;
    for (int c = 0; c < kMaxClients; ++c) {
      const Process process = clients_[c].process;
      if (process == Process::kAbsent) absent = absent < 0 ? c : absent;
      if (process == Process::kAbsent || clients_[c].consumer != number) continue;
      const ReaderRecord* reader = ReaderOf(c);
      there |= process == Process::kDown ? reader && reader->status == ReaderStatus::kActive
                                         : process != Process::kGone;
    }
    if (!there && absent >= 0) steps.push_back({Step::kFollow, 0, Byte(absent), 0, Byte(number)});
  }
}

}  // namespace penstock::protocol
