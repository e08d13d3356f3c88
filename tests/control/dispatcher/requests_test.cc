// SPDX-License-Identifier: Apache-2.0
// Requests that register datasets and make jobs of them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/dispatcher_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

TEST_F(DispatcherTest, EqualDefinitionsGetTheSameAutomaticId) {
  Start();
  auto first = stub_->GetOrRegisterDataset({.definition = "a", .summary = Summary(1)}, kOnce);
  auto again = stub_->GetOrRegisterDataset({.definition = "a", .summary = Summary(1)}, kOnce);
  auto other = stub_->GetOrRegisterDataset({.definition = "b", .summary = Summary(2)}, kOnce);
  EXPECT_EQ(first->dataset_id, "1000");
  EXPECT_EQ(again->dataset_id, "1000");
  EXPECT_TRUE(again->existed);
  EXPECT_EQ(other->dataset_id, "1001");
}

// The fingerprint comes from the client that registers.
TEST_F(DispatcherTest, AFingerprintAloneGivesNoAutomaticId) {
  Start(Journaled());
  const RegisterDatasetRequest theirs{.definition = "theirs", .summary = Summary(1)};
  EXPECT_EQ(stub_->GetOrRegisterDataset(theirs, kOnce)->dataset_id, "1000");
  RegisterDatasetRequest ours{.definition = "ours", .summary = Summary(1)};
  EXPECT_EQ(stub_->GetOrRegisterDataset(ours, kOnce)->dataset_id, "1001");
  EXPECT_EQ(stub_->GetDataset("1001", 0, kOnce)->definition, "ours");
  RegisterDatasetRequest other_plan = ours;
  other_plan.summary.plan[0].files = {"/etc/passwd"};
  EXPECT_EQ(stub_->GetOrRegisterDataset(other_plan, kOnce)->dataset_id, "1002");
  RegisterDatasetRequest other_spec = ours;
  other_spec.summary.spec_text = "string[]";
  EXPECT_EQ(stub_->GetOrRegisterDataset(other_spec, kOnce)->dataset_id, "1003");
  Restart(Journaled());
  EXPECT_EQ(stub_->GetOrRegisterDataset(ours, kOnce)->dataset_id, "1001");
}

TEST_F(DispatcherTest, AnotherDefinitionUnderAUsedIdNamesTheFirstDifferingNode) {
  Start();
  RegisterDatasetRequest request{.dataset_id = "mine", .definition = "a", .summary = Summary(1)};
  ASSERT_TRUE(stub_->GetOrRegisterDataset(request, kOnce).ok());
  request.summary = Summary(2);
  absl::Status refused = stub_->GetOrRegisterDataset(request, kOnce).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("Batch#1"));

  request.replace = true;
  ASSERT_TRUE(stub_->GetOrRegisterDataset(request, kOnce).ok());
  EXPECT_EQ(stub_->GetDataset("mine", 0, kOnce)->summary.fingerprint, 2u);
}

// Its fingerprint contains the pattern of its files, not their names.
TEST_F(DispatcherTest, FilesAreListedAgainOnlyForReplace) {
  Start();
  RegisterDatasetRequest request{.dataset_id = "mine", .definition = "a", .summary = Summary(1)};
  request.summary.plan[0].files = {"a", "b"};
  ASSERT_TRUE(stub_->GetOrRegisterDataset(request, kOnce).ok());
  request.summary.plan[0].files = {"a", "b", "c"};
  EXPECT_TRUE(stub_->GetOrRegisterDataset(request, kOnce)->existed);
  EXPECT_EQ(stub_->GetDataset("mine", 0, kOnce)->summary.plan[0].files.size(), 2u);
  request.replace = true;
  EXPECT_FALSE(stub_->GetOrRegisterDataset(request, kOnce)->existed);
  EXPECT_EQ(stub_->GetDataset("mine", 0, kOnce)->summary.plan[0].files.size(), 3u);
}

