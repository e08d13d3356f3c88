// SPDX-License-Identifier: Apache-2.0
// The messages that a release's messages.txt holds, by name. A recorded one must not change; a new
// field or kind of message is recorded with the next release under a new name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/worker_messages.h"

namespace penstock::control {

namespace recorded {

inline IndexSet Indices() {
  IndexSet set = IndexSet::Of(3, 7);
  set.Add(9);
  set.Add(1'000'000'000'000);
  return set;
}

inline const Life kLife{.journal = 7, .id = 8, .term = Term(9)};
inline const PlacedPartition kOf{IterationId(1), PartitionId(2), Placement(3), 4};
inline const TransferOffer kOffer{"tcp", "localhost:2", "rv2", 1};
inline const JobTerms kTerms{.mode = ShardingPolicy::kDynamic,
                             .ack_mode = AckMode::kOnCommit,
                             .visitation = Visitation::kAtLeastOnce,
                             .num_consumers = 6,
                             .group_size = 3,
                             .remainder_policy = RemainderPolicy::kError,
                             .on_error = RoundErrorPolicy::kStop,
                             .cross_trainer_cache = true,
                             .target_workers = TargetWorkers::kLocal,
                             .quota = {.max_bytes_in_flight = 5, .max_permits = 6}};
inline const JobTerms kOrderedTerms{
    .mode = ShardingPolicy::kData, .deterministic = true, .partitions = 7, .num_consumers = 2};

}  // namespace recorded

inline std::map<std::string, ClientUp> RecordedClientUps() {
  using recorded::Indices;
  const PartitionReport report{
      PartitionId(2),       Placement(3),         Indices(), IndexSet::Of(7, 8),
      IndexSet::Of(10, 12), IndexSet::Of(20, 21), true};
  const std::vector<PartitionIndices> indices = {{PartitionId(2), Indices()}};
  const protocol::RoundsReport rounds{4, 5, 3, {{{PartitionId(1), 6}, "broken", 13}}};
  return {
      {"hello", ClientHello{JobId(1),
                            2,
                            ClientId(3),
                            Incarnation(4),
                            indices,
                            Incarnation(5),
                            6,
                            7,
                            "token",
                            {recorded::kLife, 11},
                            {2, 3}}},
      {"hello_with_release", ClientHello{.job = JobId(1),
                                         .client = ClientId(3),
                                         .incarnation = Incarnation(4),
                                         .state = std::nullopt,
                                         .release = "0.9.0"}},
      {"hello_without_state", ClientHello{.job = JobId(1),
                                          .repetition = 2,
                                          .client = ClientId(3),
                                          .incarnation = Incarnation(4),
                                          .state = std::nullopt,
                                          .version = {2, 2}}},
      {"hello_with_empty_state", ClientHello{.job = JobId(1),
                                             .repetition = 2,
                                             .client = ClientId(3),
                                             .incarnation = Incarnation(4),
                                             .state = std::vector<PartitionIndices>(),
                                             .version = {2, 2}}},
      {"heartbeat", ClientHeartbeat{6,
                                    {{WorkerId(7),
                                      "tcp",
                                      "tcp: as asked for",
                                      true,
                                      1,
                                      2,
                                      3,
                                      4,
                                      absl::Seconds(5),
                                      absl::Seconds(6),
                                      true,
                                      {7, 8, 9, 10}},
                                     {}},
                                    true,
                                    {7, absl::Seconds(8), absl::Seconds(9)},
                                    {{10, {PartitionId(11), 12}}, {0, {PartitionId(1), 0}}}}},
      {"heartbeat_of_changes", ClientHeartbeat{.counter = 7,
                                               .links = {{.worker = WorkerId(7), .elements = 2}},
                                               .only_changed_links = true,
                                               .gone_links = {WorkerId(8), WorkerId(9)}}},
      {"fence_answer", FenceAnswer{report}},
      {"report", Report{{report, report}}},
      {"complete_report", Report{.partitions = {}, .rounds = std::nullopt, .complete = true}},
      {"report_of_rounds", Report{{report}, rounds, true}},
      {"commit", Commit{7, {{0, indices}, {1, {}}}}},
      {"leave", Leave{indices}},
      {"receive_limit", ReceiveLimit{{{PartitionId(1), 7}, {PartitionId(2), 0}}}},
  };
}

inline std::map<std::string, ClientDown> RecordedClientDowns() {
  using recorded::Indices;
  using Round = protocol::Agreed::Round;
  const protocol::PartitionRow row{PartitionId(2), 5};
  return {
      {"welcome", Welcome{IterationId(1),
                          recorded::kLife,
                          std::string("t\0k", 3),
                          9,
                          recorded::kTerms,
                          absl::Seconds(1),
                          absl::Seconds(60),
                          {{PartitionId(1), Placement(2), true}},
                          17,
                          {Indices()}}},
      {"welcome_to_an_order",
       Welcome{
           .iteration = IterationId(1), .life = recorded::kLife, .terms = recorded::kOrderedTerms}},
      {"welcome_with_version", Welcome{.iteration = IterationId(1), .version = 2}},
      {"partial_welcome", Welcome{.iteration = IterationId(1),
                                  .placements = {{PartitionId(9), Placement(2)}},
                                  .version = 4,
                                  .partial = true}},
      {"heartbeat_answer", ClientHeartbeatAnswer{5}},
      {"membership",
       Membership{
           3,
           {{PartitionId(1), Placement(2), WorkerId(3)}, {PartitionId(2), Placement(1), {}, 9}},
           {{WorkerId(3), "localhost:1", {recorded::kOffer}, {"tag"}, Incarnation(4)}},
           true,
           1'000'000}},
      {"membership_of_some", Membership{.version = 5,
                                        .partitions = {{PartitionId(9), Placement(2), WorkerId(3)}},
                                        .since = 4,
                                        .num_partitions = 12}},
      {"fence", Fence{PartitionId(1), Placement(2), true}},
      {"report_at_once", ReportAtOnce{}},
      {"committed", Committed{4}},
      {"end", End{2, 7}},
      {"left", Left{}},
      {"session_error", SessionError{absl::DataLossError("what")}},
      {"agreed",
       Agreed{3,
              {Round{.row = row}, Round{.unfilled = true}, Round{.row = row, .pad = true},
               Round{.row = row, .error = protocol::RoundError{row, "broken", 13}, .consumer = 1}},
              "consumer 2"}},
      {"consumers_lost",
       ConsumersLost{{{3, absl::Milliseconds(4), true, "why", true}, {5, absl::Seconds(6)}}}},
  };
}

inline std::map<std::string, WorkerUp> RecordedWorkerUps() {
  using recorded::kOf;
  return {
      {"hello", WorkerHello{WorkerId(1),
                            {1, 2},
                            "localhost:1",
                            {recorded::kOffer, {"grpc", "localhost:1", "", 2}},
                            {"tag"},
                            4,
                            {kOf},
                            Incarnation(6),
                            {recorded::kLife, 11}}},
      {"hello_with_release", WorkerHello{.worker = WorkerId(1), .release = "0.9.0"}},
      {"hello_with_reads",
       WorkerHello{.worker = WorkerId(1), .reads = {{"position", 1, 2}, {"Shuffle", 2, 3}}}},
      {"heartbeat",
       WorkerHeartbeat{
           5,
           {{"1000", {{{"Map#1", 1, 2, absl::Seconds(3), absl::Seconds(4), 5, 6}, {}}}}, {}},
           {{IterationId(7), 8, absl::Seconds(9), 10}, {}}}},
      {"split_request", SplitRequest{kOf, 1, 2, 3, 4}},
      {"bookmark", Bookmark{kOf, 7, "position", {{0, 1, 2}}}},
      {"ended", Ended{kOf, 10}},
      {"partition_failed", PartitionFailed{kOf, absl::NotFoundError("file")}},
      {"bookmark_with_versions", Bookmark{kOf, 7, "position", {}, {{"Shuffle", 2}}}},
      {"dataset_refused", PartitionFailed{kOf, absl::FailedPreconditionError("other"), true}},
      {"drain", Drain{}},
      {"leave", WorkerLeave{}},
      {"at_end", AtEnd{kOf, 11}},
  };
}

inline std::map<std::string, WorkerDown> RecordedWorkerDowns() {
  using recorded::kOf;
  return {
      {"welcome", WorkerWelcome{recorded::kLife, absl::Milliseconds(1500)}},
      {"welcome_with_version", WorkerWelcome{recorded::kLife, absl::Seconds(1), 2}},
      {"heartbeat_answer", WorkerHeartbeatAnswer{5}},
      {"heartbeat_answer_with_interval", WorkerHeartbeatAnswer{5, absl::Seconds(2)}},
      {"assign", Assign{kOf,
                        JobId(1),
                        "token",
                        "1000",
                        5,
                        recorded::kTerms,
                        {ShardingPolicy::kData, 4, 3},
                        2,
                        99,
                        recorded::Indices(),
                        4,
                        "position",
                        {{0, 1, 2, {3, 4}, true}},
                        {{ClientId(5), Incarnation(6), 2}},
                        6,
                        protocol::Remainder{1, 2},
                        7,
                        protocol::Positions{8, 3, 17},
                        11}},
      {"assign_from_the_start", Assign{kOf, JobId(1), "token", "1000", 5}},
      {"assign_with_share",
       Assign{kOf, JobId(1), "token", "1000", 5, {.share = {.weight = 4, .priority = -2}}}},
      {"add_reader", AddReader{kOf, {ClientId(5), Incarnation(6), 1}}},
      {"remove_reader", RemoveReader{kOf, ClientId(5)}},
      {"unassign", Unassign{kOf}},
      {"splits", Splits{kOf, {0, 1, 2, {3}, false}}},
      {"last_splits", Splits{kOf, {0, 1, 3, {}, true}}},
      {"drained", Drained{}},
      {"refused", WorkerRefused{absl::FailedPreconditionError("why")}},
      {"allow_rows", AllowRows{kOf, 8, protocol::Remainder{1, 2}}},
  };
}

}  // namespace penstock::control
