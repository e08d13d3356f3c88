// SPDX-License-Identifier: Apache-2.0
#include "tests/control/protocol/world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/check.h"

namespace penstock::protocol {
namespace {

PartitionId Partition(int p) {
  return PartitionId(static_cast<uint64_t>(p) + 1);
}
ClientId ClientName(int c) {
  return ClientId(static_cast<uint64_t>(c) + 1);
}
WorkerId WorkerName(int w) {
  return WorkerId(static_cast<uint64_t>(w) + 1);
}
int At(PartitionId id) {
  return static_cast<int>(id.value()) - 1;
}
int At(ClientId id) {
  return static_cast<int>(id.value()) - 1;
}
int At(WorkerId id) {
  return static_cast<int>(id.value()) - 1;
}
uint8_t Byte(auto number) {
  return static_cast<uint8_t>(number);
}
uint8_t Byte(Placement g) {
  return static_cast<uint8_t>(g.value());
}
uint8_t Byte(Incarnation i) {
  return static_cast<uint8_t>(i.value());
}

uint8_t Mask(const IndexSet& set) {
  unsigned mask = 0;
  for (const IndexSet::Interval& i : set.intervals()) mask |= (1u << i.end) - (1u << i.begin);
  return static_cast<uint8_t>(mask);
}

IndexSet Set(uint8_t mask) {
  IndexSet set;
  for (int i = 0; i < 8; ++i)
    if (mask >> i & 1) set.Add(i);
  return set;
}

template <class Masks>
Masks MasksOf(const Holdings& holdings) {
  Masks masks = {};
  for (size_t p = 0; p < holdings.size(); ++p) masks[p] = Mask(holdings[p]);
  return masks;
}

template <class Masks>
Holdings HoldingsOf(const Masks& masks, int partitions) {
  Holdings holdings;
  for (int p = 0; p < partitions; ++p) holdings.push_back(Set(masks[static_cast<size_t>(p)]));
  return holdings;
}

void EraseIf(Channel& channel, auto moot) {
  channel.erase(std::remove_if(channel.begin(), channel.end(), moot), channel.end());
}

// Two bits for each client: the incarnation that is a reader.
uint8_t ReadersByte(const Readers& readers) {
  unsigned byte = 0;
  for (const Reader& reader : readers) byte |= Byte(reader.incarnation) << (2 * At(reader.client));
  return static_cast<uint8_t>(byte);
}

Readers ReadersOf(uint8_t byte) {
  Readers readers;
  for (int c = 0; c < kMaxClients; ++c)
    if (int incarnation = byte >> (2 * c) & 3)
      readers.push_back({ClientName(c), Incarnation(static_cast<uint64_t>(incarnation))});
  return readers;
}

}  // namespace

World::World(const Scene& scene) : scene_(&scene), left_(scene.budget) {
  record_.keep = scene.states ? KeepPolicy::kCommitted : KeepPolicy::kTaken;
  desk_ = OpenDesk(record_, scene.broken);
  for (int p = 0; p < scene.partitions; ++p) Settle(OpenPartition(record_, desk_));
  for (int w = 0; w < scene.workers; ++w) workers_[w].joined = workers_[w].registered = true;
  for (int c = 0; c < scene.clients; ++c) {
    Client& client = clients_[c];
    client.process = Process::kRunning;
    client.incarnation = 1;
    for (int p = 0; p < scene.partitions; ++p)
      client.receivers.emplace_back(Partition(p), IndexSet{}, scene.broken);
    Present(c);
    ArrivesFromClient(c, client.out.front());
    client.out.clear();
    ArrivesAtClient(c, client.in.front());
    client.in.clear();
  }
  Tidy();
}

// --- The dispatcher --------------------------------------------------------------

void World::Settle(Decision decision) {
  do {
    for (const IterationChange& change : decision.changes) {
      Apply(record_, change);
      if (const auto* retired = std::get_if<BookmarksRetired>(&change))
        retired_[static_cast<size_t>(At(retired->partition))] = Byte(retired->below);
    }
    for (const Message& message : decision.messages) Post(message);
    decision = Consequences(record_, desk_);
  } while (!decision.empty());
}

void World::Post(const Message& message) {
  auto to_client = [&](ClientId id, Incarnation incarnation, const Wire& wire) {
    Client& client = clients_[At(id)];
    if ((client.process == Process::kRunning || client.process == Process::kLeaving) &&
        client.incarnation == Byte(incarnation))
      client.in.push_back(wire);
  };
  auto to_worker = [&](WorkerId id, const Wire& wire) {
    Worker& worker = workers_[At(id)];
    if (worker.registered && !worker.lost) worker.in.push_back(wire);
  };
  std::visit(
      [&](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, Welcome>) {
          Wire wire{.kind = Wire::kWelcome};
          for (const Placed& placed : m.placements)
            wire.m[static_cast<size_t>(At(placed.partition))] = Byte(placed.placement);
          to_client(m.client, m.incarnation, wire);
        } else if constexpr (std::is_same_v<M, Refused>) {
          to_client(m.client, m.incarnation, {.kind = Wire::kRefused});
        } else if constexpr (std::is_same_v<M, Fence>) {
          to_client(m.client, m.incarnation,
                    {.kind = Wire::kFence, .p = Byte(At(m.partition)), .g = Byte(m.placement)});
        } else if constexpr (std::is_same_v<M, End>) {
          to_client(m.client, m.incarnation, {.kind = Wire::kEnd});
        } else if constexpr (std::is_same_v<M, CommitDone>) {
          to_client(m.client, m.incarnation, {.kind = Wire::kCommitDone});
        } else if constexpr (std::is_same_v<M, LeaveDone>) {
          to_client(m.client, m.incarnation, {.kind = Wire::kLeaveDone});
        } else if constexpr (std::is_same_v<M, Assign>) {
          replays_what_is_gone_ |=
              (m.bookmark ? m.bookmark->index : 0) < retired_[static_cast<size_t>(At(m.partition))];
          to_worker(m.worker, {.kind = Wire::kAssign,
                               .p = Byte(At(m.partition)),
                               .g = Byte(m.placement),
                               .a = Byte(m.bookmark ? m.bookmark->index : 0),
                               .m = {Mask(m.skip), ReadersByte(m.readers)}});
        } else if constexpr (std::is_same_v<M, AddReader>) {
          to_worker(m.worker, {.kind = Wire::kAddReader,
                               .p = Byte(At(m.partition)),
                               .g = Byte(m.placement),
                               .a = Byte(At(m.reader.client)),
                               .b = Byte(m.reader.incarnation)});
        } else {
          static_assert(std::is_same_v<M, Unassign>);
          to_worker(m.worker,
                    {.kind = Wire::kUnassign, .p = Byte(At(m.partition)), .g = Byte(m.placement)});
        }
      },
      message);
}

