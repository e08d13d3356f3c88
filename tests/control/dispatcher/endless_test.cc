// SPDX-License-Identifier: Apache-2.0
// Jobs that repeat their dataset without end before it is distributed: which splits the dispatcher
// keeps.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/protocol/restore.h"
#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kSplits = 50;

class Endless : public CoreTest {
 protected:
  struct Runner {
    Worker worker;
    PlacedPartition of;
    Index index = 0;
  };

  void Begin(AckMode ack_mode = AckMode::kOnDelivery) {
    Start();
    job_ =
        Job("job", Register(11, kSplits), {.mode = ShardingPolicy::kDynamic, .ack_mode = ack_mode});
    first_ = {Work(1), {}};
    reader_ = Come(job_, 0, 5);
    first_.of = first_.worker.inbox->Take<Assign>().value().of;
  }
  // Returns the splits of a pass that the runner gets when it requests all.
  std::vector<int64_t> Ask(Runner& runner, int64_t pass) {
    std::vector<int64_t> numbers;
    for (bool more = true; more;) {
      core_->OnMessage(runner.worker.peer,
                       SplitRequest{.of = runner.of,
                                    .provider = 0,
                                    .repetition = pass,
                                    .first_ordinal = static_cast<int64_t>(numbers.size()),
                                    .wanted = 16});
      const auto answer = runner.worker.inbox->Take<Splits>();
      if (!answer) {
        ADD_FAILURE() << "no answer for pass " << pass;
        return numbers;
      }
      numbers.insert(numbers.end(), answer->run.numbers.begin(), answer->run.numbers.end());
      more = !answer->run.no_more;
    }
    return numbers;
  }
  // Reports all of the pass as delivered, and a bookmark at the beginning of the next one.
  void Passes(Runner& runner, int64_t pass, size_t elements) {
    runner.index += static_cast<Index>(elements);
    core_->OnMessage(reader_.peer, Report{{{.partition = runner.of.partition,
                                            .placement = runner.of.placement,
                                            .delivered = IndexSet::Of(0, runner.index)}}});
    core_->OnMessage(runner.worker.peer,
                     Bookmark{runner.of, runner.index, "position", {{0, pass + 1, 0}}});
  }
  const IterationState& Iteration() const { return recovered_.iterations.begin()->second; }

  JobAnswer job_;
  Reader reader_;
  Runner first_;
};

TEST_F(Endless, SplitsThatNoBookmarkNeedsAreGone) {
  Begin();
  size_t after_100 = 0;
  for (int64_t pass = 0; pass < 200; ++pass) {
    const std::vector<int64_t> splits = Ask(first_, pass);
    EXPECT_EQ(std::set<int64_t>(splits.begin(), splits.end()).size(), size_t{kSplits});
    Passes(first_, pass, splits.size());
    if (pass == 99) after_100 = SnapshotSize();
  }
  EXPECT_LE(SnapshotSize(), after_100 + 32);
  EXPECT_LE(Iteration().splits[0].given.size(), 2u);
  EXPECT_LE(Iteration().handed_out.size(), 2u);
  EXPECT_GE(Iteration().PassesOverOf(0), 198);
  // The next worker does not get them either.
  core_->OnMessage(first_.worker.peer, WorkerLeave{});
  const Worker next = Work(2);
  const auto fence = reader_.inbox->Take<Fence>();
  ASSERT_TRUE(fence.has_value());
  core_->OnMessage(reader_.peer, FenceAnswer{{fence->partition, fence->placement, {}, {}}});
  const auto assign = next.inbox->Take<Assign>();
  ASSERT_TRUE(assign.has_value());
  EXPECT_GT(assign->bookmark_index, 0);
  EXPECT_LE(assign->splits.size(), 2u);
}

TEST_F(Endless, APartitionThatComesLaterFindsNothingOfPassesThatAreOver) {
  Begin();
  for (int64_t pass = 0; pass < 20; ++pass) Passes(first_, pass, Ask(first_, pass).size());
  ASSERT_GE(Iteration().PassesOverOf(0), 18);
  core_->OnMessage(first_.worker.peer, SplitRequest{first_.of, 0, 20, 0, 16});
  const SplitRun part = first_.worker.inbox->Take<Splits>().value().run;
  Runner second{Work(2), {}};
  second.of = second.worker.inbox->Take<Assign>().value().of;
  ASSERT_NE(second.of.partition, first_.of.partition);
  const size_t before = SnapshotSize();
  for (int64_t pass = 0; pass < 20; ++pass) EXPECT_THAT(Ask(second, pass), IsEmpty()) << pass;
  EXPECT_LE(SnapshotSize(), before + 64) << "what it finds nothing of is not kept either";
  std::vector<int64_t> all = Ask(second, 20);  // the two share this pass
  ASSERT_THAT(all, Not(IsEmpty()));
  all.insert(all.end(), part.numbers.begin(), part.numbers.end());
  EXPECT_THAT(std::set<int64_t>(all.begin(), all.end()), SizeIs(kSplits));
  EXPECT_THAT(all, SizeIs(kSplits));
}

