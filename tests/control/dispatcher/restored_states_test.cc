// SPDX-License-Identifier: Apache-2.0
// States that contain several repetitions of a job: they are resumed whole or not at all.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

constexpr PartitionId kOnlyPartition{1};
constexpr uint64_t kRestored = 5;

class RestoredStates : public CoreTest {
 protected:
  // A client has elements of repetitions 0 and 1, and has committed none.
  RestoredStates() {
    Start({.client_timeout = absl::Seconds(60)});
    job_ = Job("job", Register(11, 100),
               {.mode = ShardingPolicy::kOff, .ack_mode = AckMode::kOnCommit});
    worker_ = Work(1, /*permits=*/2);
    for (const int64_t repetition : {0, 1}) {
      readers_.push_back(Come(job_, repetition, kRestored));
      const auto assign = worker_.inbox->Take<Assign>();
      EXPECT_TRUE(assign.has_value());
      core_->OnMessage(readers_.back().peer, Report{{{.partition = kOnlyPartition,
                                                      .placement = assign->of.placement,
                                                      .delivered = IndexSet::Of(0, 6)}}});
    }
  }
  // Restarts the client from a state with this many elements of each repetition. Returns its
  // session of `repetition`.
  Reader Resume(int64_t repetition, Index elements, uint64_t incarnation) {
    Reader reader;
    reader.peer = core_->OpenClient(reader.inbox);
    const std::vector<PartitionIndices> state = {{kOnlyPartition, IndexSet::Of(0, elements)}};
    core_->OnMessage(reader.peer, ClientHello{.job = job_.job,
                                              .repetition = repetition,
                                              .client = ClientId(kRestored),
                                              .incarnation = Incarnation(incarnation),
                                              .state = state,
                                              .token = job_.token,
                                              .others = {{1 - repetition, state}}});
    return reader;
  }
  // Lets time pass in which the client is heard in repetition 0 only.
  void PassInSilenceOfOne(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end; Pass(absl::Seconds(1)))
      core_->OnMessage(readers_[0].peer, ClientHeartbeat{.counter = ++heartbeats_});
  }

  JobAnswer job_;
  Worker worker_;
  std::vector<Reader> readers_;
  uint64_t heartbeats_ = 0;
};

TEST_F(RestoredStates, AreRefusedWholeIfTheClientIsDeadInOneRepetition) {
  PassInSilenceOfOne(absl::Seconds(90));
  for (const int64_t repetition : {1, 0}) {
    Reader newest = Resume(repetition, /*elements=*/6, /*incarnation=*/2);
    const auto error = newest.inbox->Take<SessionError>();
    ASSERT_TRUE(error.has_value()) << repetition;
    EXPECT_THAT(std::string(error->status.message()), HasSubstr("were never committed"));
  }
  // The refused state has committed nothing in repetition 0, so the one before it is not too old.
  for (const int64_t repetition : {0, 1}) {
    Reader before = Resume(repetition, /*elements=*/0, /*incarnation=*/3);
    EXPECT_TRUE(before.inbox->Take<Welcome>().has_value()) << repetition;
  }
}

// The process may die between its hellos.
TEST_F(RestoredStates, AreCommittedInAllRepetitionsByTheFirstHello) {
  Reader first = Resume(/*repetition=*/0, /*elements=*/6, /*incarnation=*/2);
  EXPECT_TRUE(first.inbox->Take<Welcome>().has_value());
  Pass(absl::Seconds(90));  // the client is declared dead in both
  for (const int64_t repetition : {0, 1}) {
    Reader again = Resume(repetition, /*elements=*/6, /*incarnation=*/3);
    EXPECT_TRUE(again.inbox->Take<Welcome>().has_value()) << repetition;
  }
}

}  // namespace
}  // namespace penstock::control
