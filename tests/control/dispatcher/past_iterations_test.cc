// SPDX-License-Identifier: Apache-2.0
// The records of finished iterations: how large they are, and the answers that late readers get.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

constexpr Index kElements = 100;
constexpr PartitionId kOne{1};

// Every `of`th element, from `first` on.
IndexSet Part(Index first, Index of) {
  IndexSet part;
  for (Index i = first; i < kElements; i += of) part.Add(i);
  return part;
}

class PastIterations : public CoreTest {
 protected:
  void Begin(AckMode ack_mode, size_t record_bytes = kMostRecordBytes) {
    Start({.record_bytes = record_bytes});
    job_ =
        Job("job", Register(11, kElements), {.mode = ShardingPolicy::kOff, .ack_mode = ack_mode});
    worker_ = Work(1);
  }
  // This many readers read the repetition to its end and leave.
  void Epoch(int64_t repetition, Index readers) {
    std::vector<Reader> all;
    for (Index r = 0; r < readers; ++r)
      all.push_back(Come(job_, repetition, static_cast<uint64_t>(r) + 1));
    const auto assign = worker_.inbox->Take<Assign>();
    ASSERT_TRUE(assign.has_value());
    core_->OnMessage(worker_.peer, Ended{assign->of, kElements});
    for (Index r = 0; r < readers; ++r) {
      core_->OnMessage(all[r].peer, Report{{{.partition = kOne,
                                             .placement = assign->of.placement,
                                             .delivered = Part(r, readers)}}});
    }
    for (Index r = 0; r < readers; ++r) {
      core_->OnMessage(all[r].peer,
                       Commit{repetition + 1, {{repetition, {{kOne, Part(r, readers)}}}}});
      EXPECT_TRUE(all[r].inbox->Take<End>().has_value());
    }
    for (Reader& reader : all) Go(reader);
  }

  JobAnswer job_;
  Worker worker_;
};

TEST_F(PastIterations, AreEndsAndCountsHoweverTheirReadersSharedThem) {
  for (const AckMode ack_mode : {AckMode::kOnDelivery, AckMode::kOnCommit}) {
    Begin(ack_mode);
    for (int64_t epoch = 0; epoch < 100; ++epoch) Epoch(epoch, 4);
    const size_t after_100 = SnapshotSize();
    for (int64_t epoch = 100; epoch < 200; ++epoch) Epoch(epoch, 4);
    EXPECT_TRUE(recovered_.iterations.empty());
    EXPECT_EQ(recovered_.past.size(), 200u);
    // Where states may be restored, the record has a mark of each reader's history.
    EXPECT_LE(SnapshotSize() - after_100,
              ack_mode == AckMode::kOnDelivery ? 100u * 16 : 100u * (16 + 4 * 40));
    const JobStatus job = Status().jobs.at(0);
    EXPECT_EQ(job.earlier_iterations, 100);
    EXPECT_EQ(job.earlier_elements, 100 * kElements);
    ASSERT_EQ(job.iterations.size(), 100u);
    const IterationStatus& shown = job.iterations[50];
    EXPECT_TRUE(shown.finished);
    EXPECT_EQ(shown.repetition, 150);
    EXPECT_EQ(shown.partitions.at(0).elements, kElements);
    EXPECT_EQ(shown.partitions.at(0).committed, kElements);
  }
}

TEST_F(PastIterations, SendTheEndToLateReaders) {
  for (const AckMode ack_mode : {AckMode::kOnDelivery, AckMode::kOnCommit}) {
    Begin(ack_mode);
    Epoch(0, 2);
    ASSERT_TRUE(recovered_.iterations.empty());
    Reader same = Come(job_, 0, 1);
    EXPECT_TRUE(same.inbox->Take<Welcome>().has_value());
    EXPECT_TRUE(same.inbox->Take<End>().has_value());
    Reader late = Come(job_, 0, 9, IndexSet());
    EXPECT_TRUE(late.inbox->Take<Welcome>().has_value());
    EXPECT_TRUE(late.inbox->Take<End>().has_value());
    core_->Sweep();
    EXPECT_EQ(recovered_.iterations.size(), 1u);  // a client is connected
    Go(late);
    Go(same);
    EXPECT_TRUE(recovered_.iterations.empty());
    EXPECT_FALSE(worker_.inbox->Take<Assign>().has_value()) << "nothing of it is read again";
  }
}

TEST_F(PastIterations, AStateIsTheOneThatWasCommittedOrRefused) {
  Begin(AckMode::kOnCommit);
  Epoch(0, 2);
  const Reader exact = Come(job_, 0, 1, Part(0, 2), /*incarnation=*/2);
  EXPECT_TRUE(exact.inbox->Take<End>().has_value());
  IndexSet older = Part(0, 2);
  older.Remove(IndexSet::Of(0, 1));
  IndexSet newer = Part(0, 2);
  newer.Add(1);
  const std::vector<std::pair<std::optional<IndexSet>, const char*>> refused = {
      {older, "lacks elements it committed later"},
      {newer, "its state is not the last one"},
      {Part(1, 2), "its state is not the last one"},
      {std::nullopt, "another process has taken over"}};
  for (const auto& [state, why] : refused) {
    const Reader reader = Come(job_, 0, 1, state, /*incarnation=*/3);
    ASSERT_TRUE(reader.inbox->finished.has_value()) << why;
    EXPECT_THAT(std::string(reader.inbox->finished->message()), HasSubstr(why));
  }
  const Reader stranger = Come(job_, 0, 8, Part(0, 2));
  EXPECT_TRUE(stranger.inbox->finished.has_value());
}