void World::ArrivesFromClient(int c, const Wire& wire) {
  const ClientId id = ClientName(c);
  const Incarnation incarnation(wire.a);
  switch (wire.kind) {
    case Wire::kPresents: {
      Presents presents{id, incarnation, std::nullopt};
      if (wire.b) presents.state = HoldingsOf(wire.m, scene_->partitions);
      return Settle(OnPresents(record_, desk_, presents));
    }
    case Wire::kReport: {
      const Report report{Partition(wire.p), Placement(wire.g), Set(wire.m[0]), Set(wire.m[1])};
      return Settle(OnReport(record_, desk_, id, incarnation, report));
    }
    case Wire::kCommit:
      return Settle(
          OnCommit(record_, desk_, id, incarnation, {1, HoldingsOf(wire.m, scene_->partitions)}));
    case Wire::kLeave:
      Settle(OnLeave(record_, desk_, id, incarnation, {HoldingsOf(wire.m, scene_->partitions)}));
      return NoteWhatNobodyCanRead();
    default:
      PENSTOCK_CHECK(false);
  }
}

void World::ArrivesFromWorker(int w, const Wire& wire) {
  const WorkerId id = WorkerName(w);
  switch (wire.kind) {
    case Wire::kRegisters: {
      absl::InlinedVector<Held, kMaxPartitions> held;
      for (int p = 0; p < scene_->partitions; ++p)
        if (wire.m[static_cast<size_t>(p)])
          held.push_back({Partition(p), Placement(wire.m[static_cast<size_t>(p)])});
      workers_[w].registered = true;
      return Settle(OnWorkerRegisters(record_, desk_, id, held));
    }
    case Wire::kEnded:
      return Settle(
          OnEnded(record_, desk_, id, Partition(wire.p), Placement(wire.g), scene_->elements));
    case Wire::kBookmark:
      return Settle(OnBookmark(record_, desk_, id, Partition(wire.p), Placement(wire.g),
                               {.index = wire.a, .bytes = {}}));
    default:
      PENSTOCK_CHECK(false);
  }
}

void World::DeclareDead(int c) {
  Settle(OnReaderDead(record_, desk_, ClientName(c)));
  NoteWhatNobodyCanRead();
}

