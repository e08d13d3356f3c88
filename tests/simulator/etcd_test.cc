// SPDX-License-Identifier: Apache-2.0
// The simulated etcd does what tests/control/etcd/etcd_client_test.cc expects of a real one.
#include "tools/simulator/world/etcd.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "control/journal/etcd_journal.h"
#include "control/leadership/etcd_leadership.h"
#include "control/sync/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/engine/trace.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {
namespace {

using control::EtcdCompare;
using control::EtcdDelete;
using control::EtcdGet;
using control::EtcdPrefixEnd;
using control::EtcdPut;
using control::EtcdTxn;
using control::IsUncertain;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Number = EtcdCompare::Number;

constexpr absl::Duration kBound = absl::Seconds(30);

class SimulatedEtcd : public ::testing::Test {
 protected:
  SimulatedEtcd() {
    network_.pinged = {kEtcdHost};
    Serve(scheduler_.NewProcess(kEtcdHost, "etcd"));
  }
  ~SimulatedEtcd() override {
    At(client_, [this] { clients_.clear(); });
    At(etcd_, [this] { port_ = nullptr; });
  }

  void Serve(std::shared_ptr<Process> process) {
    etcd_ = std::move(process);
    port_ = EtcdPort::Open(network_, etcd_, state_).value();
  }
  // Starts `what` on a fiber of the process, and runs the world for `time`.
  void At(const std::shared_ptr<Process>& process, std::function<void()> what,
          absl::Duration time = absl::Minutes(1)) {
    scheduler_.StartIn(process, "test", std::move(what));
    RunFor(time);
  }
  void RunFor(absl::Duration time) {
    const absl::Time until = scheduler_.now() + time;
    scheduler_.At(until, bystander_, [] {});  // the time passes even if nothing else happens
    const absl::Status ran = scheduler_.Run(until);
    EXPECT_TRUE(ran.ok()) << ran;
  }
  std::shared_ptr<control::EtcdClient> NewClient() {
    clients_.push_back(MakeEtcdClient(network_, client_, absl::Seconds(1)));
    return clients_.back();
  }
  // --- On fibers of the client ---
  absl::Status Put(const std::string& key, const std::string& value, int64_t lease = 0) {
    return etcd_client_->Commit({.then = {EtcdPut{key, value, lease}}}).status();
  }
  bool Exists(const std::string& key) {
    return !etcd_client_->Get({.key = key}, kBound).value().keys.empty();
  }