TEST_F(PastIterations, ADeadReaderIsRefused) {
  Begin(AckMode::kOnDelivery);
  const Reader silent = Come(job_, 0, 7);
  core_->OnClosed(silent.peer);
  for (int second = 0; second < 70; ++second) {
    core_->OnMessage(worker_.peer, WorkerHeartbeat{});
    Pass(absl::Seconds(1));
  }
  while (worker_.inbox->Take<Assign>()) {
  }
  Epoch(0, 2);
  ASSERT_EQ(recovered_.past.size(), 1u);
  const Reader again = Come(job_, 0, 7);
  ASSERT_TRUE(again.inbox->finished.has_value());
  EXPECT_THAT(std::string(again.inbox->finished->message()), HasSubstr("declared dead"));
}

// It may still wait for its state to be durable, and commit it.
TEST_F(PastIterations, AConnectedReaderWhoseLeaseRanOutGetsAnotherOnANewStream) {
  Begin(AckMode::kOnCommit);
  Reader reader = Come(job_, 0, 1);
  const auto assign = worker_.inbox->Take<Assign>();
  ASSERT_TRUE(assign.has_value());
  core_->OnMessage(worker_.peer, Ended{assign->of, kElements});
  core_->OnMessage(
      reader.peer,
      Report{{{.partition = kOne, .placement = assign->of.placement, .delivered = Part(0, 1)}}});
  core_->OnMessage(reader.peer, Commit{1, {{0, {{kOne, Part(0, 1)}}}}});
  ASSERT_TRUE(recovered_.iterations.begin()->second.record.finished);
  for (int second = 0; second < 60; ++second) {
    EXPECT_FALSE(reader.inbox->finished.has_value());
    core_->OnMessage(worker_.peer, WorkerHeartbeat{});
    Pass(absl::Seconds(1));
  }
  ASSERT_TRUE(reader.inbox->finished.has_value());
  EXPECT_EQ(reader.inbox->finished->code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(reader.inbox->Take<SessionError>().has_value()) << "which would be final";
  core_->OnClosed(reader.peer);
  reader = Come(job_, 0, 1);
  EXPECT_TRUE(reader.inbox->Take<Welcome>().has_value());
  core_->OnMessage(reader.peer, ClientHeartbeat{.counter = 1});
  EXPECT_TRUE(reader.inbox->Take<ClientHeartbeatAnswer>().has_value());
}

// A state contains repetitions that were over when it was saved.
TEST_F(PastIterations, ACommitMayNameThem) {
  Begin(AckMode::kOnCommit);
  Epoch(0, 2);
  const Reader next = Come(job_, 1, 1);
  core_->OnMessage(next.peer, Commit{2, {{0, {{kOne, Part(0, 2)}}}, {1, {}}}});
  EXPECT_EQ(next.inbox->Take<Committed>().value_or(Committed()).number, 2);
  core_->OnMessage(next.peer, Commit{3, {{0, {}}, {1, {}}}});
  EXPECT_EQ(next.inbox->Take<Committed>().value_or(Committed()).number, 3);
  core_->Sweep();
  EXPECT_EQ(recovered_.past.size(), 1u);
}

// At the end of a large epoch that many readers share, the elements of all are journaled together.
TEST_F(PastIterations, EndWhereTheirReadersTogetherAreTooMuchForOneRecord) {
  constexpr Index kReaders = 10;
  Begin(AckMode::kOnCommit, /*record_bytes=*/350);
  Epoch(0, kReaders);
  EXPECT_EQ(recovered_.FindPast(job_.job, 0)->record.partition(kOne).end, kElements);
  Epoch(1, kReaders);
}

TEST_F(PastIterations, StatesSayHowMuchEachReaderHad) {
  Begin(AckMode::kOnCommit);
  Epoch(0, 2);
  SavedRepetition saved;
  core_->GetReading({job_.job, 0}, [&](const auto& answer) { saved = answer.value(); });
  EXPECT_TRUE(saved.finished);
  ASSERT_EQ(saved.partitions.size(), 1u);
  EXPECT_EQ(saved.partitions[0].committed_below, kElements);
  ASSERT_EQ(saved.readers.size(), 2u);
  for (const SavedRepetition::Reader& reader : saved.readers) {
    EXPECT_EQ(reader.committed_count, kElements / 2);
    EXPECT_TRUE(reader.committed.empty());
  }
  EXPECT_EQ(recovered_.past.size(), 1u) << "to ask is to change nothing";
}

}  // namespace
}  // namespace penstock::control