void World::NoteWhatNobodyCanRead() {
  for (int p = 0; p < scene_->partitions; ++p) excused_[p] = 0;
  if (!record_.closed) return;
  for (const ReaderRecord& reader : record_.readers)
    if (reader.reads()) return;
  for (int p = 0; p < scene_->partitions; ++p) {
    IndexSet had = Kept(record_, Partition(p));
    for (const ReaderRecord& reader : record_.readers) had.Add(Of(reader.final, Partition(p)));
    excused_[p] = Byte(((1u << scene_->elements) - 1) & ~unsigned{Mask(had)});
  }
}

void World::RestartDispatcher() {
  desk_ = OpenDesk(record_, scene_->broken);
  for (int c = 0; c < kMaxClients; ++c) {
    Client& client = clients_[c];
    client.in.clear();
    client.out.clear();
    if (client.process != Process::kRunning && client.process != Process::kLeaving) continue;
    Present(c);
    if (client.commit_pending)
      client.out.push_back({.kind = Wire::kCommit, .a = client.incarnation, .m = client.committed});
    if (client.process == Process::kLeaving)
      client.out.push_back({.kind = Wire::kLeave, .a = client.incarnation, .m = client.written});
  }
  for (Worker& worker : workers_) {
    worker.registered = false;
    worker.in.clear();
    worker.out.clear();
    if (!worker.joined || worker.lost) continue;
    Wire registers{.kind = Wire::kRegisters};
    for (int p = 0; p < scene_->partitions; ++p) {
      if (worker.senders[p]) registers.m[p] = Byte(worker.senders[p]->placement());
      worker.said_end[p] = false;
      worker.said_bookmark[p] = 0;
    }
    worker.out.push_back(registers);
  }
}

// --- Clients ---------------------------------------------------------------------

void World::Present(int c) {
  Client& client = clients_[c];
  client.out.push_back({.kind = Wire::kPresents,
                        .a = client.incarnation,
                        .b = client.from_state,
                        .m = client.written});
  for (Receiver& receiver : client.receivers) receiver.OnPresented();
}

void World::Restart(int c) {
  Client& client = clients_[c];
  client.process = Process::kRunning;
  ++client.incarnation;
  client.welcomed = client.end = client.commit_pending = false;
  client.from_state = true;
  client.committed = client.written;  // a state it asks to be committed is a new one
  for (Worker& worker : workers_) worker.link_broken[c] = false;
  client.receivers.clear();
  for (int p = 0; p < scene_->partitions; ++p)
    client.receivers.emplace_back(Partition(p), Set(client.written[p]), scene_->broken);
  Present(c);
}

void World::ArrivesAtClient(int c, const Wire& wire) {
  Client& client = clients_[c];
  if (wire.kind == Wire::kLeaveDone || wire.kind == Wire::kRefused) {
    client.process = Process::kGone;
    return;
  }
  if (client.process == Process::kLeaving) return;
  switch (wire.kind) {
    case Wire::kWelcome: {
      for (int p = 0; p < scene_->partitions; ++p)
        client.receivers[p].OnWelcome(Placement(wire.m[p]));
      if (std::exchange(client.welcomed, true)) return;
      client.from_state = false;
      for (int w = 0; w < kMaxWorkers; ++w)
        for (int p = 0; p < scene_->partitions; ++p) ConnectLinks(w, p);
      return;
    }
    case Wire::kFence: {
      const Report report = client.receivers[wire.p].OnFence(Placement(wire.g));
      client.out.push_back({.kind = Wire::kReport,
                            .p = wire.p,
                            .g = Byte(report.placement),
                            .a = client.incarnation,
                            .m = {Mask(report.taken), Mask(report.landed)}});
      return;
    }
    case Wire::kEnd:
      client.end = true;
      return;
    case Wire::kCommitDone:
      client.commit_pending = false;
      return;
    default:
      PENSTOCK_CHECK(false);
  }
}

void World::Lands(int c, const Wire& wire) {
  Client& client = clients_[c];
  if (client.process == Process::kRunning && client.incarnation == wire.b)
    client.receivers[wire.p].OnElement(Placement(wire.g), wire.a);
}

// --- Workers ---------------------------------------------------------------------

