// SPDX-License-Identifier: Apache-2.0
// The gate of the journal: a dispatcher writes nothing that the release before cannot read until
// its operator finalises the upgrade.
#include "control/dispatcher/server/upgrade.h"

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
