// SPDX-License-Identifier: Apache-2.0
// The gate of the journal: a dispatcher writes nothing that the release before cannot read until
// its operator finalises the upgrade.
#include "control/dispatcher/server/upgrade.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "control/dispatcher/transaction.h"
#include "control/state/format.h"
#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

class UpgradeTest : public CoreTest {
 protected:
  absl::Status Finalise(const Caller& caller = {}) {
    absl::Status status = absl::UnknownError("no answer");
    FinaliseUpgrade(
        *core_, [&](absl::Status answer) { status = std::move(answer); }, caller);
    return status;
  }
  // Assigns partition 1 again, to some of its readers, which is a change of a newer format.
  void AssignToSome() {
    Transaction txn(*core_);
    txn.Guard([&] {
      const IterationId id(1);
      const Placement next(2);
      txn.Apply(IterationAltered{id, protocol::PlacementRaised{PartitionId(1), next}});
      txn.Apply(IterationAltered{
          id, protocol::PartitionAssigned{PartitionId(1), next, WorkerId(1), IndexSet::Of(0, 1)}});
    });
  }
  // Begins a job whose one partition is on worker 1.
  void BeginJob() {
    worker_ = Work(1);
    reader_ = Come(Job("job", Register(7), {}), 0, 1);
  }

  Worker worker_;
  Reader reader_;
};

TEST_F(UpgradeTest, ANewJournalIsInTheNewestFormat) {
  Start();
  EXPECT_EQ(recovered_.format, kNewestFormat);
  EXPECT_EQ(Status().format, kNewestFormat);
  EXPECT_EQ(Status().newest_format, kNewestFormat);
}

TEST_F(UpgradeTest, AJournalOfTheReleaseBeforeKeepsItsFormatUntilItIsFinalised) {
  Start({.new_format = kFirstFormat});
  Reopen();
  EXPECT_EQ(Status().format, kFirstFormat);
  EXPECT_TRUE(Finalise().ok());
  EXPECT_EQ(Status().format, kNewestFormat);
  EXPECT_EQ(recovered_.format, kNewestFormat);
  Reopen();
  EXPECT_EQ(Status().format, kNewestFormat);
  const uint64_t sequence = core_->sequence();
  EXPECT_TRUE(Finalise().ok());
  EXPECT_EQ(core_->sequence(), sequence) << "it is finalised already";
}

TEST_F(UpgradeTest, NothingNewerIsWrittenBefore) {
  Start({.new_format = kFirstFormat});
  BeginJob();
  AssignToSome();
  EXPECT_THAT(reader_.inbox->Take<SessionError>()->status.message(), HasSubstr("FormatOf"));
  EXPECT_EQ(newest_written_, kFirstFormat);
}

TEST_F(UpgradeTest, ItIsWrittenAfterwards) {
  Start({.new_format = kFirstFormat});
  BeginJob();
  ASSERT_TRUE(Finalise().ok());
  AssignToSome();
  EXPECT_EQ(newest_written_, kAudiencesFormat);
  EXPECT_EQ(recovered_.iterations.at(IterationId(1)).record.partition(PartitionId(1)).audience,
            IndexSet::Of(0, 1));
}

TEST_F(UpgradeTest, JobsHaveSharesOnlyAfterwards) {
  Start({.new_format = kFirstFormat});
  const std::string dataset = Register(7);
  const auto create = [&] {
    absl::Status created;
    core_->GetOrCreateJob(
        {.name = "job", .dataset_id = dataset, .terms = {.share = {.weight = 3}}},
        [&](const absl::StatusOr<JobAnswer>& answer) { created = answer.status(); });
    return created;
  };
  EXPECT_THAT(std::string(create().message()), HasSubstr("penstock upgrade finalise"));
  EXPECT_EQ(newest_written_, kFirstFormat);
  ASSERT_TRUE(Finalise().ok());
  EXPECT_TRUE(create().ok());
  EXPECT_EQ(newest_written_, kSharesFormat);
}

TEST_F(UpgradeTest, ReadersReadSomeWorkersOnlyAfterwards) {
  CoreOptions options;
  options.max_links = 2;
  options.new_format = kFirstFormat;
  Start(std::move(options));
  const JobAnswer job = Job("job", Register(7), {.mode = ShardingPolicy::kDynamic});
  std::vector<Reader> readers;
  for (uint64_t r = 1; r <= 4; ++r) readers.push_back(Come(job, 0, r));
  std::vector<Worker> workers;
  for (uint64_t w = 1; w <= 6; ++w) workers.push_back(Work(w));
  const auto with_audience = [&] {
    return std::ranges::count_if(
        recovered_.iterations.at(IterationId(1)).record.partitions,
        [](const protocol::PartitionRecord& partition) { return partition.audience.has_value(); });
  };
  EXPECT_EQ(with_audience(), 0);
  EXPECT_EQ(newest_written_, kFirstFormat);
  ASSERT_TRUE(Finalise().ok());
  for (uint64_t w = 7; w <= 12; ++w) workers.push_back(Work(w));
  EXPECT_EQ(with_audience(), 6);
  EXPECT_EQ(newest_written_, kAudiencesFormat);
}