void World::ArrivesAtWorker(int w, const Wire& wire) {
  Worker& worker = workers_[w];
  std::optional<Sender>& sender = worker.senders[wire.p];
  const bool current = sender && Byte(sender->placement()) == wire.g;
  switch (wire.kind) {
    case Wire::kAssign: {
      if (sender && Byte(sender->placement()) >= wire.g) return;
      Assign assign{.worker = WorkerName(w),
                    .partition = Partition(wire.p),
                    .placement = Placement(wire.g),
                    .skip = Set(wire.m[0]),
                    .bookmark = std::nullopt,
                    .readers = ReadersOf(wire.m[1])};
      if (wire.a) assign.bookmark = Bookmark{wire.a, {}};
      sender.emplace(assign, scene_->broken);
      worker.said_end[wire.p] = false;
      worker.said_bookmark[wire.p] = wire.a;
      return ConnectLinks(w, wire.p);
    }
    case Wire::kAddReader:
      if (!current) return;
      sender->OnAddReader({ClientName(wire.a), Incarnation(wire.b)});
      return ConnectLinks(w, wire.p);
    case Wire::kUnassign:
      if (current) sender.reset();
      return;
    default:
      PENSTOCK_CHECK(false);
  }
}

// Links that are up serve a placement that is new, or new readers of it.
void World::ConnectLinks(int w, int p) {
  std::optional<Sender>& sender = workers_[w].senders[p];
  if (!sender) return;
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (!client.welcomed || workers_[w].link_broken[c] || client.process == Process::kDown ||
        client.process == Process::kAbsent)
      continue;
    bool served = false;  // already, by this link
    for (const Sender::Served& s : sender->readers())
      served |= s.reader.client == ClientName(c) && s.linked;
    if (!served) sender->OnLinkUp(ClientName(c), Incarnation(client.incarnation), {});
  }
}

// --- Steps -----------------------------------------------------------------------

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
    case Step::kFromWorker:
      ArrivesFromWorker(w, pop(worker.out));
      break;
    case Step::kToClient:
      ArrivesAtClient(c, pop(client.in));
      break;
    case Step::kFromClient:
      ArrivesFromClient(c, pop(client.out));
      break;
    case Step::kElement:
      Lands(c, pop(worker.links[c]));
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
    case Step::kTake:
      client.receivers[p].OnTaken(step.index);
      break;
    case Step::kWrite:
      for (int q = 0; q < scene_->partitions; ++q)
        client.written[q] = Mask(client.receivers[q].taken());
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
                                      client.receivers[q].Has());
      break;
    case Step::kAssign:
      Settle(AssignTo(record_, desk_, Partition(p), WorkerName(w)));
      break;
    case Step::kDeclareDead:
      DeclareDead(c);
      break;
    case Step::kRestart:
    case Step::kLateRestart:
      Restart(c);
      break;
    case Step::kStopWorker:
      --left_.worker_stops;
      worker.lost = true;
      worker.in.clear();
      Settle(OnWorkerGone(record_, desk_, WorkerName(w)));
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
    case Step::kMove:
      --left_.moves;
      Settle(OnRelieve(record_, desk_, Partition(p)));
      break;
    case Step::kJoinClient:
      --left_.client_joins;
      client.process = Process::kRunning;
      client.incarnation = 1;
      for (int q = 0; q < scene_->partitions; ++q)
        client.receivers.emplace_back(Partition(q), IndexSet{}, scene_->broken);
      Present(c);
      break;
    case Step::kJoinWorker:
      --left_.worker_joins;
      worker.joined = worker.registered = true;
      break;
    case Step::kLeave:
      --left_.leaves;
      client.process = Process::kLeaving;
      for (int q = 0; q < scene_->partitions; ++q)
        client.written[q] = Mask(client.receivers[q].taken());
      client.out.push_back({.kind = Wire::kLeave, .a = client.incarnation, .m = client.written});
      break;
  }
  Tidy();
}