  Trace trace_;
  Scheduler scheduler_{{.seed = 5}, trace_};
  Network network_{scheduler_};
  EtcdState state_;
  const std::shared_ptr<Process> client_ = scheduler_.NewProcess("a", "client");
  const std::shared_ptr<Process> bystander_ = scheduler_.NewProcess("c", "bystander");
  std::shared_ptr<Process> etcd_;
  std::unique_ptr<EtcdPort> port_;
  std::vector<std::shared_ptr<control::EtcdClient>> clients_;
  const std::shared_ptr<control::EtcdClient> etcd_client_ = NewClient();
};

TEST_F(SimulatedEtcd, ReadsRangesAndCommitsUnderConditions) {
  At(client_, [this] {
    ASSERT_TRUE(Put("/a/1", "one").ok());
    ASSERT_TRUE(Put("/a/2", std::string("t\0 o", 4)).ok());
    ASSERT_TRUE(Put("/b/1", "other").ok());
    auto found = etcd_client_->Get({.key = "/a/", .end = EtcdPrefixEnd("/a/")}, kBound).value();
    ASSERT_THAT(found.keys, SizeIs(2));
    EXPECT_EQ(found.keys[1].key, "/a/2");
    EXPECT_EQ(found.keys[1].value, std::string("t\0 o", 4));
    EXPECT_FALSE(found.more);
    const EtcdGet one{.key = "/a/", .end = EtcdPrefixEnd("/a/"), .limit = 1, .keys_only = true};
    found = etcd_client_->Get(one, kBound).value();
    ASSERT_THAT(found.keys, SizeIs(1));
    EXPECT_EQ(found.keys[0].value, "");
    EXPECT_TRUE(found.more);

    const int64_t made = found.keys[0].create_revision;
    const EtcdTxn txn{
        .compares = {{"/a/1", Number::kCreateRevision, made}, {"/a/3", Number::kVersion, 0}},
        .then = {EtcdPut{"/a/3", "three"}, EtcdDelete{"/a/1"}},
        .otherwise = {EtcdGet{"/a/3"}}};
    auto answer = etcd_client_->Commit(txn).value();
    EXPECT_TRUE(answer.succeeded);
    EXPECT_EQ(answer.revision, found.revision + 1);
    EXPECT_FALSE(Exists("/a/1"));
    answer = etcd_client_->Commit(txn).value();
    EXPECT_FALSE(answer.succeeded);
    EXPECT_EQ(answer.revision, found.revision + 1);
    ASSERT_THAT(answer.keys, SizeIs(1));
    EXPECT_EQ(answer.keys[0].value, "three");
    EXPECT_EQ(answer.keys[0].mod_revision, answer.revision);
    EXPECT_TRUE(etcd_client_->Compact(answer.revision, kBound).ok());
    EXPECT_TRUE(absl::IsOutOfRange(etcd_client_->Compact(answer.revision, kBound)));
  });
}

TEST_F(SimulatedEtcd, RefusesTransactionsThatAreTooLargeOrChangeAKeyTwice) {
  At(client_, [this] {
    EXPECT_TRUE(absl::IsInvalidArgument(Put("/a", std::string(2 << 20, 'x'))));
    EXPECT_TRUE(absl::IsInvalidArgument(
        etcd_client_->Commit({.then = {EtcdPut{"/a", "x"}, EtcdDelete{"/", "0"}}}).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(
        etcd_client_->Commit({.then = {EtcdPut{"/a", "x"}, EtcdPut{"/a", "y"}}}).status()));
    EXPECT_FALSE(Exists("/a"));
    state_.SetFull(true);
    EXPECT_TRUE(absl::IsResourceExhausted(Put("/a", "x")));
    EXPECT_TRUE(
        absl::IsResourceExhausted(etcd_client_->GrantLease(absl::Seconds(2), kBound).status()));
    EXPECT_TRUE(etcd_client_->Commit({.then = {EtcdDelete{"/a"}}}).ok());
  });
}

TEST_F(SimulatedEtcd, ALeaseTakesItsKeysAlong) {
  At(client_, [this] {
    auto lease = etcd_client_->GrantLease(absl::Seconds(1), kBound).value();
    EXPECT_EQ(lease.ttl, absl::Seconds(2));
    ASSERT_TRUE(Put("/leased", "x", lease.id).ok());
    EXPECT_TRUE(etcd_client_->KeepAlive(lease.id, kBound).ok());
    EXPECT_TRUE(Exists("/leased"));
    ASSERT_TRUE(etcd_client_->Revoke(lease.id, kBound).ok());
    EXPECT_FALSE(Exists("/leased"));
    EXPECT_TRUE(absl::IsNotFound(etcd_client_->KeepAlive(lease.id, kBound)));
    EXPECT_TRUE(etcd_client_->Revoke(lease.id, kBound).ok());
    EXPECT_TRUE(absl::IsNotFound(Put("/leased", "x", lease.id)));

    lease = etcd_client_->GrantLease(absl::Seconds(2), kBound).value();
    ASSERT_TRUE(Put("/leased", "x", lease.id).ok());
    Sleep(absl::Seconds(1.9));
    port_->EndLeases();
    EXPECT_TRUE(Exists("/leased"));
    Sleep(absl::Seconds(0.2));
    port_->EndLeases();
    EXPECT_FALSE(Exists("/leased"));
  });
}

TEST_F(SimulatedEtcd, WaitsForTheDeletionOfAKey) {
  At(client_, [this] {
    ASSERT_TRUE(Put("/watched", "x").ok());
    const auto found = etcd_client_->Get({.key = "/watched"}, kBound).value();
    EXPECT_TRUE(absl::IsDeadlineExceeded(
        etcd_client_->AwaitDeletion("/watched", found.revision, absl::Milliseconds(200))));
    absl::Status awaited = absl::UnknownError("waits");
    Thread waiting = *StartThread("waiting", [&] {
      awaited = etcd_client_->AwaitDeletion("/watched", found.revision, kBound);
    });
    EXPECT_TRUE(Put("/watched", "y").ok());  // is not its deletion
    Sleep(absl::Seconds(1));
    EXPECT_TRUE(absl::IsUnknown(awaited));
    EXPECT_TRUE(etcd_client_->Commit({.then = {EtcdDelete{"/watched"}}}).ok());
    waiting.join();
    EXPECT_TRUE(awaited.ok()) << awaited;
    // Also if the key was deleted before the wait began, or nobody knows any more.
    EXPECT_TRUE(etcd_client_->AwaitDeletion("/watched", found.revision, kBound).ok());
    const int64_t now = etcd_client_->Get({.key = "/watched"}, kBound).value().revision;
    ASSERT_TRUE(etcd_client_->Compact(now, kBound).ok());
    EXPECT_TRUE(etcd_client_->AwaitDeletion("/watched", found.revision, kBound).ok());
  });
}

TEST_F(SimulatedEtcd, StopEndsACallThatWaits) {
  At(client_, [this] {
    absl::Status awaited;
    Thread waiting = *StartThread(
        "waiting", [&] { awaited = etcd_client_->AwaitDeletion("/watched", 1'000'000, kBound); });
    Sleep(absl::Seconds(1));
    etcd_client_->Stop();
    waiting.join();
    EXPECT_TRUE(absl::IsCancelled(awaited)) << awaited;
    EXPECT_TRUE(absl::IsCancelled(etcd_client_->Get({.key = "/watched"}, kBound).status()));
  });
}

TEST_F(SimulatedEtcd, ALostAnswerLeavesTheOutcomeUncertain) {
  At(client_, [this] {
    ASSERT_TRUE(Put("/before", "x").ok());
    network_.Cut(kEtcdHost, "a", absl::Seconds(5));
    const absl::Status put = Put("/key", "x");
    EXPECT_TRUE(absl::IsDeadlineExceeded(put)) << put;
    EXPECT_THAT(std::string(put.message()), HasSubstr("etcd etcd:2379"));
    const absl::Status get = etcd_client_->Get({.key = "/key"}, absl::Seconds(2)).status();
    EXPECT_TRUE(IsUncertain(get)) << get;
    Sleep(absl::Seconds(5));
    EXPECT_TRUE(Exists("/key"));
  });
}

TEST_F(SimulatedEtcd, ARequestToAPausedProcessArrivesLate) {
  At(client_, [this] { ASSERT_TRUE(Put("/before", "x").ok()); });
  etcd_->Pause();
  network_.OnPaused(*etcd_);
  At(client_, [this] { EXPECT_TRUE(IsUncertain(Put("/key", "x"))); });
  etcd_->Continue();
  scheduler_.Continued(*etcd_);
  At(client_, [this] { EXPECT_TRUE(Exists("/key")); });
}

TEST_F(SimulatedEtcd, AKilledProcessLosesNothingAndItsLeasesBeginAgain) {
  int64_t lease = 0;
  At(client_, [&] {
    lease = etcd_client_->GrantLease(absl::Seconds(2), kBound).value().id;
    ASSERT_TRUE(Put("/leased", "x", lease).ok());
  });
  etcd_->Kill();
  network_.OnKilled(*etcd_);
  At(
      etcd_, [this] { port_ = nullptr; }, absl::ZeroDuration());
  At(client_, [this] { EXPECT_TRUE(absl::IsUnavailable(Put("/key", "x"))); });
  Serve(scheduler_.NewProcess(kEtcdHost, "etcd"));
  At(
      etcd_, [this] { state_.RenewLeases(BootTime()); }, absl::ZeroDuration());
  At(client_, [&] {
    port_->EndLeases();
    EXPECT_TRUE(Exists("/leased"));
    EXPECT_TRUE(etcd_client_->KeepAlive(lease, kBound).ok());
  });
}

TEST_F(SimulatedEtcd, AKilledClientDoesNothingMore) {
  At(client_, [this] {
    ASSERT_TRUE(Put("/key", "x").ok());
    client_->Kill();
    network_.OnKilled(*client_);
    EXPECT_TRUE(absl::IsCancelled(Put("/key", "y")));
  });
  const auto other = MakeEtcdClient(network_, bystander_, absl::Seconds(1));
  At(bystander_,
     [&] { EXPECT_EQ(other->Get({.key = "/key"}, kBound).value().keys.at(0).value, "x"); });
}

// A leader is cut off, and goes on when a standby leads.
TEST_F(SimulatedEtcd, TheJournalRefusesADeposedLeader) {
  struct Leader {
    std::unique_ptr<control::Leadership> leadership;
    std::unique_ptr<control::Journal> journal;
  };
  const auto lead = [this](const std::string& name) {
    Leader leader{
        control::MakeEtcdLeadership(NewClient(), {.prefix = "/p/", .name = name}, SilentEventLog()),
        nullptr};
    EXPECT_TRUE(leader.leadership->Campaign([](const absl::Status&) {}).ok());
    leader.journal = control::OpenEtcdJournal(
                         NewClient(), {.prefix = "/p/",
                                       .leader_key = control::LeaderKey("/p/"),
                                       .term = static_cast<int64_t>(leader.leadership->term())})
                         .value();
    return leader;
  };
  const auto append = [](Leader& leader, uint64_t sequence) {
    leader.journal->Append(sequence, "record");
    return leader.journal->WaitDurable(sequence);
  };
  At(client_, [&] {
    Leader first = lead("first");
    EXPECT_TRUE(first.journal->TakeRecovered().records.empty());
    ASSERT_TRUE(first.journal->Start([](const absl::StatusOr<uint64_t>&) {}).ok());
    EXPECT_TRUE(append(first, 1).ok());
    network_.Cut("a", kEtcdHost, absl::Seconds(4));
    Sleep(absl::Seconds(5));
    port_->EndLeases();
    Leader second = lead("second");
    EXPECT_GT(second.leadership->term(), first.leadership->term());
    EXPECT_THAT(second.journal->TakeRecovered().records, SizeIs(1));
    EXPECT_TRUE(absl::IsAborted(append(first, 2)));
    ASSERT_TRUE(second.journal->Start([](const absl::StatusOr<uint64_t>&) {}).ok());
    EXPECT_TRUE(append(second, 2).ok());
  });
}

}  // namespace
}  // namespace penstock::simulator
