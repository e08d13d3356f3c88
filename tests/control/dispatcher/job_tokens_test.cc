// SPDX-License-Identifier: Apache-2.0
// The core writes no token of a job into its journal, and each job keeps its token.
#include "control/dispatcher/job_tokens.h"

#include <string>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JobTokensTest : public CoreTest {
 protected:
  void SetUp() override {
    Start();
    dataset_ = Register(1);
  }
  JobAnswer Repeated(const RequestId& request) {
    JobAnswer job;
    core_->GetOrCreateJob({.request = request, .name = "job", .dataset_id = dataset_},
                          [&](const auto& answer) { job = answer.value_or(JobAnswer()); });
    return job;
  }
  // Returns the token of the reader's Welcome; empty if it is refused.
  std::string TokenFor(const JobAnswer& job, uint64_t client) {
    Reader reader = Come(job, 0, client);
    const auto welcome = reader.inbox->Take<Welcome>();
    return welcome.has_value() ? welcome->token : "";
  }
  std::string StateBytes() const {
    const auto pieces = EncodeState(recovered_);
    return absl::StrJoin(*pieces, "");
  }

  std::string dataset_;
};

TEST_F(JobTokensTest, AreNotInTheJournal) {
  const RequestId request{Incarnation(7), 1};
  const JobAnswer job = Repeated(request);
  EXPECT_EQ(job.token.size(), 32u);
  EXPECT_EQ(TokenFor(job, 5), job.token);
  EXPECT_THAT(StateBytes(), Not(HasSubstr(job.token)));
  EXPECT_EQ(recovered_.jobs.at(job.job).token, "");
}

TEST_F(JobTokensTest, AreTheSameInTheNextLife) {
  const RequestId request{Incarnation(7), 1};
  const JobAnswer job = Repeated(request);
  Reopen();
  EXPECT_EQ(Repeated(request), job);
  EXPECT_EQ(Repeated({Incarnation(7), 2}).token, job.token);
  EXPECT_EQ(TokenFor(job, 5), job.token);
  Worker worker = Work(1);
  EXPECT_EQ(worker.inbox->Take<Assign>()->token, job.token);
}

TEST_F(JobTokensTest, OfAnotherJobLetNobodyIn) {
  const JobAnswer job = Job("job", dataset_, {});
  const JobAnswer other = Job("other", dataset_, {});
  ASSERT_NE(job.token, other.token);
  JobAnswer wrong = job;
  wrong.token = other.token;
  EXPECT_EQ(TokenFor(wrong, 5), "");
  wrong.token = "";
  EXPECT_EQ(TokenFor(wrong, 6), "");
  wrong.token = recovered_.jobs.at(job.job).nonce;
  EXPECT_EQ(TokenFor(wrong, 7), "");
}

TEST_F(JobTokensTest, OfAnOlderReleaseStayUntilTheJobIsRemoved) {
  JobAnswer job = Job("job", dataset_, {});
  job.token = "of-an-older-release";
  recovered_.jobs.at(job.job).nonce.clear();
  recovered_.jobs.at(job.job).token = job.token;
  Reopen();
  EXPECT_EQ(Job("job", dataset_, {}).token, job.token);
  EXPECT_EQ(TokenFor(job, 5), job.token);
  Reopen();
  EXPECT_EQ(TokenFor(job, 5), job.token);
  EXPECT_THAT(StateBytes(), HasSubstr(job.token));
  core_->CancelJob("job", [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  core_->RemoveJob("job", [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  EXPECT_THAT(StateBytes(), Not(HasSubstr(job.token)));
}

TEST_F(JobTokensTest, NeedTheKeyUntilTheirJobsAreCancelled) {
  const uint64_t id = FixedTokens(0)->key_id;
  EXPECT_EQ(recovered_.lives.back().key_id, id);
  EXPECT_EQ(recovered_.NeededKey(), 0u);
  Job("job", dataset_, {});
  EXPECT_EQ(recovered_.NeededKey(), id);
  core_->CancelJob("job", [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  EXPECT_EQ(recovered_.NeededKey(), 0u);
}

TEST_F(JobTokensTest, ThatCannotBeMadeStopTheDispatcher) {
  Job("job", dataset_, {});
  uint64_t asked = 0;
  CoreOptions options;
  options.events = events_;
  options.job_tokens = [&](uint64_t needed) -> absl::StatusOr<JobTokens> {
    asked = needed;
    return absl::FailedPreconditionError("the key is missing");
  };
  Recovered before;
  before.snapshot = EncodeState(recovered_).value();
  const absl::Status refused =
      Core::Open(std::move(options),
                 std::make_unique<ReplayedJournal>(recovered_, newest_written_, std::move(before)))
          .status();
  EXPECT_EQ(refused.message(), "the key is missing");
  EXPECT_EQ(asked, FixedTokens(0)->key_id);
}

}  // namespace
}  // namespace penstock::control
