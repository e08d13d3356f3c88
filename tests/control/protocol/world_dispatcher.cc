// SPDX-License-Identifier: Apache-2.0
// The world's dispatcher: messages that arrive, its decisions, and messages that it posts.
#include <type_traits>
#include <utility>
#include <variant>

#include "penstock/check.h"
#include "tests/control/protocol/world.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {

void World::Settle(Decision decision) {
  do {
    if (acts_old_ && hung_) return;
    if (IsFrozen() && !decision.changes.empty()) {
      hung_ = true;
      return;
    }
    for (const IterationChange& change : decision.changes) {
      Apply(record_, change);
      changed_ = copy_.has_value() || acts_old_;
      if (const auto* retired = std::get_if<BookmarksRetired>(&change))
        retired_[static_cast<size_t>(At(retired->partition))] = Byte(retired->below);
      if (std::holds_alternative<IterationReopened>(change)) excused_ = {};  // a reader is there
    }
    for (const Message& message : decision.messages) Post(message);
    decision = Consequences(record_, context_);
  } while (!decision.empty());
}

void World::Post(const Message& message) {
  const uint8_t life = changed_ ? Wire::kBeyond : older_ && !acts_old_ ? Wire::kNewer : uint8_t{0};
  auto to_client = [&](ClientId id, Incarnation incarnation, Wire wire) {
    wire.life = life;
    Client& client = clients_[At(id)];
    if (client.with_old != acts_old_) return;
    // The dispatcher has not got the hello of the client's new stream yet.
    if (older_ && !client.out.empty() && client.out.front().kind == Wire::kConnect) return;
    if ((client.process == Process::kRunning || client.process == Process::kLeaving) &&
        client.incarnation == Byte(incarnation))
      client.in.push_back(wire);
  };
  auto to_worker = [&](WorkerId id, Wire wire) {
    wire.life = life;
    Worker& worker = workers_[At(id)];
    if (worker.registered && !worker.lost && worker.with_old == acts_old_)
      worker.in.push_back(wire);
  };
  std::visit(
      [&](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, Welcome>) {
          Wire wire{.kind = Wire::kWelcome, .a = m.partial};
          Client& client = clients_[At(m.client)];
          for (const Placed& placed : m.placements) {
            const auto p = static_cast<size_t>(At(placed.partition));
            wire.m[p] = Byte(placed.placement);
            if (!scene_->order_consumers || client.welcomed) continue;
            client.passed[p] = Mask(PositionsOf(record_).RowsIn(
                CommittedIndices(record_, placed.partition), placed.partition, client.consumer));
          }
          to_client(m.client, m.incarnation, wire);
        } else if constexpr (std::is_same_v<M, Refused>) {
          to_client(m.client, m.incarnation, {.kind = Wire::kRefused});
        } else if constexpr (std::is_same_v<M, ToClient<Fence>>) {
          const Wire fence{.kind = Wire::kFence,
                           .p = Byte(At(m.partition)),
                           .g = Byte(m.placement),
                           .a = m.give_back};
          to_client(m.client, m.incarnation, fence);
          if (m.give_back) to_client(m.client, m.incarnation, fence);  // messages may come twice
        } else if constexpr (std::is_same_v<M, ToClient<End>>) {
          to_client(m.client, m.incarnation, {.kind = Wire::kEnd});
        } else if constexpr (std::is_same_v<M, ToClient<Committed>>) {
          to_client(m.client, m.incarnation, {.kind = Wire::kCommitDone});
        } else if constexpr (std::is_same_v<M, ToClient<Left>>) {
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
        } else {  // in coordinated reads (rounds_world.h) and cross-trainer caches only
          static_assert(std::is_same_v<M, ToClient<Agreed>> || std::is_same_v<M, AllowRows> ||
                        std::is_same_v<M, RemoveReader>);
        }
      },
      message);
}

