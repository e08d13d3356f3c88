// SPDX-License-Identifier: Apache-2.0
// The client with a real etcd cluster, whose processes are killed and stopped.
#include "control/etcd/etcd_client.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/certificates.h"
#include "tests/control/etcd/etcd_cluster.h"
#include "tests/control/etcd/test_folder.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kBound = absl::Seconds(30);

class EtcdClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cluster = EtcdCluster::Start(NewTestFolder());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    client_ = Client(cluster_->Options());
  }
  static std::shared_ptr<EtcdClient> Client(EtcdOptions options) {
    auto client = EtcdClient::Make(std::move(options));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  // Puts a key without a condition, again if the outcome is not known.
  absl::Status Put(const std::string& key, const std::string& value, int64_t lease = 0) {
    absl::Status put;
    EXPECT_TRUE(Eventually([&] {
      put = client_->Commit({.then = {EtcdPut{key, value, lease}}}).status();
      return !IsUncertain(put);
    }));
    return put;
  }
  bool Exists(const std::string& key) {
    const auto found = client_->Get({.key = key}, kBound);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() && !found->keys.empty();
  }

  std::unique_ptr<EtcdCluster> cluster_;
  std::shared_ptr<EtcdClient> client_;
};

TEST_F(EtcdClientTest, ReadsRangesAndCommitsUnderConditions) {
  ASSERT_TRUE(Put("/a/1", "one").ok());
  ASSERT_TRUE(Put("/a/2", std::string("t\0o", 3)).ok());
  ASSERT_TRUE(Put("/b/1", "other").ok());
  auto found = client_->Get({.key = "/a/", .end = EtcdPrefixEnd("/a/")}, kBound);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->keys.size(), 2u);
  EXPECT_EQ(found->keys[1].key, "/a/2");
  EXPECT_EQ(found->keys[1].value, std::string("t\0o", 3));
  EXPECT_FALSE(found->more);
  found = client_->Get({.key = "/a/", .end = EtcdPrefixEnd("/a/"), .limit = 1, .keys_only = true},
                       kBound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->keys.at(0).value, "");
  EXPECT_TRUE(found->more);
  const int64_t made = found->keys.at(0).create_revision;

  using Number = EtcdCompare::Number;
  EtcdTxn txn{.compares = {{"/a/1", Number::kCreateRevision, made}, {"/a/3", Number::kVersion, 0}},
              .then = {EtcdPut{"/a/3", "three"}, EtcdDelete{"/a/1"}},
              .otherwise = {EtcdGet{"/a/3"}}};
  auto answer = client_->Commit(txn);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->succeeded);
  EXPECT_FALSE(Exists("/a/1"));
  answer = client_->Commit(txn);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->succeeded);
  ASSERT_EQ(answer->keys.size(), 1u);
  EXPECT_EQ(answer->keys[0].value, "three");
  EXPECT_TRUE(client_->Compact(answer->revision, kBound).ok());
}