void World::Next(Steps& steps) const {
  steps.clear();
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
        if (!sender || !sender->MaySendTo(ClientName(c))) continue;
        serves = true;
        if (Running(c) && client.receivers[p].lowest() > sender->placement() &&
            scene_->broken != Broken::kAcceptOldPlacements)
          continue;  // it would be dropped
        if (!sender->again().empty())
          add(Step::kSend, w, c, p, static_cast<int>(sender->again().intervals()[0].begin));
        else if (sender->next() < scene_->elements)
          add(Step::kSend, w, c, p, static_cast<int>(sender->next()));
      }
      if (serves && left_.broken_links && Running(c)) add(Step::kBreakLink, w, c);
    }
  }
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (!client.in.empty()) add(Step::kToClient, 0, c);
    if (!client.out.empty()) add(Step::kFromClient, 0, c);
    const ReaderRecord* reader = ReaderOf(c);
    if (client.process == Process::kDown) {
      const bool living = reader && reader->standing == Standing::kLiving && !record_.finished;
      if (living) add(Step::kDeclareDead, 0, c);
      add(living ? Step::kRestart : Step::kLateRestart, 0, c);
    }
    if (client.process == Process::kAbsent && left_.client_joins) {
      add(Step::kJoinClient, 0, c);
      break;  // all later ones are absent too
    }
    if (!Running(c) || !client.welcomed) continue;
    bool write = false;
    for (int p = 0; p < scene_->partitions; ++p) {
      for (const IndexSet::Interval& i : client.receivers[p].landed().intervals())
        for (Index index = i.begin; index < i.end; ++index)
          add(Step::kTake, 0, c, p, static_cast<int>(index));
      write |= client.written[p] != Mask(client.receivers[p].taken());
    }
    if (scene_->states) {
      if (write) add(Step::kWrite, 0, c);
      if (client.written != client.committed && !client.commit_pending) add(Step::kCommit, 0, c);
    }
    if (left_.client_deaths) {
      add(Step::kKillClient, 0, c, 0, 1);
      if (scene_->states && !client.out.empty()) add(Step::kKillClient, 0, c, 0, 0);
    }
    if (left_.leaves && !client.end) add(Step::kLeave, 0, c);
  }
  for (PartitionId partition : Assignable(record_, desk_))
    for (int w = 0; w < kMaxWorkers; ++w)
      if (workers_[w].registered && !workers_[w].lost) add(Step::kAssign, w, 0, At(partition));
  if (left_.moves && !closed)
    for (int p = 0; p < scene_->partitions; ++p)
      if (!record_.partitions[p].collecting()) add(Step::kMove, 0, 0, p);
  if (left_.dispatcher_restarts) add(Step::kRestartDispatcher, 0, 0);
  if (left_.worker_joins && !closed)
    for (int w = 0; w < kMaxWorkers; ++w)
      if (!workers_[w].joined) {
        add(Step::kJoinWorker, w, 0);
        break;
      }
}

// --- At once ---------------------------------------------------------------------

void World::Tidy() {
  SpeakUp();
  Clear();
}

// A message said as soon as there is cause, and delivered late, does all that one
// said late does: only its delivery is a step. Reports to be delivered one after
// the other are one.
void World::SpeakUp() {
  for (int c = 0; c < kMaxClients; ++c) {
    Client& client = clients_[c];
    if (client.process != Process::kRunning || !client.welcomed) continue;
    for (Receiver& receiver : client.receivers) {
      auto news = receiver.News();
      if (!news) continue;
      const Wire report{.kind = Wire::kReport,
                        .p = Byte(At(news->partition)),
                        .g = Byte(news->placement),
                        .a = client.incarnation,
                        .m = {Mask(news->taken), Mask(news->landed)}};
      if (!client.out.empty() && client.out.back().kind == Wire::kReport &&
          client.out.back().p == report.p && client.out.back().g == report.g) {
        client.out.back().m[0] |= report.m[0];
        client.out.back().m[1] = Byte((client.out.back().m[1] | report.m[1]) & ~report.m[0]);
      } else {
        client.out.push_back(report);
      }
    }
  }
  for (Worker& worker : workers_) {
    for (int p = 0; p < scene_->partitions; ++p) {
      if (!worker.senders[p]) continue;
      Sender& sender = *worker.senders[p];
      auto say_bookmark = [&] {
        if (!scene_->bookmarks || sender.next() <= worker.said_bookmark[p] ||
            sender.next() >= scene_->elements)
          return;
        worker.said_bookmark[p] = Byte(sender.next());
        worker.out.push_back({.kind = Wire::kBookmark,
                              .p = Byte(p),
                              .g = Byte(sender.placement()),
                              .a = Byte(sender.next())});
      };
      say_bookmark();
      while (sender.next() < scene_->elements && !sender.Wants(sender.next())) {
        sender.OnPassed(sender.next());
        say_bookmark();
      }
      if (sender.next() == scene_->elements && !sender.end()) sender.OnEnd(scene_->elements);
      if (sender.ended() && !worker.said_end[p]) {
        worker.said_end[p] = true;
        worker.out.push_back({.kind = Wire::kEnded, .p = Byte(p), .g = Byte(sender.placement())});
      }
    }
  }
}