TEST_F(Endless, RequestsForRetiredSplitsAreErrors) {
  Begin();
  for (int64_t pass = 0; pass < 5; ++pass) Passes(first_, pass, Ask(first_, pass).size());
  core_->OnMessage(first_.worker.peer, SplitRequest{first_.of, 0, 1, 0, 1});
  ASSERT_TRUE(reader_.inbox->finished.has_value());
  EXPECT_THAT(std::string(reader_.inbox->finished->message()), HasSubstr("are retired"));
}

TEST_F(Endless, SplitsThatOnePartitionNeedsStay) {
  Begin();
  Runner second{Work(2), {}};
  second.of = second.worker.inbox->Take<Assign>().value().of;
  for (int64_t pass = 0; pass < 20; ++pass) {
    core_->OnMessage(second.worker.peer, SplitRequest{second.of, 0, pass, 0, 1});
    EXPECT_TRUE(second.worker.inbox->Take<Splits>().has_value());
    Passes(first_, pass, Ask(first_, pass).size());
  }
  // The second has no bookmark: it would begin from the start.
  EXPECT_EQ(Iteration().PassesOverOf(0), 0);
  EXPECT_THAT(Iteration().splits[1].given, SizeIs(20));
  EXPECT_LE(Iteration().splits[0].given.size(), 2u);
  for (int64_t pass = 0; pass < 20; ++pass)
    EXPECT_EQ(Iteration().handed_out.at({0, pass}), kSplits);
}

// A job that goes on from the states of all ranks, on another service.
TEST_F(Endless, RestoredItGivesNoSplitAgain) {
  Begin(AckMode::kOnCommit);
  Runner second{Work(2), {}};
  second.of = second.worker.inbox->Take<Assign>().value().of;
  std::set<int64_t> given;
  for (int64_t pass = 0; pass < 20; ++pass) {
    core_->OnMessage(first_.worker.peer, SplitRequest{first_.of, 0, pass, 0, 16});
    first_.worker.inbox->Take<Splits>();
    Passes(second, pass, Ask(second, pass).size());
    Passes(first_, pass, Ask(first_, pass).size());
    std::vector<PartitionIndices> kept;
    for (const Runner* runner : {&first_, &second})
      kept.push_back({runner->of.partition, IndexSet::Of(0, runner->index)});
    core_->OnMessage(reader_.peer, Commit{pass + 1, {{0, kept}}});
  }
  // The first is further, and no longer needs its part of pass 20.
  core_->OnMessage(first_.worker.peer, SplitRequest{first_.of, 0, 20, 0, 16});
  const SplitRun part = first_.worker.inbox->Take<Splits>().value().run;
  given.insert(part.numbers.begin(), part.numbers.end());
  RankState rank{.client = ClientId(5), .job = job_.job, .job_mark = 1, .job_name = "job"};
  RankState::Repetition& repetition = rank.repetitions.emplace_back();
  core_->GetReading({job_.job, 0}, [&](const auto& answer) { repetition.saved = answer.value(); });
  EXPECT_GE(repetition.saved.passes_over.at(0), 18);
  for (const SavedRepetition::Partition& partition : repetition.saved.partitions)
    EXPECT_LE(partition.given.size(), 3u);
  for (const Runner* runner : {&first_, &second})
    repetition.delivered.push_back({runner->of.partition, IndexSet::Of(0, runner->index)});
  const auto restoration = MergeRankStates({&rank, 1}, 99);
  ASSERT_TRUE(restoration.ok()) << restoration.status();
  Restoration edited = *restoration;
  EXPECT_EQ(ForgetBookmarks(edited).code(), absl::StatusCode::kInvalidArgument);

  Start();
  const std::string dataset = Register(11, kSplits);
  core_->RestoreJob({{.name = "job",
                      .dataset_id = dataset,
                      .terms = {.mode = ShardingPolicy::kDynamic, .ack_mode = AckMode::kOnCommit}},
                     *restoration},
                    [&](const auto& answer) { job_ = answer.value(); });
  std::vector<Runner> runners = {{Work(1), {}}, {Work(2), {}}, {Work(3), {}}};
  reader_ = Come(job_, 0, 8);
  for (Runner& runner : runners) runner.of = runner.worker.inbox->Take<Assign>().value().of;
  const auto is_late = [](const Runner& its) { return its.of.partition == PartitionId(3); };
  Runner& late = *std::ranges::find_if(runners, is_late);
  for (int64_t pass = 0; pass < 20; ++pass) EXPECT_THAT(Ask(late, pass), IsEmpty()) << pass;
  const std::vector<int64_t> rest = Ask(late, 20);
  EXPECT_THAT(rest, SizeIs(kSplits - static_cast<int64_t>(part.numbers.size())));
  for (const int64_t split : rest) EXPECT_FALSE(given.contains(split));
}

}  // namespace
}  // namespace penstock::control
