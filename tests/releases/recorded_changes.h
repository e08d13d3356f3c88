// SPDX-License-Identifier: Apache-2.0
// The changes that a release's changes.txt holds as records of a journal, in an order in which they
// fit. A recorded one must not change; a new field or kind of change is recorded with the next
// release under a new name, at the end.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/state/state.h"
#include "tests/releases/recorded_messages.h"

namespace penstock::control {

struct RecordedChange {
  std::string name;
  Change change;
};

inline std::vector<RecordedChange> RecordedChanges() {
  namespace p = ::penstock::protocol;
  const auto dataset =
      std::make_shared<const DatasetRecord>(DatasetRecord{"1000",
                                                          "definition",
                                                          {.fingerprint = 5,
                                                           .spec_fingerprint = 6,
                                                           .spec_text = "spec",
                                                           .cardinality = kInfinite,
                                                           .ends = true,
                                                           .nodes = {{"Range#0", 5}},
                                                           .plan = {{.node = "Range#0",
                                                                     .count = 9,
                                                                     .shuffled = true,
                                                                     .seed = 3,
                                                                     .files = {"a", "b"},
                                                                     .by_file = true}}},
                                                          7});
  const auto other = std::make_shared<const DatasetRecord>(DatasetRecord{"other", "x", {}, 8});
  JobTerms terms = recorded::kOrderedTerms;
  terms.num_consumers = 0;
  const JobRecord job{.id = JobId(1),
                      .name = "job",
                      .run_id = "run",
                      .dataset = dataset,
                      .terms = terms,
                      .seed = 99,
                      .token = "token"};
  JobRecord coordinated = job;
  coordinated.id = JobId(2);
  coordinated.name = "coordinated";
  coordinated.anonymous = true;
  coordinated.dataset = other;
  coordinated.terms = recorded::kTerms;
  JobRecord with_nonce = job;
  with_nonce.id = JobId(4);
  with_nonce.name = "with-nonce";
  with_nonce.token = "";
  with_nonce.nonce = "0123456789abcdef0123456789abcdef";
  JobRecord with_share = with_nonce;
  with_share.id = JobId(5);
  with_share.name = "with-share";
  with_share.terms.share = {.weight = 4, .priority = -2};
  JobRecord short_lived = job;
  short_lived.id = JobId(3);
  short_lived.name = "short-lived";
  const IterationId it(1);
  const IterationId rounds(2);
  const PartitionId one(1);
  const PartitionId two(2);
  const ClientId client(7);
  const WorkerRecord worker{.id = WorkerId(3),
                            .address = "localhost:1",
                            .offers = {recorded::kOffer},
                            .tags = {"tag"},
                            .permits = 2,
                            .place = 0,
                            .process = Incarnation(12)};
  const auto of = [](IterationId iteration, p::IterationChange change) {
    return IterationAltered{iteration, std::move(change)};
  };
  IndexSet some = IndexSet::Of(0, 5);
  some.Add(9);
  using Kind = p::RoundEvent::Kind;
  return {
      {"life_begun", LifeBegun{{.life = recorded::kLife, .begins = 9, .lease = absl::Seconds(60)}}},
      {"dataset_registered", DatasetRegistered{dataset}},
      {"other_dataset_registered", DatasetRegistered{other}},
      {"job_created", JobCreated{job}},
      {"coordinated_job_created", JobCreated{coordinated}},
      {"third_job_created", JobCreated{short_lived}},
      {"dataset_unregistered", DatasetUnregistered{"other"}},
      {"job_cancelled", JobCancelled{JobId(3)}},
      {"worker_registered", WorkerRegistered{worker}},
      {"iteration_created", IterationCreated{it, JobId(1), 0, {}, {2}, {{0, 1}}}},
      {"coordinated_iteration_created", IterationCreated{rounds, JobId(2), 0}},
      {"divided_iteration_created",
       IterationCreated{IterationId(3), JobId(3), 3, {ShardingPolicy::kFile, 4, {1, 3}}}},
      {"iteration_failed", IterationFailed{IterationId(3), absl::NotFoundError("file")}},
      {"job_removed", JobRemoved{JobId(3)}},
      {"partition_opened", of(it, p::PartitionOpened{one})},
      {"reader_joined", of(it, p::ReaderJoined{client, Incarnation(8)})},
      {"other_reader_joined", of(it, p::ReaderJoined{ClientId(6), Incarnation(1)})},
      {"partition_assigned", of(it, p::PartitionAssigned{one, Placement(1), worker.id})},
      {"splits_given", SplitsGiven{{it, one}, {0, 1, 0, {3, 1, 2}, false}}},
      {"last_splits_given", SplitsGiven{{it, one}, {0, 1, 3, {}, true}}},
      {"bookmark_added", of(it, p::BookmarkAdded{one, {4, "position"}})},
      {"bookmark_marked", BookmarkMarked{{it, one}, {4, {{0, 1, 2}}}}},
      {"reader_committed", of(it, p::ReaderCommitted{client, one, some})},
      {"bookmarks_retired", of(it, p::BookmarksRetired{one, 4})},
      {"placement_raised", of(it, p::PlacementRaised{one, Placement(2)})},
      {"reader_replaced", of(it, p::ReaderReplaced{client, Incarnation(9), {some}, 3})},
      {"reader_gone", of(it, p::ReaderGone{ClientId(6), p::ReaderStatus::kExpired})},
      {"partition_assigned_again", of(it, p::PartitionAssigned{one, Placement(2), worker.id})},
      {"iteration_closed", of(it, p::IterationClosed{{10}})},
      {"reader_ended", of(it, p::ReaderEnded{client, {IndexSet::Of(0, 10)}})},
      {"iteration_reopened", of(it, p::IterationReopened{})},
      {"iteration_closed_again", of(it, p::IterationClosed{{10}})},
      {"iteration_finished", of(it, p::IterationFinished{})},
      {"iteration_retired", IterationRetired{it}},
      {"iteration_recalled", IterationRecalled{JobId(1), 0}},
      {"first_partition_of_rounds", of(rounds, p::PartitionOpened{one})},
      {"second_partition_of_rounds", of(rounds, p::PartitionOpened{two})},
      {"consumer_joined", of(rounds, p::ReaderJoined{client, Incarnation(8), 2})},
      {"consumers_formed", of(rounds, p::ConsumersFormed{})},
      {"partition_joins_rounds", of(rounds, p::RoundsRescheduled{{0, Kind::kJoins, one}})},
      {"another_joins_rounds", of(rounds, p::RoundsRescheduled{{1, Kind::kJoins, two}})},
      {"partition_skips_a_round", of(rounds, p::RoundsRescheduled{{4, Kind::kSkips, two}})},
      {"partition_leaves_rounds", of(rounds, p::RoundsRescheduled{{6, Kind::kLeaves, two}})},
      {"rounds_forgotten", of(rounds, p::RoundsForgotten{2})},
      {"remainders_planned", of(rounds, p::RemaindersPlanned{{21, 14}})},
      {"worker_draining", WorkerDraining{worker.id}},
      {"worker_gone", WorkerGone{worker.id}},
      {"dataset_answered", Answered{{{Incarnation(1), 1}, RegisterDatasetAnswer{"1000", true}}}},
      {"job_answered", Answered{{{Incarnation(1), 2}, AnsweredJob{JobId(1), true}}}},
      {"job_with_nonce_created", JobCreated{with_nonce}},
      {"life_with_key_begun", LifeBegun{{.life = {.journal = 7, .id = 9, .term = Term(10)},
                                         .begins = 90,
                                         .lease = absl::Seconds(60),
                                         .key_id = 0x0123456789abcdef}}},
      {"fourth_iteration_created", IterationCreated{IterationId(4), JobId(4), 0}},
      {"partition_of_fourth_opened", of(IterationId(4), p::PartitionOpened{one})},
      {"reader_of_fourth_joined", of(IterationId(4), p::ReaderJoined{client, Incarnation(8)})},
      {"other_reader_of_fourth_joined",
       of(IterationId(4), p::ReaderJoined{ClientId(6), Incarnation(1)})},
      {"partition_assigned_for_some",
       of(IterationId(4),
          p::PartitionAssigned{one, Placement(1), WorkerId(5), IndexSet::Of(1, 2)})},
      {"audience_extended", of(IterationId(4), p::AudienceExtended{one, IndexSet::Of(0, 1)})},
      {"job_with_share_created", JobCreated{with_share}},
      {"format_finalised", FormatFinalised{2}},
      {"bookmark_of_fourth_added", of(IterationId(4), p::BookmarkAdded{one, {4, "position"}})},
      {"bookmark_of_fourth_marked",
       BookmarkMarked{{IterationId(4), one}, {4, {}, {{"Shuffle", 2}}}}},
  };
}

}  // namespace penstock::control
