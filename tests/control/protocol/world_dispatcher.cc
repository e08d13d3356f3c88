// SPDX-License-Identifier: Apache-2.0
// The world's dispatcher: what arrives at it, what it decides and posts, its restart.
#include <type_traits>
#include <utility>
#include <variant>

#include "penstock/check.h"
#include "tests/control/protocol/world.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {

void World::Settle(Decision decision) {
  do {
    for (const IterationChange& change : decision.changes) {
      Apply(record_, change);
      changed_ = copy_.has_value();
      if (const auto* retired = std::get_if<BookmarksRetired>(&change))
        retired_[static_cast<size_t>(At(retired->partition))] = Byte(retired->below);
      if (std::holds_alternative<IterationReopened>(change)) excused_ = {};  // somebody reads it
    }
    for (const Message& message : decision.messages) Post(message);
    decision = Consequences(record_, desk_);
  } while (!decision.empty());
}

void World::Post(const Message& message) {
  const uint8_t life = changed_ ? Wire::kBeyond : uint8_t{0};
  auto to_client = [&](ClientId id, Incarnation incarnation, Wire wire) {
    wire.life = life;
    Client& client = clients_[At(id)];
    if ((client.process == Process::kRunning || client.process == Process::kLeaving) &&
        client.incarnation == Byte(incarnation))
      client.in.push_back(wire);
  };
  auto to_worker = [&](WorkerId id, Wire wire) {
    wire.life = life;
    Worker& worker = workers_[At(id)];
    if (worker.registered && !worker.lost) worker.in.push_back(wire);
  };
  std::visit(
      [&](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, Welcome>) {
          Wire wire{.kind = Wire::kWelcome};
          Client& client = clients_[At(m.client)];
          for (const Placed& placed : m.placements) {
            const auto p = static_cast<size_t>(At(placed.partition));
            wire.m[p] = Byte(placed.placement);
            if (!scene_->dealt || client.welcomed) continue;
            client.passed[p] = Mask(PositionsOf(record_).TurnsIn(
                Kept(record_, placed.partition), placed.partition, client.consumer));
          }
          to_client(m.client, m.incarnation, wire);
        } else if constexpr (std::is_same_v<M, Refused>) {
          to_client(m.client, m.incarnation, {.kind = Wire::kRefused});
        } else if constexpr (std::is_same_v<M, Fence>) {
          const Wire fence{.kind = Wire::kFence,
                           .p = Byte(At(m.partition)),
                           .g = Byte(m.placement),
                           .a = m.give_back};
          to_client(m.client, m.incarnation, fence);
          if (m.give_back) to_client(m.client, m.incarnation, fence);  // messages may come twice
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
        } else if constexpr (std::is_same_v<M, Unassign>) {
          to_worker(m.worker,
                    {.kind = Wire::kUnassign, .p = Byte(At(m.partition)), .g = Byte(m.placement)});
        } else {  // of coordinated reads: rounds_world.h
          static_assert(std::is_same_v<M, Agreed> || std::is_same_v<M, AllowTurns>);
        }
      },
      message);
}

void World::ArrivesFromClient(int c, const Wire& wire) {
  const ClientId id = ClientName(c);
  const Incarnation incarnation(wire.a & ~Wire::kWhole);
  switch (wire.kind) {
    case Wire::kPresents: {
      if (IsRefused(c, wire)) return;
      Presents presents{id, incarnation, std::nullopt, clients_[c].consumer};
      if (wire.b) presents.state = HoldingsOf(wire.m, scene_->partitions);
      return Settle(OnPresents(record_, desk_, presents));
    }
    case Wire::kReport: {
      const Report report{.partition = Partition(wire.p),
                          .placement = Placement(wire.g),
                          .taken = Set(wire.m[0]),
                          .landed = Set(wire.m[1]),
                          .handed = Set(wire.handed),
                          .returned = Set(wire.b),
                          .whole = (wire.a & Wire::kWhole) != 0};
      return Settle(OnReport(record_, desk_, id, incarnation, report));
    }
    case Wire::kCommit:
      return Settle(
          OnCommit(record_, desk_, id, incarnation, {1, HoldingsOf(wire.m, scene_->partitions)}));
    case Wire::kWaits:
      OnWaits(record_, desk_, id, incarnation);
      return Settle({});
    case Wire::kLeave:
      Settle(OnLeave(record_, desk_, id, incarnation, {HoldingsOf(wire.m, scene_->partitions)}));
      return NoteWhatNobodyCanRead();
    default:
      PENSTOCK_CHECK(false);
  }
}