void World::Clear() {
  const bool strict =
      scene_->broken == Broken::kAcceptOldPlacements || scene_->broken == Broken::kSendToTheDead;
  Masks lowest = {};  // that any linked client still accepts
  for (int p = 0; p < scene_->partitions; ++p) {
    lowest[p] = Byte(record_.partitions[p].placement);
    for (const Client& client : clients_)
      if (client.process == Process::kRunning && client.welcomed)
        lowest[p] = std::min(lowest[p], Byte(client.receivers[p].lowest()));
  }
  for (int c = 0; c < kMaxClients; ++c) {
    Client& client = clients_[c];
    if (client.process == Process::kDown || client.process == Process::kGone) {
      client.in.clear();
      client.receivers.clear();
      client.end = client.commit_pending = false;
      if (client.process == Process::kGone) {
        client.out.clear();
        client.written = client.committed = {};
      }
      for (Worker& worker : workers_) worker.links[c].clear();
    }
    for (Worker& worker : workers_)
      EraseIf(worker.links[c], [&](const Wire& wire) {
        return client.process != Process::kRunning || client.incarnation != wire.b ||
               (!strict && Byte(client.receivers[wire.p].lowest()) > wire.g);
      });
  }
  for (Worker& worker : workers_) {
    EraseIf(worker.out, [&](const Wire& wire) {
      return wire.kind != Wire::kRegisters && wire.g != Byte(record_.partitions[wire.p].placement);
    });
    while (!worker.in.empty()) {
      const Wire& head = worker.in.front();
      const std::optional<Sender>& sender = worker.senders[head.p];
      const bool moot = head.kind == Wire::kAssign ? head.g < lowest[head.p] && !strict
                                                   : !sender || Byte(sender->placement()) != head.g;
      if (!moot) break;
      worker.in.erase(worker.in.begin());
    }
    for (int p = 0; p < scene_->partitions; ++p) {
      std::optional<Sender>& sender = worker.senders[p];
      if (!sender) continue;
      if (Byte(sender->placement()) < lowest[p] && !strict) {
        sender.reset();
        worker.said_end[p] = false;
        worker.said_bookmark[p] = 0;
        continue;
      }
      if (left_.broken_links) continue;
      for (const Sender::Served& served : sender->readers())
        if (served.linked && !served.unconfirmed.empty())
          sender->OnLanded(served.reader.client, IndexSet(served.unconfirmed));
    }
  }
}

// --- What must hold --------------------------------------------------------------

const ReaderRecord* World::ReaderOf(int c) const {
  auto found = record_.FindReader(ClientName(c));
  return found ? &record_.readers[*found] : nullptr;
}

// What it took, if it lives; what was kept, if it went. A process that is down
// has what it wrote, until it is declared dead.
World::Masks World::HistoryOf(int c) const {
  const ReaderRecord* reader = ReaderOf(c);
  const Client& client = clients_[c];
  if (reader && (reader->standing != Standing::kLiving || client.process == Process::kGone))
    return MasksOf<Masks>(reader->kept);
  if (client.process == Process::kDown || client.process == Process::kLeaving)
    return client.written;
  Masks taken = {};
  for (size_t p = 0; p < client.receivers.size(); ++p) taken[p] = Mask(client.receivers[p].taken());
  return taken;
}

std::string World::Fault() const {
  if (replays_what_is_gone_) return "lost: a replay begins below what was retired";
  bool limbo = false;  // somebody's history is still to be decided
  Masks histories = {};
  Masks landed = {};
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (client.process == Process::kAbsent) continue;
    const ReaderRecord* reader = ReaderOf(c);
    const bool living = reader && reader->standing == Standing::kLiving;
    limbo |= client.process == Process::kLeaving ||
             (client.process == Process::kDown && living && !record_.finished) ||
             (client.process == Process::kRunning && !client.welcomed);
    const Masks history = HistoryOf(c);
    for (int p = 0; p < scene_->partitions; ++p) {
      if (histories[p] & history[p])
        return absl::StrCat("doubled: partition ", p + 1, " indices ",
                            Set(histories[p] & history[p]).ToString(), " in two histories");
      histories[p] |= history[p];
      if (living && client.process == Process::kRunning)
        landed[p] |= Mask(client.receivers[p].landed());
    }
  }
  if (!record_.closed || limbo) return "";
  for (int p = 0; p < scene_->partitions; ++p) {
    const unsigned missing =
        ((1u << scene_->elements) - 1) & ~unsigned(histories[p] | landed[p] | excused_[p]);
    if (missing)
      return absl::StrCat("lost: partition ", p + 1, " indices ", Set(Byte(missing)).ToString(),
                          " in no history at closing");
  }
  return "";
}

bool World::Done() const {
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    const ReaderRecord* reader = ReaderOf(c);
    switch (client.process) {
      case Process::kAbsent:
      case Process::kGone:
        break;
      case Process::kDown:
        if (reader && reader->standing == Standing::kLiving && !record_.finished) return false;
        break;
      case Process::kLeaving:
        return false;
      case Process::kRunning:
        if (!client.welcomed || !client.end) return false;
        for (const Receiver& receiver : client.receivers)
          if (!receiver.landed().empty()) return false;
    }
  }
  return true;
}

// --- As bytes --------------------------------------------------------------------

