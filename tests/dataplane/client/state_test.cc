// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/state.h"

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

ReaderState AState() {
  IndexSet some = IndexSet::Of(0, 700);
  some.Add(705);
  some.Add(1'000'000, 1'000'100);
  ReaderState state{.save = 12, .job = JobId(4), .job_name = "resnet", .client = ClientId(77)};
  state.repetitions.push_back({0, {{PartitionId(1), IndexSet::Of(0, 9)}}});
  state.repetitions.push_back({1, {{PartitionId(1), some}, {PartitionId(3), {}}}});
  return state;
}

TEST(ReaderStateTest, IsReadAsItWasWritten) {
  StateWriter writer;
  Write(AState(), writer);
  StateReader reader(writer.bytes());
  absl::StatusOr<ReaderState> read = ReadReaderState(reader);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_EQ(read->save, 12u);
  EXPECT_EQ(read->job, JobId(4));
  EXPECT_EQ(read->job_name, "resnet");
  EXPECT_EQ(read->client, ClientId(77));
  ASSERT_EQ(read->repetitions.size(), 2u);
  EXPECT_EQ(read->repetitions[0].delivered, AState().repetitions[0].delivered);
  EXPECT_EQ(read->repetitions[1].number, 1);
  EXPECT_EQ(read->repetitions[1].delivered, AState().repetitions[1].delivered);
}

TEST(ReaderStateTest, ReadingThatHasNotBegunIsAStateToo) {
  StateWriter writer;
  Write(ReaderState(), writer);
  StateReader reader(writer.bytes());
  absl::StatusOr<ReaderState> read = ReadReaderState(reader);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->job);
  EXPECT_TRUE(reader.AtEnd());
}

TEST(ReaderStateTest, EveryCutIsRefused) {
  StateWriter writer;
  Write(AState(), writer);
  for (size_t cut = 0; cut < writer.bytes().size(); ++cut) {
    StateReader reader(std::string_view(writer.bytes()).substr(0, cut));
    EXPECT_FALSE(ReadReaderState(reader).ok()) << cut;
  }
}

TEST(ReaderStateTest, FragmentsTakeTwoBytesEach) {
  ReaderState state = AState();
  IndexSet every_other;
  for (Index i = 0; i < 4000; i += 2) every_other.Add(i);
  state.repetitions[1].delivered[PartitionId(1)] = every_other;
  StateWriter writer;
  Write(state, writer);
  EXPECT_LT(writer.bytes().size(), 4200u);
}

TEST(ReaderStateTest, AnotherVersionIsNamed) {
  StateWriter writer;
  writer.WriteUnsigned(9);
  StateReader reader(writer.bytes());
  absl::Status status = ReadReaderState(reader).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("version 9"), std::string::npos);
}

JobState AJobState() {
  JobState state{.reader = AState(), .job_mark = 5, .seed = 6, .dataset = 7};
  state.terms.mode = ShardingPolicy::kDynamic;
  state.terms.ack_mode = AckMode::kOnCommit;
  for (int64_t repetition : {0, 1}) {
    control::SavedRepetition saved{
        .repetition = repetition, .version = 40, .finished = repetition == 0};
    saved.partitions.push_back({.committed_below = 3,
                                .given = {{.provider = 1, .numbers = {9, 2, 5}, .no_more = true}},
                                .bookmarks = {{0, ""}, {1024, "somewhere"}}});
    saved.readers.push_back({.client = ClientId(77)});
    saved.readers.push_back({.client = ClientId(78),
                             .gone = true,
                             .committed_count = 12,
                             .committed = {{PartitionId(1), IndexSet::Of(4, 8)}},
                             .consumer = 2});
    if (repetition == 1) saved.positions = protocol::Positions{8, 3, 17};
    state.saved.push_back(std::move(saved));
  }
  return state;
}

TEST(JobStateTest, IsReadAsItWasWritten) {
  StateWriter writer;
  Write(AJobState(), writer);
  StateReader reader(writer.bytes());
  absl::StatusOr<JobState> read = ReadJobState(reader);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_EQ(read->reader.client, ClientId(77));
  EXPECT_EQ(read->job_mark, 5u);
  EXPECT_EQ(read->seed, 6u);
  EXPECT_EQ(read->dataset, 7u);
  EXPECT_EQ(read->terms, AJobState().terms);
  EXPECT_EQ(read->saved, AJobState().saved);
}

TEST(JobStateTest, EveryCutIsRefused) {
  StateWriter writer;
  Write(AJobState(), writer);
  for (size_t cut = 0; cut < writer.bytes().size(); ++cut) {
    StateReader reader(std::string_view(writer.bytes()).substr(0, cut));
    EXPECT_FALSE(ReadJobState(reader).ok()) << cut;
  }
}

}  // namespace
}  // namespace penstock::client
