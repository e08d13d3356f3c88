// SPDX-License-Identifier: Apache-2.0
// Records of compressed files, and records of a fixed length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/fake_files.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "penstock/sources.h"
#include "tests/dataplane/dataset/sources/read_files.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

constexpr RecordOptions kGzip = {.compression = Compression::kGzip};
constexpr RecordOptions kZlib = {.compression = Compression::kZlib};

std::string Compressed(const std::string& bytes, Compression compression) {
  z_stream stream = {};
  const int window = compression == Compression::kGzip ? 31 : 15;
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, window, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Returns bytes that do not compress, so that damage hits the part it is aimed at.
std::string Noise(size_t size, uint32_t state) {
  std::string noise(size, '\0');
  for (char& byte : noise) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>('!' + (state >> 24) % 90);
  }
  return noise;
}

TEST(Compression, ReadsFilesThatAnotherProgramCompressed) {
  const Strings plain = ReadAll(Dataset::TFRecord(TEST_DATA "/five.tfrecord"));
  ASSERT_THAT(plain, SizeIs(5));
  EXPECT_EQ(ReadAll(Dataset::TFRecord(TEST_DATA "/five.tfrecord.gz", kGzip)), plain);
  EXPECT_EQ(ReadAll(Dataset::TFRecord(TEST_DATA "/five.tfrecord.zlib", kZlib)), plain);
  EXPECT_THAT(ReadAll(Dataset::TextLine(TEST_DATA "/lines.txt.gz", kGzip)),
              ElementsAre("one", "two", "", "no end"));
}

TEST(Compression, AnEmptyFileAndEmptyContentsHoldNothing) {
  FakeFiles files;
  files.Put("empty", "");
  files.Put("nothing", Compressed("", Compression::kGzip));
  EXPECT_THAT(Read(Dataset::TFRecord({"empty", "nothing"}, kGzip), files), IsEmpty());
  EXPECT_THAT(Read(Dataset::TextLine({"empty", "nothing"}, kGzip), files), IsEmpty());
}

