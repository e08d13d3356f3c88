// SPDX-License-Identifier: Apache-2.0
// Changes that are written are read again: each change, and the state they make.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "control/journal/changes_proto.h"
#include "control/journal/records_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/journal/each_change.h"

namespace penstock::control {
namespace {

namespace p = ::penstock::protocol;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Changes, EachIsReadAsItWasWritten) {
  State written;
  State read;
  for (const Change& change : OneOfEachChange()) {
    ASSERT_TRUE(Fits(written, change).ok()) << Fits(written, change) << change.index();
    written.Apply(change);
    const std::string record = *EncodeChanges({change}, written);
    absl::Status applied = ApplyRecord(record, read);
    ASSERT_TRUE(applied.ok()) << applied << " " << DescribeRecord(record);
    EXPECT_EQ(EncodeState(read), EncodeState(written)) << DescribeRecord(record);
  }
  EXPECT_EQ(read.iterations, written.iterations);
  EXPECT_EQ(read.past.size(), 1u);
  EXPECT_EQ(read.workers, written.workers);
  EXPECT_EQ(read.answers, written.answers);
  EXPECT_EQ(read.format, 2u);
}

TEST(Changes, AnInvalidOneEndsOnlyItsIteration) {
  const std::vector<Change> all = OneOfEachChange();
  State state;
  for (size_t i = 0; i < 14; ++i) state.Apply(all[i]);  // two readers of iteration 1
  state.Apply(JobCreated{[&] {
    JobRecord job = state.jobs.at(JobId(1));
    job.id = JobId(3);
    job.name = "third";
    return job;
  }()});
  state.Apply(IterationCreated{IterationId(3), JobId(3), 0});
  const auto joins = [](uint64_t iteration, uint64_t client) {
    return IterationAltered{IterationId(iteration),
                            p::ReaderJoined{ClientId(client), Incarnation(1)}};
  };
  // The second change does not fit and ends iteration 1, so the third is skipped.
  const std::string record =
      *EncodeChanges({joins(1, 50), IterationAltered{IterationId(1), p::ReaderEnded{ClientId(99)}},
                      joins(1, 51), joins(3, 52), WorkerGone{WorkerId(99)}},
                     state);
  State strict = state;
  EXPECT_EQ(ApplyRecord(record, strict).code(), absl::StatusCode::kDataLoss);
  std::set<IterationId> ends;
  const absl::StatusOr<std::vector<std::string>> said = ApplyWhatFits(record, state, ends);
  ASSERT_TRUE(said.ok()) << said.status();
  ASSERT_EQ(said->size(), 2u);
  EXPECT_THAT((*said)[0], HasSubstr("epoch 0 of job job is ended"));
  EXPECT_THAT((*said)[1], HasSubstr("skipped"));
  const IterationState& ended = *state.FindIteration(IterationId(1));
  ASSERT_TRUE(ended.failure.has_value());
  EXPECT_EQ(ended.failure->code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(ended.record.FindReader(ClientId(50)));
  EXPECT_FALSE(ended.record.FindReader(ClientId(51)));
  const IterationState& other = *state.FindIteration(IterationId(3));
  EXPECT_FALSE(other.failure.has_value());
  EXPECT_TRUE(other.record.FindReader(ClientId(52)));
  EXPECT_TRUE(DecodeState(*EncodeState(state)).ok());
  // Later records of that iteration are skipped too, without a message.
  EXPECT_EQ(ApplyWhatFits(*EncodeChanges({joins(1, 53)}, state), state, ends)->size(), 0u);
  EXPECT_FALSE(state.FindIteration(IterationId(1))->record.FindReader(ClientId(53)));
}

TEST(Changes, AnUnreadableRecordIsNotPassedOver) {
  State state;
  std::set<IterationId> ended;
  EXPECT_TRUE(absl::IsDataLoss(ApplyWhatFits("\xff\xff", state, ended).status()));
}

TEST(Changes, AFieldOfANewerReleaseIsRefusedAndNamed) {
  const std::string newer = "\xa0\x38\x01";  // field 900
  const auto in = [](char tag, const std::string& message) {
    return std::string{tag, static_cast<char>(message.size())} + message;
  };
  const std::string a_known_change = in('\x0a', std::string("\x88\x01\x05"));
  const auto altered = [&](const std::string& change) {
    return in('\x0a', in('\x42', "\x08\x01" + change));
  };
  const std::pair<std::string, const char*> records[] = {
      {newer, "field 900 of Changes;"},
      {in('\x0a', newer), "field 900 of Change;"},
      {a_known_change + altered(newer), "field 900 of IterationAltered;"},
      {altered(in('\x3a', "\x09" + std::string(8, 'c') + newer)), "field 900 of Reader;"},
      {altered(in('\x5a', "\x09" + std::string(8, 'c') + in('\x12', newer))),
       "field 900 of ReceivedSetsByPartition;"},
  };
  for (const auto& [record, named] : records) {
    State state;
    std::set<IterationId> ended;
    for (const absl::Status& status :
         {ApplyRecord(record, state), ApplyWhatFits(record, state, ended).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << named;
      EXPECT_THAT(status.message(), HasSubstr(named));
      EXPECT_THAT(status.message(), HasSubstr("start the newer release"));
    }
  }
  const absl::Status snapshot = DecodeState({"", in('\x42', newer)}).status();
  EXPECT_EQ(snapshot.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(snapshot.message(), HasSubstr("field 900 of Iteration;"));

  // Field 8 of a job was an older release's.
  EXPECT_TRUE(DecodeState({in('\x32', "\x08\x01\x40\x01" + in('\x3a', ""))}).ok());
}

TEST(Changes, ASnapshotEqualsItsState) {
  State state;
  for (const Change& change : OneOfEachChange()) {
    state.Apply(change);
    absl::StatusOr<State> decoded = DecodeState(*EncodeState(state));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(EncodeState(*decoded), EncodeState(state));
    EXPECT_EQ(decoded->iterations, state.iterations);
    EXPECT_EQ(decoded->repetitions, state.repetitions);
    EXPECT_EQ(decoded->job_names, state.job_names);
  }
}

TEST(Changes, ASnapshotWithAnInvalidPartitionIsRefused) {
  State state;
  auto dataset = std::make_shared<const DatasetRecord>(DatasetRecord{"1000", "definition", {}});
  state.Apply(DatasetRegistered{dataset});
  state.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = dataset}});
  const IterationId it(1);
  state.Apply(IterationCreated{it, JobId(1), 0});
  for (const p::IterationChange& change : {p::IterationChange(p::PartitionOpened{PartitionId(1)}),
                                           {p::ReaderJoined{ClientId(5), Incarnation(1)}}})
    state.Apply(IterationAltered{it, change});
  p::PartitionRecord& partition = state.iterations.at(it).record.partitions[0];
  const auto read = [&] { return DecodeState(*EncodeState(state)).status(); };
  partition.audience = IndexSet::Of(0, 1);
  partition.end = kMostIndices - 1;
  EXPECT_TRUE(read().ok()) << read();
  for (const Index end : {Index{2}, kMostIndices}) {
    partition.audience = IndexSet::Of(0, end);
    EXPECT_EQ(read().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(read().message(), HasSubstr("has a partition for readers that it does not have"));
  }
  partition.audience.reset();
  for (const Index end : {Index{-1}, kMostIndices}) {
    partition.end = end;
    EXPECT_EQ(read().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(read().message(), HasSubstr("has a partition with an invalid number of elements"));
  }
}

TEST(Changes, AFinishedIterationTakesFewBytesOfASnapshot) {
  State state;
  auto dataset = std::make_shared<const DatasetRecord>(DatasetRecord{"1000", "definition", {}});
  state.Apply(DatasetRegistered{dataset});
  state.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = dataset}});
  const size_t before = SnapshotBytes(*EncodeState(state));
  const IterationId it(1);
  const PartitionId one(1);
  state.Apply(IterationCreated{it, JobId(1), 0});
  state.Apply(IterationAltered{it, p::PartitionOpened{one}});
  state.Apply(SplitsGiven{{it, one}, {0, 0, 0, std::vector<int64_t>(10'000, 5'000), true}});
  for (int64_t i = 1; i <= 8; ++i) {
    state.Apply(IterationAltered{it, p::BookmarkAdded{one, {i, std::string(10'000, 'p')}}});
  }
  EXPECT_GT(SnapshotBytes(*EncodeState(state)), 100'000u);
  state.Apply(IterationAltered{it, p::IterationClosed{{8}}});
  state.Apply(IterationAltered{it, p::IterationFinished{}});
  EXPECT_LT(SnapshotBytes(*EncodeState(state)) - before, 100u);
}

// A state with one reader and this many partitions.
static State WithOneReader(uint64_t partitions, uint32_t format) {
  State state;
  if (format > state.format) state.Apply(FormatFinalised{format});
  auto dataset = std::make_shared<const DatasetRecord>(DatasetRecord{"1000", "definition", {}});
  state.Apply(DatasetRegistered{dataset});
  state.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = dataset}});
  const IterationId it(1);
  state.Apply(IterationCreated{it, JobId(1), 0});
  for (uint64_t i = 1; i <= partitions; ++i)
    state.Apply(IterationAltered{it, p::PartitionOpened{PartitionId(i)}});
  state.Apply(IterationAltered{it, p::ReaderJoined{ClientId(5), Incarnation(1)}});
  return state;
}

TEST(Changes, TheSetsOfAReaderAreWrittenInTheFormatOfTheJournal) {
  const Change ended = IterationAltered{
      IterationId(1), p::ReaderEnded{ClientId(5), {{}, {}, IndexSet::Of(4, 6), {}}}};
  const std::string empty("\x0a\x00", 2), set = "\x0a\x04\x0a\x02\x04\x02";
  for (const auto& [format, bytes] : {std::pair(1, "\x12\x0a" + empty + empty + set),
                                      std::pair(2, "\x12\x09\x12\x01\x03" + set)}) {
    State state = WithOneReader(4, static_cast<uint32_t>(format));
    const std::string record = *EncodeChanges({ended}, state);
    EXPECT_THAT(record, HasSubstr(bytes));
    ASSERT_TRUE(ApplyRecord(record, state).ok());
    const State read = *DecodeState(*EncodeState(state));
    for (const State& its : {state, read})
      EXPECT_EQ(Of(its.iterations.at(IterationId(1)).record.readers[0].final, PartitionId(3)),
                IndexSet::Of(4, 6));
  }
}

TEST(Changes, SetsOfPartitionsThatAreNotThereDoNotFit) {
  State state = WithOneReader(1, 2);
  const auto ended = [&](uint64_t partition) {
    p::ReaderEnded change{ClientId(5)};
    change.final.Add(PartitionId(partition), IndexSet::Of(4, 6));
    return *EncodeChanges({IterationAltered{IterationId(1), change}}, state);
  };
  EXPECT_FALSE(ApplyRecord(ended(2), state).ok());
  EXPECT_FALSE(ApplyRecord(ended(uint64_t{1} << 60), state).ok());
  ASSERT_TRUE(ApplyRecord(ended(1), state).ok());
  const std::string set = "\x0a\x04\x0a\x02\x04\x02";
  std::vector<std::string> pieces = *EncodeState(state);
  int replaced = 0;
  for (std::string& piece : pieces)
    replaced += absl::StrReplaceAll({{"\x12\x01\x01" + set, "\x12\x01\x7f" + set}}, &piece);
  ASSERT_EQ(replaced, 1);
  EXPECT_THAT(std::string(DecodeState(pieces).status().message()),
              HasSubstr("has a reader of partitions that it does not have"));
}

// A job goes on with the definition it was made for.
TEST(Changes, AJobKeepsADefinitionThatWasReplaced) {
  State state;
  auto first =
      std::make_shared<const DatasetRecord>(DatasetRecord{"id", "first", {.fingerprint = 1}, 11});
  auto second =
      std::make_shared<const DatasetRecord>(DatasetRecord{"id", "second", {.fingerprint = 1}, 12});
  state.Apply(DatasetRegistered{first});
  state.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = first}});
  state.Apply(DatasetRegistered{second});
  absl::StatusOr<State> decoded = DecodeState(*EncodeState(state));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->FindJob(JobId(1))->dataset->definition, "first");
  EXPECT_EQ(decoded->FindDataset("id")->definition, "second");
}

