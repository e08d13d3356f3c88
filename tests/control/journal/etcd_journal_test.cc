// SPDX-License-Identifier: Apache-2.0
// The journal in a real etcd cluster: the suites of all journals, then what only this one promises.
#include "control/journal/etcd_journal.h"

#include <filesystem>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/etcd/etcd_cluster.h"
#include "tests/control/etcd/faulty_client.h"
#include "tests/control/etcd/test_folder.h"
#include "tests/control/journal/any_journal.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;
using Fate = FaultyClient::Fate;

constexpr absl::Duration kReadBound = absl::Seconds(30);

// An etcd cluster with one journal.
class EtcdPlace final : public JournalPlace {
 public:
  EtcdPlace() {
    auto cluster = EtcdCluster::Start(NewTestFolder());
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    if (!cluster.ok()) return;
    cluster_ = *std::move(cluster);
    client_ = *EtcdClient::Make(cluster_->Options());
  }

  // Opens the journal as the leader of another term.
  absl::StatusOr<std::unique_ptr<Journal>> Open() override { return OpenWith(client_); }
  absl::StatusOr<std::unique_ptr<Journal>> OpenWith(std::shared_ptr<EtcdClient> client,
                                                    absl::Duration patience = kReadBound) {
    EtcdJournalOptions options{.prefix = kPrefix, .leader_key = kLeader, .patience = patience};
    if (!Commit({EtcdDelete{kLeader}})) return absl::InternalError("no leader");
    if (!Commit({EtcdPut{kLeader, "another"}})) return absl::InternalError("no leader");
    const auto elected = client_->Get({.key = kLeader}, kReadBound);
    if (!elected.ok()) return elected.status();
    options.term = elected->keys.at(0).create_revision;
    return OpenEtcdJournal(std::move(client), options);
  }

  EtcdCluster& cluster() { return *cluster_; }
  // From now on, all clients are of this user, who has rights for the journal's keys only.
  absl::Status LimitTo(const std::string& user) {
    const absl::Status added = cluster_->AddUser(user, "word", kPrefix);
    if (!added.ok()) return added;
    EtcdOptions options = cluster_->Options();
    options.user = user;
    options.password = "word";
    client_ = *EtcdClient::Make(std::move(options));
    return absl::OkStatus();
  }
  std::shared_ptr<EtcdClient> client() { return client_; }
  bool Commit(std::vector<EtcdOperation> operations) {
    return Eventually([&] { return client_->Commit({.then = operations}).ok(); });
  }
  // Returns the keys of the journal that begin so, without their values.
  std::vector<std::string> Keys(const std::string& begin) {
    const std::string first = absl::StrCat(kPrefix, begin);
    const auto found = client_->Get({.key = first, .end = EtcdPrefixEnd(first)}, kReadBound);
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<std::string> keys;
    for (const EtcdKey& key : found->keys) keys.push_back(key.key);
    return keys;
  }

  static constexpr char kPrefix[] = "/test/";
  static constexpr char kLeader[] = "/test/leader";

 private:
  std::unique_ptr<EtcdCluster> cluster_;
  std::shared_ptr<EtcdClient> client_;
};

JournalKind InEtcd() {
  return {.name = "Etcd", .make = [] { return std::make_unique<EtcdPlace>(); }};
}
INSTANTIATE_TEST_SUITE_P(Etcd, AnyJournal, ::testing::Values(InEtcd()), NameOf);
INSTANTIATE_TEST_SUITE_P(Etcd, DurableJournal, ::testing::Values(InEtcd()), NameOf);

class EtcdJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journal> Start(std::shared_ptr<EtcdClient> client,
                                 absl::Duration patience = kReadBound) {
    auto journal = place_.OpenWith(std::move(client), patience);
    EXPECT_TRUE(journal.ok()) << journal.status();
    if (!journal.ok()) return OpenMemoryJournal();
    EXPECT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    return *std::move(journal);
  }
  std::shared_ptr<FaultyClient> Faulty() { return std::make_shared<FaultyClient>(place_.client()); }
  static absl::Status Write(Journal& journal, uint64_t sequence, const std::string& by = "") {
    journal.Append(sequence, absl::StrCat("record ", sequence, by));
    return journal.WaitDurable(sequence);
  }
  static void FillJournal(Journal& journal, uint64_t first, uint64_t last) {
    for (uint64_t i = first; i <= last; ++i) {
      const absl::Status written = Write(journal, i);
      ASSERT_TRUE(written.ok()) << i << ": " << written;
    }
  }
  Recovered Reopen() {
    auto journal = place_.Open();
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? (*journal)->TakeRecovered() : Recovered();
  }
  absl::Status Refusal() { return place_.Open().status(); }

  EtcdPlace place_;
};

TEST_F(EtcdJournalTest, ALeaderThatWasReplacedCannotWrite) {
  auto old = Start(place_.client());
  FillJournal(*old, 1, 3);
  auto present = Start(place_.client());
  EXPECT_EQ(present->TakeRecovered().last_sequence(), 3u);
  const absl::Status refused = Write(*old, 4, " of the old one");
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'another' leads"));
  EXPECT_EQ(old->status(), refused);
  FillJournal(*present, 4, 5);
  old->Snapshot(4, WholeSnapshot({"of the old one"}));
  old.reset();
  present.reset();
  const Recovered recovered = Reopen();
  EXPECT_TRUE(recovered.snapshot.empty());
  ASSERT_EQ(recovered.records.size(), 5u);
  EXPECT_EQ(recovered.records[3].bytes, "record 4");
}

TEST_F(EtcdJournalTest, NobodyWritesWithoutALeader) {
  auto journal = Start(place_.client());
  FillJournal(*journal, 1, 1);
  ASSERT_TRUE(place_.Commit({EtcdDelete{EtcdPlace::kLeader}}));
  const absl::Status refused = Write(*journal, 2);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted) << refused;
  EXPECT_EQ(Reopen().last_sequence(), 1u);
}

// A transaction that was in flight when the leader was replaced arrives afterwards.
TEST_F(EtcdJournalTest, ALateTransactionOfAnOldLeaderIsRefused) {
  auto faulty = Faulty();
  auto old = Start(faulty, absl::Milliseconds(200));
  FillJournal(*old, 1, 2);
  faulty->SetFate([] { return Fate::kArrivesLate; });
  const absl::Status unknown = Write(*old, 3, " of the old one");
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnavailable) << unknown;
  auto present = Start(place_.client());
  EXPECT_EQ(present->TakeRecovered().last_sequence(), 2u);
  faulty->DeliverLate();
  FillJournal(*present, 3, 3);
  faulty->DeliverLate();
  present.reset();
  const Recovered recovered = Reopen();
  ASSERT_EQ(recovered.records.size(), 3u);
  EXPECT_EQ(recovered.records[2].bytes, "record 3");
}

// The snapshot has deleted the keys by which the journal would otherwise recognize them.
TEST_F(EtcdJournalTest, ATransactionFromBeforeASnapshotIsRefusedIfItArrivesLate) {
  auto faulty = Faulty();
  auto journal = Start(faulty);
  faulty->SetFate([late = false]() mutable {
    return std::exchange(late, !late) ? Fate::kArrives : Fate::kArrivesLate;
  });
  FillJournal(*journal, 1, 2);
  journal->Snapshot(2, WholeSnapshot({"up to 2"}));
  FillJournal(*journal, 3, 3);
  journal->Snapshot(3, WholeSnapshot({"up to 3"}));
  FillJournal(*journal, 4, 4);
  faulty->DeliverLate();
  FillJournal(*journal, 5, 5);
  journal.reset();
  const Recovered recovered = Reopen();
  EXPECT_THAT(recovered.snapshot, ::testing::ElementsAre("up to 3"));
  EXPECT_EQ(recovered.snapshot_sequence, 3u);
  EXPECT_EQ(recovered.records.size(), 2u);
}

