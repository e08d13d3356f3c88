// SPDX-License-Identifier: Apache-2.0
// Elections in a real etcd cluster.
#include "control/leadership/etcd_leadership.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/etcd/etcd_cluster.h"
#include "tests/control/etcd/faulty_client.h"
#include "tests/control/etcd/test_folder.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// Longer than a test waits.
constexpr absl::Duration kEndlessLease = absl::Minutes(10);

class EtcdLeadershipTest : public ::testing::Test {
 protected:
  // A process that would lead.
  struct Candidate {
    std::shared_ptr<FaultyClient> client;
    std::shared_ptr<CapturedEvents> events = CapturedEvents::Make();
    std::unique_ptr<Leadership> leadership;
    std::atomic<bool> leads = false;
    std::atomic<bool> lost = false;
    std::thread campaign = {};

    ~Candidate() {
      leadership->Resign();
      if (campaign.joinable()) campaign.join();
    }
    absl::Status Campaign() {
      const absl::Status elected = leadership->Campaign([this](const absl::Status& why) {
        EXPECT_EQ(why.code(), absl::StatusCode::kAborted) << why;
        lost = true;
      });
      leads = elected.ok();
      return elected;
    }
    void CampaignOnAThread() {
      campaign = std::thread([this] { (void)Campaign(); });
    }
    bool Waits() { return !events->WaitFor("standby", absl::Minutes(1)).name.empty(); }
  };

  void SetUp() override {
    auto cluster = EtcdCluster::Start(NewTestFolder());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  std::unique_ptr<Candidate> Make(const std::string& name, absl::Duration lease) {
    EtcdOptions options = cluster_->Options();
    options.patience = LeaderPatience(kLeaderLease);
    auto candidate = std::make_unique<Candidate>();
    candidate->client = std::make_shared<FaultyClient>(*EtcdClient::Make(options));
    candidate->leadership = MakeEtcdLeadership(
        candidate->client, {.prefix = options.address.prefix, .name = name, .lease = lease},
        candidate->events);
    return candidate;
  }

  std::unique_ptr<EtcdCluster> cluster_;
};

TEST_F(EtcdLeadershipTest, AStandbyLeadsAtOnceWhenTheLeaderResigns) {
  auto first = Make("first", kEndlessLease);
  auto second = Make("second", kEndlessLease);
  EXPECT_EQ(first->leadership->HoldsUntil(), absl::InfinitePast());
  ASSERT_TRUE(first->Campaign().ok());
  EXPECT_GT(first->leadership->HoldsUntil(), BootTime());
  second->CampaignOnAThread();
  ASSERT_TRUE(second->Waits());
  EXPECT_EQ(second->events->WaitFor("standby", absl::ZeroDuration()).field("leader"), "first");
  EXPECT_FALSE(second->leads);
  const uint64_t term = first->leadership->term();
  first->leadership->Resign();
  EXPECT_EQ(first->leadership->HoldsUntil(), absl::InfinitePast());
  ASSERT_TRUE(Eventually([&] { return second->leads.load(); }));
  EXPECT_GT(second->leadership->term(), term);
  EXPECT_FALSE(first->lost);
}

TEST_F(EtcdLeadershipTest, AStandbyLeadsWhenTheLeaderIsCutOffButNotBeforeTheLeaderKnows) {
  auto first = Make("first", kLeaderLease);
  auto second = Make("second", kLeaderLease);
  ASSERT_TRUE(first->Campaign().ok());
  second->CampaignOnAThread();
  ASSERT_TRUE(second->Waits());
  first->client->Cut();
  // The latest time until which the first one would have renewed a lease.
  absl::Time promised = absl::InfinitePast();
  ASSERT_TRUE(Eventually([&] {
    const bool second_leads = second->leads;
    if (!second_leads) promised = std::max(promised, first->leadership->HoldsUntil());
    return second_leads;
  }));
  EXPECT_LT(promised, BootTime());
  EXPECT_LT(first->leadership->HoldsUntil(), BootTime());
  EXPECT_GT(second->leadership->HoldsUntil(), BootTime());
  EXPECT_TRUE(Eventually([&] { return first->lost.load(); }));
  EXPECT_EQ(first->leadership->HoldsUntil(), absl::InfinitePast());
}

TEST_F(EtcdLeadershipTest, AnElectionWhoseAnswerIsLostIsFoundOut) {
  auto first = Make("first", kEndlessLease);
  first->client->SetFate([lost = false]() mutable {
    return std::exchange(lost, true) ? FaultyClient::Fate::kArrives
                                     : FaultyClient::Fate::kAnswerLost;
  });
  ASSERT_TRUE(first->Campaign().ok());
  EXPECT_EQ(first->events->WaitFor("standby", absl::ZeroDuration()).name, "");
  EXPECT_GT(first->leadership->term(), 0u);
}

// One of the three is etcd's leader.
TEST_F(EtcdLeadershipTest, TheLeaderStaysWhileAnyOneEtcdIsKilled) {
  auto first = Make("first", absl::Seconds(30));
  ASSERT_TRUE(first->Campaign().ok());
  for (int member = 0; member < cluster_->size(); ++member) {
    cluster_->Kill(member);
    const absl::Time before = first->leadership->HoldsUntil();
    ASSERT_TRUE(Eventually([&] { return first->leadership->HoldsUntil() > before; }));
    cluster_->Restart(member);
    ASSERT_TRUE(cluster_->AwaitAnswer(cluster_->Options("test", member)).ok());
  }
  EXPECT_FALSE(first->lost);
}

TEST_F(EtcdLeadershipTest, WithoutAMajorityNobodyLeadsAndThenOneDoesAgain) {
  auto first = Make("first", kLeaderLease);
  auto second = Make("second", kLeaderLease);
  ASSERT_TRUE(first->Campaign().ok());
  second->CampaignOnAThread();
  ASSERT_TRUE(second->Waits());
  cluster_->Kill(0);
  cluster_->Kill(1);
  EXPECT_TRUE(Eventually([&] { return first->lost.load(); }));
  EXPECT_NE(second->events->WaitFor("etcd_unreachable", absl::Minutes(1)).name, "");
  EXPECT_FALSE(second->leads);
  cluster_->Restart(0);
  EXPECT_TRUE(Eventually([&] { return second->leads.load(); }));
}

TEST_F(EtcdLeadershipTest, ResignEndsACampaign) {
  auto first = Make("first", kEndlessLease);
  auto second = Make("second", kEndlessLease);
  ASSERT_TRUE(first->Campaign().ok());
  absl::Status ended;
  std::thread campaign([&] { ended = second->Campaign(); });
  ASSERT_TRUE(second->Waits());
  second->leadership->Resign();
  campaign.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled) << ended;
  EXPECT_FALSE(second->lost);
}

TEST_F(EtcdLeadershipTest, ACampaignThatEtcdForbidsEndsWithItsReason) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"user", "add", "root:secret"},
                                             {"user", "grant-role", "root", "root"},
                                             {"auth", "enable"}}) {
    ASSERT_TRUE(cluster_->Control(arguments).ok());
  }
  auto first = Make("first", kLeaderLease);
  const absl::Status refused = first->Campaign();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("user name is empty"));
}

}  // namespace
}  // namespace penstock::control