// A namespace has the bytes of a definition once, however many jobs read it.
TEST(Changes, JobsShareADefinitionThatWasReplaced) {
  State state;
  const auto first = std::make_shared<const DatasetRecord>(DatasetRecord{"id", "first", {}, 11});
  state.Apply(DatasetRegistered{first});
  for (const uint64_t id : {1, 2})
    state.Apply(JobCreated{{.id = JobId(id), .name = absl::StrCat(id), .dataset = first}});
  state.Apply(DatasetUnregistered{"id"});
  const absl::StatusOr<State> decoded = DecodeState(*EncodeState(state));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->FindJob(JobId(1))->dataset, decoded->FindJob(JobId(2))->dataset);
  EXPECT_EQ(decoded->uses, state.uses);
}

// Older releases identified a dataset by its fingerprint alone.
TEST(Changes, ADatasetWithoutEditionHasItsFingerprintForOne) {
  State state;
  auto first =
      std::make_shared<const DatasetRecord>(DatasetRecord{"id", "first", {.fingerprint = 1}});
  auto second =
      std::make_shared<const DatasetRecord>(DatasetRecord{"id", "second", {.fingerprint = 2}});
  state.Apply(DatasetRegistered{first});
  state.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = first}});
  state.Apply(DatasetRegistered{second});
  absl::StatusOr<State> decoded = DecodeState(*EncodeState(state));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->FindDataset("id", 1)->definition, "first");
  EXPECT_EQ(decoded->FindDataset("id", 2)->definition, "second");
}

TEST(Changes, AnInvalidOneIsDataLoss) {
  State state;
  const std::string record = *EncodeChanges({JobCancelled{JobId(5)}}, state);
  EXPECT_EQ(ApplyRecord(record, state).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ApplyRecord("\xff\xff garbage", state).code(), absl::StatusCode::kDataLoss);
}

TEST(Changes, ARecordHasABound) {
  const Change job = JobCancelled{JobId(5)};
  EXPECT_EQ(EncodeChanges({job}, State(), 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Changes, DescriptionsTellNoTokens) {
  for (const Change& change : OneOfEachChange()) {
    EXPECT_THAT(DescribeRecord(*EncodeChanges({change}, State())), Not(HasSubstr("token:")));
  }
}

TEST(Changes, DescriptionsAreForPeople) {
  EXPECT_THAT(DescribeRecord(*EncodeChanges({LifeBegun{{.life = {.term = Term(4)}}}}, State())),
              HasSubstr("term: 4"));
}

}  // namespace
}  // namespace penstock::control