namespace {

uint8_t* Put(uint8_t* at, const Wire& wire) {
  static_assert(sizeof(Wire) == 5 + kMaxPartitions);
  std::memcpy(at, &wire, sizeof(Wire));
  return at + sizeof(Wire);
}

uint8_t* Put(uint8_t* at, const Channel& channel) {
  *at++ = Byte(channel.size());
  for (const Wire& wire : channel) at = Put(at, wire);
  return at;
}

}  // namespace

size_t World::PackClient(int c, uint8_t* bytes) const {
  const Client& client = clients_[c];
  uint8_t* at = bytes;
  *at++ = Byte(static_cast<int>(client.process) | client.welcomed << 3 | client.end << 4 |
               client.commit_pending << 5 | client.from_state << 6);
  if (client.process == Process::kAbsent) return static_cast<size_t>(at - bytes);
  *at++ = client.incarnation;
  for (int p = 0; p < scene_->partitions; ++p) {
    if (scene_->states) {
      *at++ = client.written[p];
      *at++ = client.committed[p];
    }
    if (client.receivers.empty()) continue;
    *at++ = Byte(client.receivers[p].lowest());
    *at++ = Mask(client.receivers[p].taken());
    *at++ = Mask(client.receivers[p].landed());
  }
  const auto found = record_.FindReader(ClientName(c));
  *at++ = found.has_value();
  if (found) {
    const ReaderRecord& reader = record_.readers[*found];
    *at++ =
        Byte(static_cast<int>(reader.standing) | reader.told_end << 2 | desk_.present[*found] << 3);
    *at++ = Byte(reader.incarnation);
    const bool desk_matters = reader.reads() || scene_->broken == Broken::kCloseOnDeadsLanded;
    for (int p = 0; p < scene_->partitions; ++p) {
      *at++ = Mask(Of(reader.kept, Partition(p)));
      *at++ = Mask(Of(reader.final, Partition(p)));
      if (!desk_matters) continue;
      const Heard& heard = desk_.partitions[p].readers[*found];
      *at++ = heard.at == record_.partitions[p].placement;
      *at++ = Mask(heard.has);
    }
  }
  at = Put(at, client.in);
  at = Put(at, client.out);
  return static_cast<size_t>(at - bytes);
}

size_t World::PackWorker(int w, const std::array<uint8_t, kMaxClients>& order,
                         uint8_t* bytes) const {
  const Worker& worker = workers_[w];
  uint8_t* at = bytes;
  *at++ = Byte(worker.joined | worker.lost << 1 | worker.registered << 2);
  if (!worker.joined) return static_cast<size_t>(at - bytes);
  for (int p = 0; p < scene_->partitions; ++p) {
    *at++ = record_.partitions[p].worker == WorkerName(w);
    if (!worker.senders[p]) {
      *at++ = 0;
      continue;
    }
    const Sender& sender = *worker.senders[p];
    *at++ = Byte(sender.placement());
    *at++ = Byte(sender.next());
    *at++ = Byte(worker.said_end[p] | sender.end().has_value() << 1 | worker.said_bookmark[p] << 2);
    // What it passed is sent or was skipped: only the rest of skip matters.
    *at++ = Byte(Mask(sender.skip()) >> sender.next());
    *at++ = Mask(sender.again());
    for (uint8_t c : order) {
      uint8_t reader = 0, unconfirmed = 0;
      for (const Sender::Served& served : sender.readers()) {
        if (served.reader.client != ClientName(c)) continue;
        reader = Byte(Byte(served.reader.incarnation) << 1 | served.linked);
        unconfirmed = Mask(served.unconfirmed);
      }
      *at++ = reader;
      *at++ = unconfirmed;
    }
  }
  *at++ = Byte(worker.in.size());
  for (Wire wire : worker.in) {
    if (wire.kind == Wire::kAssign) {
      unsigned readers = 0;
      for (size_t i = 0; i < order.size(); ++i)
        readers |= (wire.m[1] >> (2 * order[i]) & 3u) << (2 * i);
      wire.m[1] = Byte(readers);
    } else if (wire.kind == Wire::kAddReader) {
      wire.a = Byte(std::find(order.begin(), order.end(), wire.a) - order.begin());
    }
    at = Put(at, wire);
  }
  at = Put(at, worker.out);
  for (uint8_t c : order) {
    *at++ = Byte(worker.links[c].size() << 1 | worker.link_broken[c]);
    for (const Wire& wire : worker.links[c]) {
      *at++ = Byte(wire.g);
      *at++ = Byte(wire.p << 4 | wire.a);
    }
  }
  return static_cast<size_t>(at - bytes);
}