void World::ArrivesFromWorker(int w, const Wire& wire) {
  const WorkerId id = WorkerName(w);
  if (wire.kind != Wire::kRegisters && wire.life & Wire::kOther &&
      scene_->broken != Broken::kHearOtherJournals)
    return;
  switch (wire.kind) {
    case Wire::kRegisters: {
      absl::InlinedVector<Held, kMaxPartitions> held;
      for (int p = 0; p < scene_->partitions; ++p)
        if (wire.m[static_cast<size_t>(p)])
          held.push_back({Partition(p), Placement(wire.m[static_cast<size_t>(p)])});
      if (IsRefused(w, wire, held)) return;
      if (wire.life & Wire::kOther && scene_->broken != Broken::kHearOtherJournals) {
        held.clear();
        workers_[w].in.push_back({.kind = Wire::kAnother});
      }
      workers_[w].registered = true;
      return Settle(OnWorkerRegisters(record_, desk_, id, held));
    }
    case Wire::kEnded:
      return Settle(
          OnEnded(record_, desk_, id, Partition(wire.p), Placement(wire.g), ElementsOf(wire.p)));
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
  // All is kept then, but for what is in states or with nodes behind Distribute.
  if (!record_.closed || (record_.shared() && !scene_->states && !scene_->behind)) return;
  for (const ReaderRecord& reader : record_.readers)
    if (reader.reads()) return;
  for (int p = 0; p < scene_->partitions; ++p) {
    Together had(record_, Partition(p));
    for (const ReaderRecord& reader : record_.readers) {
      had.Add(reader, Of(reader.kept, Partition(p)));
      had.Add(reader, Of(reader.final, Partition(p)));
    }
    excused_[p] = Byte(((1u << ElementsOf(p)) - 1) & ~unsigned{Mask(std::move(had).Indices())});
  }
}

// --- Lives: as Core::CheckLife and Core::OnHello(WorkerHello) ------------------------

bool World::IsRefused(int c, const Wire& wire) {
  if (wire.life & Wire::kOther && scene_->broken != Broken::kAnyToken) {
    clients_[c].in.push_back({.kind = Wire::kRefused});
    return true;
  }
  if (!(wire.life & Wire::kBeyond) || scene_->broken == Broken::kHearAnyLife) return false;
  failed_ = true;
  return true;
}

bool World::IsRefused(int w, const Wire& wire, absl::Span<const Held> held) {
  if (!(wire.life & Wire::kBeyond) || scene_->broken == Broken::kHearAnyLife) return false;
  for (const Held& its : held)
    failed_ |= its.placement > record_.partition(its.partition).placement;
  Worker& worker = workers_[w];
  worker.lost = true;
  worker.in.clear();
  for (Worker& next : workers_) {  // it ends, and another process is started in its place
    if (std::exchange(next.joined, true)) continue;
    next.registered = true;
    break;
  }
  Settle(OnWorkerGone(record_, desk_, WorkerName(w)));
  return true;
}

void World::BeginFromCopy() {
  record_ = std::move(copy_->record);
  retired_ = copy_->retired;
  copy_.reset();
  changed_ = false;
  RestartDispatcher();
  for (int w = 0; w < kMaxWorkers; ++w)  // their leases run out
    if (workers_[w].lost) Settle(OnWorkerGone(record_, desk_, WorkerName(w)));
}

void World::BeginEmpty() {
  copy_.reset();
  changed_ = false;
  retired_ = excused_ = {};
  OpenRecord();
  for (Client& client : clients_) {
    if (client.process == Process::kAbsent) continue;
    client.other = true;
    if (client.process != Process::kRunning) client.process = Process::kGone;
  }
  for (Worker& worker : workers_) {
    worker.other = worker.beyond = false;
    for (const std::optional<Sender>& sender : worker.senders) worker.other |= sender.has_value();
  }
  RestartDispatcher();
}

void World::RestartDispatcher() {
  desk_ = OpenDesk(record_, scene_->broken);
  Settle(OnDispatcherStarts(record_, desk_));
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
    Wire registers{
        .kind = Wire::kRegisters,
        .life = Byte((worker.beyond ? Wire::kBeyond : 0) | (worker.other ? Wire::kOther : 0))};
    for (int p = 0; p < scene_->partitions; ++p) {
      if (worker.senders[p]) registers.m[p] = Byte(worker.senders[p]->placement());
      worker.said_end[p] = false;
      worker.said_bookmark[p] = 0;
    }
    worker.out.push_back(registers);
  }
}

}  // namespace penstock::protocol
