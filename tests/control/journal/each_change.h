// SPDX-License-Identifier: Apache-2.0
// One change of each kind, for tests that write or apply all of them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "control/state/state.h"

namespace penstock::control {

// Returns one change of each kind, in an order in which they fit.
inline std::vector<Change> OneOfEachChange() {
  auto dataset = std::make_shared<const DatasetRecord>(
      DatasetRecord{"1000",
                    "definition",
                    {.fingerprint = 5,
                     .spec_text = "spec",
                     .cardinality = kInfinite,
                     .nodes = {{"Range#0", 5}},
                     .plan = {{.node = "Range#0", .count = 9, .seed = 3, .files = {"a", "b"}}}},
                    7});
  auto other = std::make_shared<const DatasetRecord>(DatasetRecord{"other", "x", {}, 8});
  const JobRecord job{.id = JobId(1),
                      .name = "job",
                      .run_id = "run",
                      .dataset = dataset,
                      .terms = {.mode = ShardingPolicy::kDynamic,
                                .ack_mode = AckMode::kOnCommit,
                                .deterministic = true,
                                .partitions = 7,
                                .visitation = Visitation::kAtLeastOnce,
                                .num_consumers = 3,
                                .remainder_policy = RemainderPolicy::kError,
                                .on_error = RoundErrorPolicy::kStop,
                                .cross_trainer_cache = true,
                                .target_workers = TargetWorkers::kLocal,
                                .quota = {.max_bytes_in_flight = 5, .max_permits = 6}},
                      .seed = 99,
                      .nonce = "0123456789abcdef"};
  JobRecord second = job;
  second.id = JobId(2);
  second.name = "second";
  second.anonymous = true;
  second.dataset = other;
  second.nonce = "";
  second.token = "token";              // of an older release
  second.terms.deterministic = false;  // its consumers read rounds
  second.terms.num_consumers = 6;
  second.terms.group_size = 3;
  second.terms.share = {.weight = 4, .priority = -2};
  JobRecord shared = job;
  shared.id = JobId(3);
  shared.name = "shared";
  shared.terms = {.mode = ShardingPolicy::kDynamic};
  const IterationId it(1);
  const PartitionId one(1);
  const ClientId client(7);
  const WorkerRecord worker{.id = WorkerId(3),
                            .address = "host:1",
                            .offers = {{"grpc", "host:2", "c"}},
                            .tags = {"tag"},
                            .permits = 2,
                            .place = 0,
                            .process = Incarnation(12)};
  auto altered = [&](protocol::IterationChange change) {
    return IterationAltered{it, std::move(change)};
  };
  auto of_shared = [&](protocol::IterationChange change) {
    return IterationAltered{IterationId(3), std::move(change)};
  };
  IndexSet some = IndexSet::Of(0, 5);
  some.Add(9);
  return {
      LifeBegun{{.life = {.journal = 7, .id = 8, .term = Term(4)},
                 .begins = 9,
                 .lease = absl::Seconds(60),
                 .key_id = 10}},
      DatasetRegistered{dataset},
      DatasetRegistered{other},
      JobCreated{job},
      JobCreated{second},
      DatasetUnregistered{"other"},
      JobCancelled{JobId(2)},
      WorkerRegistered{worker},
      IterationCreated{it, JobId(1), 0},
      IterationCreated{IterationId(2), JobId(2), 3, {ShardingPolicy::kFile, 4, {1, 3}}},
      IterationFailed{IterationId(2), absl::NotFoundError("file")},
      altered(protocol::PartitionOpened{one}),
      altered(protocol::ReaderJoined{client, Incarnation(8)}),
      altered(protocol::ReaderJoined{ClientId(6), Incarnation(1)}),
      altered(protocol::PartitionAssigned{one, Placement(1), worker.id}),
      SplitsGiven{{it, one}, {0, 0, 0, {3, 1, 2}, false}},
      SplitsGiven{{it, one}, {0, 0, 3, {}, true}},
      altered(protocol::BookmarkAdded{one, {4, "position"}}),
      BookmarkMarked{{it, one}, {4, {{0, 0, 2}}}},
      altered(protocol::ReaderCommitted{client, one, some}),
      altered(protocol::BookmarksRetired{one, 4}),
      altered(protocol::PlacementRaised{one, Placement(2)}),
      altered(protocol::ReaderReplaced{client, Incarnation(9), {some}}),
      altered(protocol::ReaderGone{ClientId(6), protocol::ReaderStatus::kExpired}),
      altered(protocol::PartitionAssigned{one, Placement(2), worker.id}),
      altered(protocol::IterationClosed{{10}}),
      altered(protocol::ReaderEnded{client, {IndexSet::Of(0, 10)}}),
      altered(protocol::IterationReopened{}),
      altered(protocol::PlacementRaised{one, Placement(3)}),
      altered(protocol::PartitionAssigned{one, Placement(3), worker.id}),
      altered(protocol::IterationClosed{{10}}),
      altered(protocol::IterationFinished{}),
      IterationRetired{it},
      IterationRecalled{JobId(1), 0},
      IterationRetired{it},
      WorkerDraining{worker.id},
      Answered{{{Incarnation(1), 1}, RegisterDatasetAnswer{"1000", true}}},
      Answered{{{Incarnation(1), 2}, AnsweredJob{JobId(1), false}}},
      JobCreated{shared},
      IterationCreated{IterationId(3), JobId(3), 0},
      of_shared(protocol::PartitionOpened{one}),
      of_shared(protocol::ReaderJoined{client, Incarnation(8)}),
      of_shared(protocol::ReaderJoined{ClientId(6), Incarnation(1)}),
      of_shared(protocol::PartitionAssigned{one, Placement(1), WorkerId(4), IndexSet::Of(1, 2)}),
      of_shared(protocol::AudienceExtended{one, IndexSet::Of(0, 1)}),
      of_shared(protocol::BookmarkAdded{one, {4, "position"}}),
      BookmarkMarked{{IterationId(3), one}, {4, {}, {{"Shuffle", 2}}}},
      FormatFinalised{2}};
}

// Returns them without the last, which a state in the newest format refuses.
inline std::vector<Change> EachChangeBeforeFinalised() {
  std::vector<Change> changes = OneOfEachChange();
  changes.pop_back();
  return changes;
}

}  // namespace penstock::control