TEST(Compression, ZerosAfterTheLastMemberAreIgnored) {
  FakeFiles files;
  const std::string member = Compressed("one\n", Compression::kGzip);
  files.Put("padded", member + member + std::string(100'000, '\0'));
  EXPECT_THAT(Read(Dataset::TextLine("padded", kGzip), files), ElementsAre("one", "one"));
}

TEST(Compression, AFileWithOtherCompressionIsNamed) {
  FakeFiles files;
  files.Put("plain", TFRecordBytes("one"));
  files.Put("followed", Compressed(TFRecordBytes("one"), Compression::kGzip) + "and more");
  EXPECT_THAT(Read(Dataset::TFRecord({"plain", "followed"}, kGzip), files),
              ElementsAre(AllOf(HasSubstr("TFRecordDataset#0: plain"), HasSubstr("gzip"),
                                HasSubstr("after 0 bytes"), HasSubstr("skipped")),
                          "one", AllOf(HasSubstr("followed"), HasSubstr("after 19 bytes"))));
  EXPECT_THAT(Read(Dataset::TFRecord("plain", kZlib), files), ElementsAre(HasSubstr("zlib")));
  files.Put("gzipped", Compressed(TFRecordBytes("one"), Compression::kGzip));
  EXPECT_THAT(Read(Dataset::TFRecord("gzipped"), files), ElementsAre(HasSubstr("compressed")));
}

TEST(Compression, ACutIsFoundAtEveryByteAfterTheRecordsBeforeIt) {
  FakeFiles files;
  const std::string whole =
      Compressed(TFRecordBytes(Noise(100, 1)) + TFRecordBytes(Noise(100, 2)), Compression::kGzip);
  size_t most = 0;
  for (size_t size = 1; size < whole.size(); ++size) {
    files.Put("cut", whole.substr(0, size));
    const Strings records = Read(Dataset::TFRecord("cut", kGzip), files);
    ASSERT_FALSE(records.empty());
    ASSERT_THAT(records.back(), AllOf(HasSubstr("cut: the gzip stream"),
                                      HasSubstr(absl::StrCat("the file ends at ", size))))
        << size;
    for (size_t i = 0; i + 1 < records.size(); ++i)
      ASSERT_EQ(records[i], Noise(100, static_cast<uint32_t>(i) + 1)) << size;
    most = std::max(most, records.size());
  }
  EXPECT_EQ(most, 3u);  // both records, and an error about the missing checksum
}

TEST(Compression, AFlippedBitIsFoundAnywhereOrChangesNothing) {
  FakeFiles files;
  for (Compression compression : {Compression::kGzip, Compression::kZlib}) {
    const std::string whole = Compressed("one\ntwo\n", compression);
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string flipped = whole;
      flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
      files.Put("flipped", flipped);
      const Strings lines = Read(Dataset::TextLine("flipped", {compression}), files);
      if (lines == Strings{"one", "two"}) continue;  // the bit was in a time stamp or a hint
      ASSERT_THAT(lines.back(), StartsWith("error: ")) << bit;
    }
  }
}

TEST(Compression, RecordsLargerThanTheBufferAreRead) {
  FakeFiles files;
  const std::string large(3 << 20, 'x');
  files.Put("large", Compressed(TFRecordBytes("small") + TFRecordBytes(large) +
                                    TFRecordBytes(Noise(700'000, 7)),
                                Compression::kGzip));
  const Strings records = Read(Dataset::TFRecord("large", kGzip), files);
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_TRUE(records[1] == large);
  EXPECT_TRUE(records[2] == Noise(700'000, 7));
}

TEST(Compression, ARecordThatClaimsMoreThanThereIsCostsNoMemory) {
  FakeFiles files;
  std::string claim(8, '\0');
  claim[3] = '\x7f';                          // 2 GiB
  std::string record = TFRecordBytes(claim);  // only its data is used: a length …
  files.Put("claims",
            Compressed(record.substr(12, 8) + record.substr(20, 4) + "little", Compression::kGzip));
  EXPECT_THAT(Read(Dataset::TFRecord("claims", kGzip), files),
              ElementsAre(AllOf(HasSubstr("offset 0"), HasSubstr("cut off"))));
}

TEST(Compression, AFaultOfTheDiskIsPassedOn) {
  FakeFiles files;
  files.Put("a", Compressed(TFRecordBytes("one"), Compression::kGzip));
  files.FailFrom("a", 0, absl::UnavailableError("the disk is gone"));
  EXPECT_THAT(Read(Dataset::TFRecord("a", kGzip), files),
              ElementsAre(AllOf(HasSubstr("the disk is gone"), HasSubstr("skipped"))));
}

TEST(FixedLength, RecordsLieBetweenHeaderAndFooter) {
  FakeFiles files;
  files.Put("a", "HEADaaabbbcccfoot");
  files.Put("none", "HEADfoot");
  files.Put("packed", Compressed("HEADdddfoot", Compression::kGzip));
  const FixedLengthRecordOptions around = {.header_bytes = 4, .footer_bytes = 4};
  EXPECT_THAT(Read(Dataset::FixedLengthRecord({"a", "none", "a"}, 3, around), files),
              ElementsAre("aaa", "bbb", "ccc", "aaa", "bbb", "ccc"));
  EXPECT_THAT(Read(Dataset::FixedLengthRecord(
                       "packed", 3,
                       {.header_bytes = 4, .footer_bytes = 4, .compression = Compression::kGzip}),
                   files),
              ElementsAre("ddd"));
  EXPECT_THAT(Read(Dataset::FixedLengthRecord("a", 17), files), ElementsAre("HEADaaabbbcccfoot"));
}

TEST(FixedLength, AFileWithAPartialRecordIsNamed) {
  FakeFiles files;
  files.Put("odd", "aaabb");
  files.Put("empty", "");
  files.Put("packed", Compressed("aaabb", Compression::kGzip));
  EXPECT_THAT(Read(Dataset::FixedLengthRecord("odd", 3), files),
              ElementsAre(AllOf(HasSubstr("odd has 5 bytes"), HasSubstr("records of 3"))));
  EXPECT_THAT(Read(Dataset::FixedLengthRecord("odd", 1, {.header_bytes = 6}), files),
              ElementsAre(HasSubstr("odd has 5 bytes")));
  EXPECT_THAT(Read(Dataset::FixedLengthRecord("empty", 3), files), IsEmpty());
  EXPECT_THAT(Read(Dataset::FixedLengthRecord("empty", 3, {.footer_bytes = 1}), files),
              ElementsAre(HasSubstr("empty has 0 bytes")));
  EXPECT_THAT(
      Read(Dataset::FixedLengthRecord("packed", 3, {.compression = Compression::kGzip}), files),
      ElementsAre("aaa", HasSubstr("packed has 5 bytes")));
}

TEST(FixedLength, ImpossibleSizesAreMistakesInTheDataset) {
  EXPECT_THAT(Dataset::FixedLengthRecord("a", 0).status().ToString(),
              AllOf(HasSubstr("FixedLengthRecordDataset#0"), HasSubstr("record_bytes is 0")));
  EXPECT_THAT(Dataset::FixedLengthRecord("a", 1, {.footer_bytes = -1}).status().ToString(),
              HasSubstr("footer_bytes is -1"));
  EXPECT_THAT(Dataset::FixedLengthRecord("", 1).status().ToString(), HasSubstr("empty name"));
}

}  // namespace
}  // namespace penstock