size_t World::Pack(uint8_t* bytes) const {
  uint8_t* at = bytes;
  std::memcpy(at, &left_, sizeof(left_));
  at += sizeof(left_);
  *at++ = Byte(record_.closed | record_.finished << 1);
  for (int p = 0; p < scene_->partitions; ++p) {
    const PartitionRecord& partition = record_.partitions[p];
    *at++ = Byte(partition.placement);
    *at++ = Byte(partition.collecting() | desk_.partitions[p].ended.has_value() << 1);
    *at++ = excused_[p];
    *at++ = retired_[p];
    unsigned bookmarks = 0;
    for (const Bookmark& bookmark : partition.bookmarks) bookmarks |= 1u << bookmark.index;
    *at++ = Byte(bookmarks);
  }

  constexpr size_t kBlock = 320;
  uint8_t blocks[3][kBlock];
  size_t sizes[3];
  static_assert(kMaxClients == 3 && kMaxWorkers == 3);
  auto less = [&](uint8_t a, uint8_t b) {
    if (sizes[a] != sizes[b]) return sizes[a] < sizes[b];
    return std::memcmp(blocks[a], blocks[b], sizes[a]) < 0;
  };
  auto append = [&](const std::array<uint8_t, 3>& order) {
    for (uint8_t i : order) {
      std::memcpy(at, blocks[i], sizes[i]);
      at += sizes[i];
    }
  };
  std::array<uint8_t, 3> clients = {0, 1, 2};
  for (int c = 0; c < kMaxClients; ++c) {
    sizes[c] = PackClient(c, blocks[c]);
    PENSTOCK_CHECK(sizes[c] <= kBlock);
  }
  std::sort(clients.begin(), clients.end(), less);
  append(clients);
  std::array<uint8_t, 3> workers = {0, 1, 2};
  for (int w = 0; w < kMaxWorkers; ++w) {
    sizes[w] = PackWorker(w, clients, blocks[w]);
    PENSTOCK_CHECK(sizes[w] <= kBlock);
  }
  std::sort(workers.begin(), workers.end(), less);
  append(workers);
  return static_cast<size_t>(at - bytes);
}

// --- As words --------------------------------------------------------------------

std::string ToString(const Step& step) {
  static constexpr const char* kNames[] = {"to worker",   "from worker",  "to client",
                                           "from client", "lands",        "send",
                                           "take",        "write",        "commit",
                                           "dial",        "assign",       "declare dead",
                                           "restart",     "late restart", "stop worker",
                                           "kill client", "break link",   "restart dispatcher",
                                           "move",        "client joins", "worker joins",
                                           "leave"};
  return absl::StrCat(kNames[step.kind], " worker ", step.worker + 1, " client ", step.client + 1,
                      " partition ", step.partition + 1, " index ", int{step.index});
}

std::string World::ToString() const {
  std::string text;
  for (int p = 0; p < scene_->partitions; ++p)
    absl::StrAppend(&text, "partition ", p + 1, " g ", record_.partitions[p].placement.value(),
                    " worker ", record_.partitions[p].worker.value(),
                    desk_.partitions[p].ended ? " ended" : "", record_.closed ? " closed" : "",
                    "\n");
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (client.process == Process::kAbsent) continue;
    absl::StrAppend(&text, "client ", c + 1, " process ", static_cast<int>(client.process),
                    client.welcomed ? " welcomed" : "", client.end ? " end" : "", " in ",
                    client.in.size(), " out ", client.out.size());
    for (const Receiver& receiver : client.receivers)
      absl::StrAppend(&text, " | lowest ", receiver.lowest().value(), " taken ",
                      receiver.taken().ToString(), " landed ", receiver.landed().ToString());
    if (const ReaderRecord* reader = ReaderOf(c))
      absl::StrAppend(&text, " | standing ", static_cast<int>(reader->standing), " kept ",
                      Of(reader->kept, Partition(0)).ToString(),
                      reader->told_end ? " told end" : "");
    text += "\n";
  }
  for (int w = 0; w < kMaxWorkers; ++w) {
    const Worker& worker = workers_[w];
    if (!worker.joined) continue;
    absl::StrAppend(&text, "worker ", w + 1, worker.lost ? " lost" : "", " in ", worker.in.size(),
                    " out ", worker.out.size());
    for (const auto& sender : worker.senders)
      if (sender)
        absl::StrAppend(&text, " | g ", sender->placement().value(), " skip ",
                        sender->skip().ToString(), " next ", sender->next(), " again ",
                        sender->again().ToString(), sender->ended() ? " ended" : "");
    text += "\n";
  }
  return text;
}

}  // namespace penstock::protocol