TEST_F(EtcdJournalTest, LosesAndDoublesNothingWhenRequestsAndAnswersAreLost) {
  auto faulty = Faulty();
  auto journal = Start(faulty);
  std::mt19937 random(1);
  faulty->SetFate([&random] {
    return std::vector{Fate::kArrives, Fate::kArrives, Fate::kAnswerLost, Fate::kRequestLost,
                       Fate::kArrivesLate}[random() % 5];
  });
  uint64_t last = 0;
  for (int snapshots = 0; snapshots < 3; ++snapshots) {
    for (int i = 0; i < 15; ++i) {
      const absl::Status written = Write(*journal, ++last);
      ASSERT_TRUE(written.ok()) << last << ": " << written;
      if (i % 4 == 0) faulty->DeliverLate();
    }
    journal->Snapshot(last,
                      WholeSnapshot({absl::StrCat("up to ", last), std::string(1'200'000, 'x')}));
    ASSERT_TRUE(Write(*journal, ++last).ok());
    faulty->DeliverLate();  // also the late transactions from before the snapshot
  }
  journal.reset();
  const Recovered recovered = Reopen();
  ASSERT_EQ(recovered.snapshot.size(), 2u);
  EXPECT_EQ(recovered.snapshot[0], absl::StrCat("up to ", last - 1));
  EXPECT_EQ(recovered.snapshot[1], std::string(1'200'000, 'x'));
  ASSERT_EQ(recovered.records.size(), 1u);
  EXPECT_EQ(recovered.records[0].bytes, absl::StrCat("record ", last));
}

TEST_F(EtcdJournalTest, FailsForGoodWhenItCannotKnowAndTheNextLeaderFindsOut) {
  for (const Fate fate : {Fate::kAnswerLost, Fate::kRequestLost}) {
    const uint64_t before = Reopen().last_sequence();
    auto faulty = Faulty();
    auto journal = Start(faulty, absl::Milliseconds(200));
    faulty->SetFate([fate, first = true]() mutable {
      return std::exchange(first, false) ? fate : Fate::kRequestLost;
    });
    const absl::Status unknown = Write(*journal, before + 1);
    EXPECT_EQ(unknown.code(), absl::StatusCode::kUnavailable) << unknown;
    EXPECT_THAT(std::string(unknown.message()), HasSubstr("the next leader finds out"));
    faulty->SetFate([] { return Fate::kArrives; });
    EXPECT_EQ(Write(*journal, before + 2), unknown);
    EXPECT_EQ(Reopen().last_sequence(), before + (fate == Fate::kAnswerLost ? 1 : 0));
  }
}

TEST_F(EtcdJournalTest, ASnapshotDeletesWhatItReplaces) {
  auto journal = Start(place_.client());
  FillJournal(*journal, 1, 3);
  journal->Append(4, std::string(3'000'000, 'a'));
  journal->Append(5, "record 5");
  ASSERT_TRUE(journal->WaitDurable(5).ok());
  EXPECT_FALSE(place_.Keys("log_chunk/").empty());
  journal->Snapshot(5, WholeSnapshot({std::string(2'000'000, 'b')}));
  FillJournal(*journal, 6, 6);
  EXPECT_EQ(place_.Keys("log/").size(), 1u);
  EXPECT_TRUE(place_.Keys("log_chunk/").empty());
  const std::vector<std::string> chunks = place_.Keys("snapshot_chunk/");
  EXPECT_FALSE(chunks.empty());
  for (const std::string& chunk : chunks) {
    EXPECT_TRUE(absl::StartsWith(chunk, "/test/snapshot_chunk/00000000000000000005/")) << chunk;
  }
  journal->Snapshot(6, WholeSnapshot({"small"}));
  FillJournal(*journal, 7, 7);
  EXPECT_TRUE(place_.Keys("snapshot_chunk/").empty());
  journal.reset();
  EXPECT_EQ(Reopen().last_sequence(), 7u);
}

