// SPDX-License-Identifier: Apache-2.0
// Sources of files, on files that are damaged or missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "control/env/fake_files.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/graph/split.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "penstock/sources.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Strings = std::vector<std::string>;

// Returns the records that `dataset` gives; an error takes its place as "CODE: message".
Strings ReadRecords(const Dataset& dataset, Files& files, uint64_t seed = 1,
                    int64_t repetition = 0) {
  RunContext context;
  context.files = &files;
  context.seed = seed;
  context.repetition = repetition;
  Strings records;
  absl::StatusOr<std::unique_ptr<NodeIterator>> iterator = BuildIterator(dataset, context);
  if (!iterator.ok()) return {iterator.status().ToString()};
  for (int i = 0; i < 100; ++i) {
    absl::StatusOr<std::optional<Element>> next = (*iterator)->Next();
    if (next.ok() && !next->has_value()) return records;
    records.push_back(next.ok() ? std::string((**next).tensor(0).string())
                                : next.status().ToString());
  }
  ADD_FAILURE() << "no end";
  return records;
}

std::string Record(const std::string& data) {
  return TFRecordBytes(data);
}

TEST(TFRecord, ReadsAnotherProgramsFiles) {
  Strings records = ReadRecords(Dataset::TFRecord(TEST_DATA "/five.tfrecord"), LocalFiles());
  ASSERT_THAT(records, SizeIs(5));
  EXPECT_EQ(records[0], "first");
  EXPECT_EQ(records[1], "");
  EXPECT_THAT(records[2], SizeIs(1280));
  EXPECT_EQ(records[2][255], '\xff');
  EXPECT_EQ(records[3], "naïve\n");
  EXPECT_EQ(records[4], "last");
}

TEST(TFRecord, WritesTheSameBytesAsAnotherProgram) {
  std::ifstream in(TEST_DATA "/five.tfrecord", std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(in), {}};
  const std::string name = ::testing::TempDir() + "penstock_written.tfrecord";
  auto writer = TFRecordWriter::Create(name);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const std::string& record :
       ReadRecords(Dataset::TFRecord(TEST_DATA "/five.tfrecord"), LocalFiles()))
    ASSERT_TRUE((*writer)->Write(record).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  std::ifstream out(name, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(out), {}), expected);
}

TEST(TFRecord, AWriterThatCannotCreateItsFileSaysWhich) {
  const absl::Status status = TFRecordWriter::Create("/nowhere/a.tfrecord").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/a.tfrecord"));
}

TEST(TFRecord, DamagedDataIsNamedByFileAndOffsetAndReadingGoesOn) {
  FakeFiles files;
  std::string damaged = Record("one") + Record("two") + Record("three");
  damaged[Record("one").size() + 13] ^= 1;  // in "two"
  files.Put("bad", damaged);
  EXPECT_THAT(ReadRecords(Dataset::TFRecord("bad"), files),
              ElementsAre("one",
                          AllOf(HasSubstr("DATA_LOSS"), HasSubstr("TFRecordDataset#0"),
                                HasSubstr("bad"), HasSubstr("offset 19")),
                          "three"));
}

TEST(TFRecord, ADamagedLengthGivesUpTheRestOfItsFileOnly) {
  FakeFiles files;
  std::string damaged = Record("one") + Record("two");
  damaged[Record("one").size()] ^= 1;
  files.Put("bad", damaged);
  files.Put("good", Record("three"));
  EXPECT_THAT(ReadRecords(Dataset::TFRecord({"bad", "good"}), files),
              ElementsAre("one",
                          AllOf(HasSubstr("DATA_LOSS"), HasSubstr("bad"), HasSubstr("offset 19"),
                                HasSubstr("skipped")),
                          "three"));
}

TEST(TFRecord, ACutIsFoundAtEveryByte) {
  FakeFiles files;
  const std::string whole = Record("one") + Record("two");
  for (size_t size = 1; size < Record("two").size(); ++size) {
    files.Put("cut", whole.substr(0, Record("one").size() + size));
    ASSERT_THAT(
        ReadRecords(Dataset::TFRecord("cut"), files),
        ElementsAre("one", AllOf(HasSubstr("DATA_LOSS"), HasSubstr("cut"), HasSubstr("offset 19"))))
        << size;
  }
}

TEST(TFRecord, AFlippedBitIsFoundAnywhere) {
  FakeFiles files;
  const std::string whole = Record("one");
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
    files.Put("flipped", flipped);
    ASSERT_THAT(ReadRecords(Dataset::TFRecord("flipped"), files),
                ElementsAre(HasSubstr("DATA_LOSS")))
        << bit;
  }
}