// --- Bookmarks ---------------------------------------------------------------------------

using Versions = std::vector<PositionVersion>;

// A worker that reads these versions of Shuffle.
class BookmarksTest : public UpgradeTest {
 protected:
  Worker WorkThatReads(uint64_t id, uint32_t lowest, uint32_t highest) {
    Worker worker;
    worker.peer = core_->OpenWorker(worker.inbox);
    core_->OnMessage(worker.peer, WorkerHello{.worker = WorkerId(id),
                                              .address = absl::StrCat("worker", id),
                                              .reads = {{"Shuffle", lowest, highest}}});
    return worker;
  }
  // A job of one partition, on a worker that reads and writes versions 1 and 2.
  void BeginJob() {
    job_ = Job("job", Register(7), {.mode = ShardingPolicy::kDynamic, .quota = {.max_permits = 1}});
    newer_ = WorkThatReads(1, 1, 2);
    reader_ = Come(job_, 0, 1);
    of_ = newer_.inbox->Take<Assign>()->of;
  }
  void Mark(Index index, const std::string& position, Versions versions) {
    core_->OnMessage(newer_.peer, Bookmark{of_, index, position, {}, std::move(versions)});
  }
  // Moves the partition to the worker.
  std::optional<Assign> MoveTo(Worker& worker) {
    core_->OnMessage(newer_.peer, WorkerLeave{});
    const std::optional<Fence> fence = reader_.inbox->Take<Fence>();
    core_->OnMessage(reader_.peer, FenceAnswer{{fence->partition, fence->placement,
                                                IndexSet::Of(0, 100), IndexSet::Of(0, 100)}});
    return worker.inbox->Take<Assign>();
  }

  JobAnswer job_;
  Worker newer_;
  PlacedPartition of_;
};

TEST_F(BookmarksTest, AWorkerGetsTheNewestOneThatItCanRead) {
  Start();
  BeginJob();
  Mark(10, "older", {});
  Mark(20, "newer", {{"Shuffle", 2}});
  EXPECT_EQ(newest_written_, kBookmarkVersionsFormat);
  Worker reads_both = WorkThatReads(2, 1, 2);
  const std::optional<Assign> assign = MoveTo(reads_both);
  ASSERT_TRUE(assign.has_value());
  EXPECT_EQ(assign->bookmark, "newer");
  EXPECT_EQ(assign->bookmark_index, 20);
}

TEST_F(BookmarksTest, AnEarlierOneIsTakenByAWorkerThatCannotReadTheNewest) {
  Start();
  BeginJob();
  Mark(10, "older", {});
  Mark(20, "newer", {{"Shuffle", 2}});
  const PartitionSplits& journaled = recovered_.iterations.at(IterationId(1)).splits.at(0);
  EXPECT_EQ(journaled.marks.at(0), (MarkedBookmark{20, {}, {{"Shuffle", 2}}}));
  Worker older = Work(2);
  const std::optional<Assign> assign = MoveTo(older);
  ASSERT_TRUE(assign.has_value());
  EXPECT_EQ(assign->bookmark, "older");
  EXPECT_EQ(assign->bookmark_index, 10);
  EXPECT_EQ(std::ranges::count(events_->All(), "bookmark_passed_over", &Event::name), 1);
}

TEST_F(BookmarksTest, TheStartIsTakenIfNoBookmarkCanBeRead) {
  Start();
  BeginJob();
  Mark(20, "newer", {{"Shuffle", 2}});
  Worker older = Work(2);
  const std::optional<Assign> assign = MoveTo(older);
  ASSERT_TRUE(assign.has_value());
  EXPECT_EQ(assign->bookmark, "");
  EXPECT_EQ(assign->bookmark_index, 0);
}

TEST_F(BookmarksTest, OnesOfTheNewReleaseAreNotKeptBeforeTheUpgradeIsFinalised) {
  Start({.new_format = kFirstFormat});
  BeginJob();
  Mark(10, "older", {});
  Mark(20, "newer", {{"Shuffle", 2}});
  const auto& bookmarks = [&]() -> const auto& {
    return recovered_.iterations.at(IterationId(1)).record.partition(PartitionId(1)).bookmarks;
  };
  EXPECT_EQ(bookmarks().size(), 1u);
  EXPECT_EQ(newest_written_, kFirstFormat);
  ASSERT_TRUE(Finalise().ok());
  Mark(30, "newest", {{"Shuffle", 2}});
  EXPECT_EQ(bookmarks().back().bytes, "newest");
  EXPECT_EQ(newest_written_, kBookmarkVersionsFormat);
}

TEST_F(UpgradeTest, OnlyAnOperatorFinalises) {
  Start({.new_format = kFirstFormat});
  for (const Role role : {Role::kTrainer, Role::kWorker}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Finalise(Principal{.name = "p", .role = role})));
  }
  EXPECT_EQ(Status().format, kFirstFormat);
  EXPECT_TRUE(Finalise(Principal{.name = "o", .role = Role::kOperator}).ok());
  EXPECT_EQ(Status().format, kNewestFormat);
}

}  // namespace
}  // namespace penstock::control