TEST_F(EtcdJournalTest, NeedsRightsForItsOwnKeysOnly) {
  const absl::Status limited = place_.LimitTo("penstock");
  ASSERT_TRUE(limited.ok()) << limited;
  auto journal = Start(place_.client());
  FillJournal(*journal, 1, 3);
  journal->Snapshot(3, WholeSnapshot({std::string(2'000'000, 'b')}));
  FillJournal(*journal, 4, 4);
  const absl::Status compacted = place_.client()->Compact(1, kReadBound);
  EXPECT_EQ(compacted.code(), absl::StatusCode::kOutOfRange) << compacted;  // the journal did it
  journal.reset();
  EXPECT_EQ(Reopen().last_sequence(), 4u);
}

// Each group has a key of its own. A page for every 16 of them would make a takeover slow.
TEST_F(EtcdJournalTest, ReadsManySmallGroupsInFewPages) {
  auto journal = Start(place_.client());
  FillJournal(*journal, 1, 200);
  journal.reset();
  auto counting = Faulty();
  EXPECT_EQ(Start(counting)->TakeRecovered().records.size(), 200u);
  EXPECT_LE(counting->gets(), 6);
}

TEST_F(EtcdJournalTest, WhatIsMissingOrDamagedIsDataLossThatNamesTheKey) {
  auto journal = Start(place_.client());
  FillJournal(*journal, 1, 3);
  journal->Append(4, std::string(1'500'000, 'a'));
  ASSERT_TRUE(journal->WaitDurable(4).ok());
  journal.reset();
  const std::string chunk = place_.Keys("log_chunk/").at(0);
  const std::string group = place_.Keys("log/").at(1);
  const auto is_lost = [&](const std::string& key) {
    const absl::Status refused = Refusal();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(key));
  };
  for (const std::string& key : {chunk, group}) {
    const auto found = place_.client()->Get({.key = key}, kReadBound);
    ASSERT_TRUE(found.ok() && found->keys.size() == 1);
    const std::string value = found->keys[0].value;
    std::string flipped = value;
    flipped[flipped.size() - 1] ^= 1;
    ASSERT_TRUE(place_.Commit({EtcdPut{key, flipped}}));
    is_lost(key);
    ASSERT_TRUE(place_.Commit({EtcdPut{key, value}}));
    EXPECT_EQ(Reopen().last_sequence(), 4u);
  }
  ASSERT_TRUE(place_.Commit({EtcdDelete{group}}));
  is_lost(place_.Keys("log/").at(1));
}

TEST_F(EtcdJournalTest, AJournalOfANewerReleaseIsRefused) {
  auto journal = Start(place_.client());
  FillJournal(*journal, 1, 1);
  journal.reset();
  const std::string key = place_.Keys("log/").at(0);
  const auto found = place_.client()->Get({.key = key}, kReadBound);
  ASSERT_TRUE(found.ok());
  const std::string field_100("\xa0\x06\x01", 3);
  ASSERT_TRUE(place_.Commit({EtcdPut{key, found->keys.at(0).value + field_100}}));
  const absl::Status refused = Refusal();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(key));
}

TEST_F(EtcdJournalTest, NoticesWhenAnotherProgramWritesToItsKeys) {
  auto journal = Start(place_.client());
  FillJournal(*journal, 1, 2);
  ASSERT_TRUE(place_.Commit({EtcdPut{"/test/log/00000000000000000003", "of a stranger"}}));
  const absl::Status refused = Write(*journal, 3);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("prefix of its own"));
}

// One of the three is etcd's leader.
TEST_F(EtcdJournalTest, GoesOnWhileAnyOneEtcdIsKilled) {
  auto journal = Start(place_.client());
  uint64_t last = 0;
  for (int member = 0; member < place_.cluster().size(); ++member) {
    FillJournal(*journal, last + 1, last + 20);
    place_.cluster().Kill(member);
    FillJournal(*journal, last + 21, last + 40);
    last += 40;
    place_.cluster().Restart(member);
    ASSERT_TRUE(place_.cluster().AwaitAnswer(place_.cluster().Options("test", member)).ok());
  }
  journal.reset();
  EXPECT_EQ(Reopen().last_sequence(), last);
}

}  // namespace
}  // namespace penstock::control