TEST(TFRecord, AMissingFileTakesThePlaceOfItsRecords) {
  FakeFiles files;
  files.Put("good", Record("one"));
  EXPECT_THAT(ReadRecords(Dataset::TFRecord({"missing", "good"}), files),
              ElementsAre(AllOf(HasSubstr("NOT_FOUND"), HasSubstr("missing")), "one"));
}

TEST(TFRecord, AFaultOfTheDiskIsPassedOn) {
  FakeFiles files;
  files.Put("a", Record("one") + Record("two"));
  files.FailFrom("a", 0, absl::UnavailableError("the disk is gone"));
  EXPECT_THAT(ReadRecords(Dataset::TFRecord("a"), files),
              ElementsAre(AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("the disk is gone"),
                                HasSubstr("skipped"))));
}

TEST(TFRecord, RecordsLargerThanTheBufferAreRead) {
  FakeFiles files;
  const std::string large(3 << 20, 'x');
  files.Put("large", Record("small") + Record(large) + Record("last"));
  const Strings records = ReadRecords(Dataset::TFRecord("large"), files);
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_TRUE(records[1] == large);
  EXPECT_EQ(records[2], "last");
}

TEST(TextLine, LinesEndAsOnAnySystem) {
  FakeFiles files;
  files.Put("a", "one\r\n\ntwo\n\rthree\r\nno end");
  EXPECT_THAT(ReadRecords(Dataset::TextLine("a"), files),
              ElementsAre("one", "", "two", "\rthree", "no end"));
  files.Put("empty", "");
  EXPECT_THAT(ReadRecords(Dataset::TextLine("empty"), files), IsEmpty());
}

TEST(TextLine, LinesLargerThanTheBufferAreRead) {
  FakeFiles files;
  const std::string large(700'000, 'x');
  files.Put("a", "short\n" + large + "\nlast");
  const Strings lines = ReadRecords(Dataset::TextLine("a"), files);
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_TRUE(lines[1] == large);
  EXPECT_EQ(lines[2], "last");
}

TEST(ListFiles, NamesAreSortedAndGivenOnce) {
  FakeFiles files;
  for (const char* name : {"/d/b", "/d/a", "/d/c"}) files.Put(name, "");
  EXPECT_THAT(ReadRecords(Dataset::ListFiles({"/d/[bc]", "/d/*"}), files),
              ElementsAre("/d/a", "/d/b", "/d/c"));
}

TEST(ListFiles, APatternThatMatchesNothingIsNotFoundByName) {
  FakeFiles files;
  files.Put("/d/a", "");
  const Dataset dataset = Dataset::ListFiles({"/d/*", "/none/*"});
  EXPECT_THAT(ReadRecords(dataset, files),
              ElementsAre(AllOf(HasSubstr("NOT_FOUND"), HasSubstr("/none/*"))));
  EXPECT_EQ(PlanSplits(dataset, files).status().code(), absl::StatusCode::kNotFound);
}

TEST(ListFiles, ShufflesBySeedAndRepetition) {
  FakeFiles files;
  for (char c = 'a'; c <= 'p'; ++c) files.Put(std::string("/d/") + c, "");
  const Dataset open = Dataset::ListFiles("/d/*", {.shuffle = true});
  EXPECT_EQ(ReadRecords(open, files, 1), ReadRecords(open, files, 1));
  EXPECT_NE(ReadRecords(open, files, 1), ReadRecords(open, files, 2));
  EXPECT_NE(ReadRecords(open, files, 1, 0), ReadRecords(open, files, 1, 1));
  const Dataset given = Dataset::ListFiles("/d/*", {.shuffle = true, .seed = 9});
  EXPECT_EQ(ReadRecords(given, files, 1), ReadRecords(given, files, 2));
  Strings sorted = ReadRecords(given, files);
  EXPECT_FALSE(std::is_sorted(sorted.begin(), sorted.end()));
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, ReadRecords(Dataset::ListFiles("/d/*"), files));
}

TEST(ListFiles, ThePlanHoldsTheListAndTheSeed) {
  FakeFiles files;
  files.Put("/d/b", "");
  files.Put("/d/a", "");
  const auto plan = PlanSplits(Dataset::ListFiles("/d/*", {.shuffle = true, .seed = 9}), files);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->providers, SizeIs(1));
  EXPECT_EQ(plan->providers[0].node, "ListFiles#0");
  EXPECT_THAT(plan->providers[0].files, ElementsAre("/d/a", "/d/b"));
  EXPECT_EQ(plan->providers[0].count, 2);
  EXPECT_TRUE(plan->providers[0].shuffled);
  EXPECT_TRUE(plan->providers[0].seeded);
  EXPECT_EQ(plan->providers[0].seed, 9u);
}

}  // namespace
}  // namespace penstock