TEST_F(EtcdClientTest, ALeaseTakesItsKeysAlong) {
  auto lease = client_->GrantLease(absl::Seconds(2), kBound);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_GE(lease->ttl, absl::Seconds(2));
  ASSERT_TRUE(Put("/leased", "x", lease->id).ok());
  EXPECT_TRUE(client_->KeepAlive(lease->id, kBound).ok());
  EXPECT_TRUE(Exists("/leased"));
  ASSERT_TRUE(client_->Revoke(lease->id, kBound).ok());
  EXPECT_FALSE(Exists("/leased"));
  EXPECT_EQ(client_->KeepAlive(lease->id, kBound).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(client_->Revoke(lease->id, kBound).ok());
  EXPECT_EQ(client_->Commit({.then = {EtcdPut{"/leased", "x", lease->id}}}).status().code(),
            absl::StatusCode::kNotFound);

  lease = client_->GrantLease(absl::Seconds(2), kBound);
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(Put("/leased", "x", lease->id).ok());
  EXPECT_TRUE(Eventually([&] { return !Exists("/leased"); }));
}

TEST_F(EtcdClientTest, WaitsForTheDeletionOfAKey) {
  ASSERT_TRUE(Put("/watched", "x").ok());
  const auto found = client_->Get({.key = "/watched"}, kBound);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(client_->AwaitDeletion("/watched", found->revision, absl::Milliseconds(200)).code(),
            absl::StatusCode::kDeadlineExceeded);
  absl::Status awaited;
  std::thread waiting(
      [&] { awaited = client_->AwaitDeletion("/watched", found->revision, kBound); });
  EXPECT_TRUE(client_->Commit({.then = {EtcdPut{"/watched", "y"}}}).ok());  // is not its deletion
  EXPECT_TRUE(client_->Commit({.then = {EtcdDelete{"/watched"}}}).ok());
  waiting.join();
  EXPECT_TRUE(awaited.ok()) << awaited;
  // Also if the key was deleted before the wait began.
  EXPECT_TRUE(client_->AwaitDeletion("/watched", found->revision, kBound).ok());
}

TEST_F(EtcdClientTest, StopEndsACallThatWaits) {
  ASSERT_TRUE(Put("/watched", "x").ok());
  absl::Status awaited;
  std::thread waiting([&] { awaited = client_->AwaitDeletion("/watched", 1'000'000, kBound); });
  client_->Stop();
  waiting.join();
  EXPECT_EQ(awaited.code(), absl::StatusCode::kCancelled) << awaited;
  EXPECT_EQ(client_->Get({.key = "/watched"}, kBound).status().code(),
            absl::StatusCode::kCancelled);
}

// One of the three is the leader.
TEST_F(EtcdClientTest, GoesOnWhileAnyOneOfThemIsKilled) {
  for (int member = 0; member < cluster_->size(); ++member) {
    cluster_->Kill(member);
    const std::string key = absl::StrCat("/key", member);
    ASSERT_TRUE(Put(key, "x").ok());
    EXPECT_TRUE(Exists(key));
    cluster_->Restart(member);
    ASSERT_TRUE(cluster_->AwaitAnswer(cluster_->Options("test", member)).ok());
  }
}

TEST_F(EtcdClientTest, GoesOnWhileAnyOneOfThemStandsStill) {
  for (int member = 0; member < cluster_->size(); ++member) {
    cluster_->Stop(member);
    const std::string key = absl::StrCat("/key", member);
    ASSERT_TRUE(Put(key, "x").ok());
    EXPECT_TRUE(Exists(key));
    cluster_->Continue(member);
    ASSERT_TRUE(cluster_->AwaitAnswer(cluster_->Options("test", member)).ok());
  }
}

TEST_F(EtcdClientTest, WithoutAMajorityItSaysSoWithinItsBound) {
  cluster_->Kill(0);
  cluster_->Kill(1);
  const absl::Time begin = absl::Now();
  const absl::Status read = client_->Get({.key = "/a"}, absl::Seconds(3)).status();
  EXPECT_TRUE(IsUncertain(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("etcd 127.0.0.1:"));
  const absl::Status put = client_->Commit({.then = {EtcdPut{"/a", "x"}}}).status();
  EXPECT_TRUE(IsUncertain(put)) << put;
  EXPECT_LT(absl::Now() - begin, kBound);
  cluster_->Restart(0);
  EXPECT_TRUE(Put("/a", "x").ok());
}

TEST_F(EtcdClientTest, ShowsItsUserAndPassword) {
  const absl::Status added = cluster_->AddUser("penstock", "word", "/test/");
  ASSERT_TRUE(added.ok()) << added;
  EXPECT_EQ(client_->Get({.key = "/test/a"}, kBound).status().code(),
            absl::StatusCode::kInvalidArgument);
  EtcdOptions options = cluster_->Options();
  options.user = "penstock";
  options.password = "wrong";
  const absl::Status refused = Client(options)->Get({.key = "/test/a"}, kBound).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("does not accept the user 'penstock'"));
  options.password = "word";
  client_ = Client(options);
  ASSERT_TRUE(Put("/test/a", "x").ok());
  EXPECT_TRUE(Exists("/test/a"));
  EXPECT_EQ(Put("/other", "x").code(), absl::StatusCode::kPermissionDenied);
  auto lease = client_->GrantLease(absl::Seconds(10), kBound);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_TRUE(client_->KeepAlive(lease->id, kBound).ok());
  // A process that was started again knows no token that it gave out before.
  for (int member = 0; member < cluster_->size(); ++member) {
    cluster_->Kill(member);
    cluster_->Restart(member);
    EXPECT_TRUE(Put("/test/a", "y").ok());
  }
}

TEST(EtcdClientOverTls, ShowsItsCertificate) {
  const Authority authority("etcd-authority");
  auto cluster = EtcdCluster::Start(NewTestFolder(), 1, authority.Issue("etcd"));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EtcdOptions options = (*cluster)->Options();
  options.tls = authority.Issue("dispatcher");
  auto client = EtcdClient::Make(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->Commit({.then = {EtcdPut{"/a", "x"}}}).ok());
  for (const TlsConfig& refused :
       {TlsConfig{.ca = authority.ca()}, Authority("another-authority").Issue("dispatcher")}) {
    options.tls = refused;
    client = EtcdClient::Make(options);
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_TRUE(IsUncertain((*client)->Get({.key = "/a"}, absl::Seconds(2)).status()));
  }
  options.tls.ca = "/none";
  EXPECT_EQ(EtcdClient::Make(options).status().code(), absl::StatusCode::kNotFound);
}

TEST(EtcdAddress, HasEndpointsAndAPrefix) {
  const auto address = ParseEtcdAddress("etcds://a:2379,[::1]:2379/run/one/");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_THAT(address->endpoints, ::testing::ElementsAre("a:2379", "[::1]:2379"));
  EXPECT_TRUE(address->tls);
  EXPECT_EQ(address->prefix, "/run/one/");
  for (const char* wrong :
       {"", "a:2379/x", "http://a:2379/x", "etcd:///x", "etcd://a/x", "etcd://a:2379",
        "etcd://a:2379/", "etcd://a:2379,/x", "etcd://user@a:2379/x"}) {
    const absl::Status refused = ParseEtcdAddress(wrong).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("etcd://host:port")) << wrong;
  }
}

}  // namespace
}  // namespace penstock::control