void World::ArrivesFromClient(int c, const Wire& wire) {
  const ClientId id = ClientName(c);
  const Incarnation incarnation(wire.a & ~Wire::kWhole);
  switch (wire.kind) {
    case Wire::kConnect: {
      if (IsClientRefused(c, wire)) return;
      // A dispatcher gives a lease only after its journal took a record after the hello.
      if (IsFrozen() && scene_->broken != Broken::kRenewWithoutJournal) {
        hung_ = true;
        return;
      }
      Connect connect{.client = id,
                      .incarnation = incarnation,
                      .state = std::nullopt,
                      .consumer = clients_[c].consumer,
                      .reports_all = (wire.b & Wire::kReportsAll) != 0};
      if (wire.b & 1) connect.state = ReceivedSetsOf(wire.m, scene_->partitions);
      Settle(OnConnect(record_, context_, connect));
      return ExcuseNothingOf(c);
    }
    case Wire::kReport: {
      const Report report{.partition = Partition(wire.p),
                          .placement = Placement(wire.g),
                          .delivered = Set(wire.m[0]),
                          .received = Set(wire.m[1]),
                          .handed = Set(wire.handed),
                          .returned = Set(wire.b),
                          .whole = (wire.a & Wire::kWhole) != 0};
      return Settle(OnReport(record_, context_, id, incarnation, report));
    }
    case Wire::kComplete:
      return Settle(OnReportsComplete(record_, context_, id, incarnation));
    case Wire::kCommit:
      return Settle(OnCommit(record_, context_, id, incarnation,
                             {1, ReceivedSetsOf(wire.m, scene_->partitions)}));
    case Wire::kWaits:
      OnWaits(record_, context_, id, incarnation);
      return Settle({});
    case Wire::kLeave:
      Settle(OnLeave(record_, context_, id, incarnation,
                     {ReceivedSetsOf(wire.m, scene_->partitions)}));
      return NoteWhatNobodyCanRead();
    default:
      PENSTOCK_CHECK(false);
  }
}

void World::ArrivesFromWorker(int w, const Wire& wire) {
  const WorkerId id = WorkerName(w);
  if (wire.kind != Wire::kRegisters && IsForeign(wire.life) &&
      scene_->broken != Broken::kHearOtherJournals)
    return;
  switch (wire.kind) {
    case Wire::kRegisters: {
      absl::InlinedVector<HeldPlacement, kMaxPartitions> held;
      for (int p = 0; p < scene_->partitions; ++p)
        if (wire.m[static_cast<size_t>(p)])
          held.push_back({Partition(p), Placement(wire.m[static_cast<size_t>(p)])});
      if (IsWorkerRefused(w, wire)) return;
      Worker& worker = workers_[w];
      const bool is_here = worker.with_old == acts_old_;  // and has not turned since
      if (IsForeign(wire.life) && scene_->broken != Broken::kHearOtherJournals) {
        held.clear();
        if (is_here) worker.in.push_back({.kind = Wire::kAnother});
      }
      if (is_here) worker.registered = true;
      served_by_old_ |= HearsNewer(wire.life);
      return Settle(OnWorkerRegisters(record_, context_, id, held));
    }
    case Wire::kEnded:
      return Settle(
          OnEnded(record_, context_, id, Partition(wire.p), Placement(wire.g), ElementsOf(wire.p)));
    case Wire::kBookmark:
      return Settle(OnBookmark(record_, context_, id, Partition(wire.p), Placement(wire.g),
                               {.index = wire.a, .bytes = {}}));
    default:
      PENSTOCK_CHECK(false);
  }
}

void World::DeclareDead(int c) {
  Settle(OnReaderExpired(record_, context_, ClientName(c)));
  NoteWhatNobodyCanRead();
}

// A consumer of an order that was not refused can read all of its elements.
void World::ExcuseNothingOf(int c) {
  const Channel& answers = clients_[c].in;
  if (!scene_->order_consumers || answers.empty() || answers.back().kind == Wire::kRefused) return;
  const uint8_t all = Mask(IndexSet::Of(0, scene_->elements));
  for (int p = 0; p < scene_->partitions; ++p)
    excused_[p] = Byte(excused_[p] & ~IndicesOf(c, p, all));
}

void World::NoteWhatNobodyCanRead() {
  for (int p = 0; p < scene_->partitions; ++p) excused_[p] = 0;
  // All is committed then, except elements in states or in nodes after Distribute.
  if (!record_.closed || (record_.shared() && !scene_->states && !scene_->behind)) return;
  for (const ReaderRecord& reader : record_.readers)
    if (reader.reads()) return;
  for (int p = 0; p < scene_->partitions; ++p) {
    Together had(record_, PositionsOf(record_), Partition(p));
    for (const ReaderRecord& reader : record_.readers) {
      had.Add(reader, Of(reader.committed, Partition(p)));
      had.Add(reader, Of(reader.final, Partition(p)));
    }
    excused_[p] = Byte(((1u << ElementsOf(p)) - 1) & ~unsigned{Mask(std::move(had).Indices())});
  }
}

}  // namespace penstock::protocol