TEST_F(DispatcherTest, AJobGoesOnWithTheDefinitionItWasMadeFor) {
  Start(Journaled());
  RegisterDatasetRequest request{.dataset_id = "mine", .definition = "a", .summary = Summary(1)};
  ASSERT_TRUE(stub_->GetOrRegisterDataset(request, kOnce).ok());
  const JobAnswer job = *stub_->GetOrCreateJob({.request = NewRequest(),
                                                .name = "job",
                                                .dataset_id = "mine",
                                                .terms = {.mode = ShardingPolicy::kDynamic}},
                                               kOnce);
  uint64_t edition = 0;
  {
    HandWorker worker(*stub_, 1);
    HandClient client(*stub_, job, 5);
    edition = worker.Next<Assign>().dataset_edition;
  }
  request.summary.plan[0].count = 20;
  request.replace = true;
  ASSERT_TRUE(stub_->GetOrRegisterDataset(request, kOnce).ok());
  Restart(Journaled());
  EXPECT_EQ(stub_->GetDataset("mine", edition, kOnce)->summary.plan[0].count, 10);
  EXPECT_EQ(stub_->GetDataset("mine", 0, kOnce)->summary.plan[0].count, 20);
  EXPECT_EQ(stub_->GetDataset("mine", edition + 1, kOnce).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(DispatcherTest, AnUnknownDatasetIsNotFound) {
  Start();
  absl::Status status = stub_->GetDataset("7", 0, kOnce).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "Dataset id 7 not found");
}

// Each iterator does this in each epoch.
TEST_F(DispatcherTest, JoiningAnExistingJobAddsNothingToTheJournal) {
  Start();
  const JobAnswer job = MakeJob("job");
  const uint64_t before = stub_->GetStatus(kOnce)->journal_sequence;
  EXPECT_EQ(MakeJob("job").job, job.job);
  EXPECT_EQ(stub_->GetStatus(kOnce)->journal_sequence, before);
}

TEST_F(DispatcherTest, ARepeatedRequestGetsTheSameAnswerAlsoAfterARestart) {
  Start(Journaled());
  MakeJob("named");
  GetOrCreateJobRequest anonymous{.request = NewRequest(), .dataset_id = "1000"};
  auto first = stub_->GetOrCreateJob(anonymous, kOnce);
  auto again = stub_->GetOrCreateJob(anonymous, kOnce);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(*first, *again);

  Restart(Journaled());
  auto later = stub_->GetOrCreateJob(anonymous, kOnce);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(*first, *later);
}

TEST_F(DispatcherTest, AJobIsOfTheDatasetThatWasRegisteredOrOfNone) {
  Start();
  MakeJob("named");
  GetOrCreateJobRequest job{.request = NewRequest(), .dataset_id = "1000"};
  job.dataset_fingerprint = 12345;  // from a dataset that had this id in an older life
  const absl::Status other = stub_->GetOrCreateJob(job, kOnce).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kNotFound) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("register it again"));
}

// Its stream may end some time after.
TEST_F(DispatcherTest, AJobWhoseReaderHasLeftMayRestartFromItsStates) {
  Start();
  const JobAnswer job = MakeJob("run", ShardingPolicy::kDynamic, AckMode::kOnCommit);
  HandWorker worker(*stub_, 1);
  HandClient reader(*stub_, job, 5);
  const Assign assign = worker.Next<Assign>();
  reader.SendReport(assign.of.partition, assign.of.placement, IndexSet::Of(0, 4));
  const RestoreJobRequest request{{.name = "run",
                                   .run_id = "again",
                                   .dataset_id = job.dataset_id,
                                   .terms = {.ack_mode = AckMode::kOnCommit}},
                                  {}};
  EXPECT_THAT(std::string(stub_->RestoreJob(request, kOnce).status().message()),
              HasSubstr("is not finished"));
  reader.Send(Leave{{{assign.of.partition, IndexSet::Of(0, 4)}}});
  reader.Next<Left>();
  EXPECT_TRUE(stub_->RestoreJob(request, kOnce).ok());
}

TEST_F(DispatcherTest, AJobOfTheSameNameMustAgreeInEachField) {
  Start();
  MakeJob("shared", ShardingPolicy::kDynamic, AckMode::kOnDelivery);
  absl::Status refused =
      stub_
          ->GetOrCreateJob(
              {.request = NewRequest(),
               .name = "shared",
               .dataset_id = "1000",
               .terms = {.mode = ShardingPolicy::kOff, .ack_mode = AckMode::kOnCommit}},
              kOnce)
          .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("existing processing mode: <DYNAMIC>; got <OFF>"));
  EXPECT_THAT(refused.message(), HasSubstr("existing ack_mode: <on_delivery>; got <on_commit>"));
}

TEST_F(DispatcherTest, AnActiveJobsDatasetStaysUntilTheJobIsCancelled) {
  Start();
  JobAnswer job = MakeJob("reads");
  EXPECT_EQ(stub_->UnregisterDataset("1000", kOnce).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stub_->RemoveJob("reads", kOnce).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(stub_->CancelJob("reads", kOnce).ok());
  EXPECT_TRUE(stub_->UnregisterDataset("1000", kOnce).ok());
  EXPECT_TRUE(stub_->RemoveJob("reads", kOnce).ok());
  EXPECT_TRUE(stub_->GetStatus(kOnce)->jobs.empty());
  HandClient late(*stub_, job, 1);
  EXPECT_EQ(late.Next<SessionError>().status.code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace penstock::control
