// SPDX-License-Identifier: Apache-2.0
// A dispatcher with standbys: what it answers while it may not lead, and its settings.
#include "absl/strings/str_cat.h"
#include "control/dispatcher/server/led_journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/server.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

TEST_F(CoreTest, AnswersHeartbeatsOnlyWhileItSurelyLeads) {
  bool leads = true;
  CoreOptions options;
  options.leads = [&leads] { return leads; };
  Start(std::move(options));
  Worker worker = Work(1);
  const std::string dataset = Register(1);
  const JobAnswer job = Job("job", dataset, {});
  Reader reader = Come(job, 0, 7);
  uint64_t counter = 0;
  const auto answered = [&] {
    ++counter;
    core_->OnMessage(worker.peer, WorkerHeartbeat{.counter = counter});
    core_->OnMessage(reader.peer, ClientHeartbeat{.counter = counter});
    const bool to_worker = worker.inbox->Take<WorkerHeartbeatAnswer>().has_value();
    const bool to_client = reader.inbox->Take<ClientHeartbeatAnswer>().has_value();
    EXPECT_EQ(to_worker, to_client);
    return to_worker && to_client;
  };
  EXPECT_TRUE(answered());
  leads = false;
  EXPECT_FALSE(answered());
  // Also if the lease of the client needs a record.
  Pass(absl::Seconds(5));
  EXPECT_FALSE(answered());
  leads = true;
  EXPECT_TRUE(answered());
}

TEST(LeaderSettings, MustFitTogether) {
  DispatcherConfig in_etcd{.journal_key_file = "key", .journal = "etcd://a:1/x"};
  DispatcherConfig on_volume{.work_dir = "journal", .leader_election = "etcd://a:1/x"};
  EXPECT_TRUE(HasStandbys(in_etcd) && HasStandbys(on_volume));
  EXPECT_FALSE(HasStandbys({.work_dir = "journal"}));
  for (const DispatcherConfig& config : {in_etcd, on_volume, DispatcherConfig{}}) {
    const absl::Status checked = CheckLeaderSettings(config);
    EXPECT_TRUE(checked.ok()) << checked;
  }
  const auto is_refused = [](const DispatcherConfig& config, const std::string& what) {
    const absl::Status refused = DispatchServer::Start(config).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(what));
  };
  const auto altered = [](DispatcherConfig config, const auto& alter) {
    alter(config);
    return config;
  };
  is_refused(altered(in_etcd, [](auto& config) { config.work_dir = "journal"; }), "work_dir");
  is_refused(altered(in_etcd, [](auto& config) { config.leader_election = "etcd://a:1/x"; }),
             "leader_election");
  is_refused(altered(in_etcd, [](auto& config) { config.journal_key_file = ""; }),
             "openssl rand -hex 32");
  is_refused(altered(on_volume, [](auto& config) { config.work_dir = ""; }), "work_dir");
  is_refused(altered(in_etcd, [](auto& config) { config.etcd.user = "name"; }),
             "etcd_password_file");
  is_refused(altered({}, [](auto& config) { config.etcd.ca = "file"; }), "etcd is not used");
  for (const absl::Duration lease :
       {absl::Seconds(1), absl::Milliseconds(2500), absl::ZeroDuration()}) {
    is_refused(altered(in_etcd, [&](auto& config) { config.leader_lease = lease; }),
               "whole seconds");
  }
}

}  // namespace
}  // namespace penstock::control
