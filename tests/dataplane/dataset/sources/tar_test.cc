// SPDX-License-Identifier: Apache-2.0
// TarShards, on archives that Python's tarfile wrote and on damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/fake_files.h"
#include "penstock/sources.h"
#include "tests/dataplane/dataset/sources/read_files.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

// Returns a member of an archive as old programs wrote it: a name and octal numbers.
std::string Member(const std::string& name, const std::string& contents, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  std::string size = "00000000000";
  for (size_t i = size.size(), left = contents.size(); left > 0; left /= 8)
    size[--i] = static_cast<char>('0' + left % 8);
  header.replace(124, size.size(), size);
  header[156] = type;
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  for (int i = 5; i >= 0; --i, sum /= 8) header[148 + i] = static_cast<char>('0' + sum % 8);
  header[154] = '\0';
  return header + contents + std::string((512 - contents.size() % 512) % 512, '\0');
}

// Returns "LENGTH KEY=VALUE\n", for lengths of two digits.
std::string PaxRecord(const std::string& record) {
  return absl::StrCat(record.size() + 4, " ", record, "\n");
}

// Returns the keys in pax.tar and gnu.tar.
std::string LongKey(int n) {
  std::string key;
  for (int i = 0; i < 60; ++i) key += "deep/";
  return absl::StrCat(key, "näme-000", n);
}

TEST(TarShards, ReadsUstarWithItsPrefixes) {
  const Strings samples = ReadAll(Dataset::TarShards(TEST_DATA "/ustar.tar", {"cls"}));
  ASSERT_THAT(samples, SizeIs(5));
  EXPECT_EQ(samples[0], "{__key__: set/0000, cls: 0}");
  EXPECT_EQ(samples[3], "{__key__: set/0003, cls: 3}");
  EXPECT_EQ(samples[4], absl::StrCat("{__key__: ", std::string(90, 'd'), "/", std::string(50, 'e'),
                                     "/0000, cls: 0}"));
}

TEST(TarShards, ReadsLongNamesOfPaxAndGnu) {
  EXPECT_THAT(ReadAll(Dataset::TarShards(TEST_DATA "/pax.tar", {"cls"})),
              ElementsAre(absl::StrCat("{__key__: ", LongKey(0), ", cls: 0}"),
                          absl::StrCat("{__key__: ", LongKey(1), ", cls: 1}"),
                          absl::StrCat("{__key__: ", LongKey(2), ", cls: 2}")));
  EXPECT_THAT(ReadAll(Dataset::TarShards(TEST_DATA "/gnu.tar", {"cls"})),
              ElementsAre(absl::StrCat("{__key__: ", LongKey(0), ", cls: 0}"),
                          absl::StrCat("{__key__: ", LongKey(1), ", cls: 1}"),
                          "{__key__: short/0000, cls: 0}", "{__key__: short/0001, cls: 1}"));
}

TEST(TarShards, DetectsCompressedArchives) {
  const Strings samples =
      ReadAll(Dataset::TarShards(TEST_DATA "/samples.tar.gz", {"png;jpg", "note.txt"}));
  ASSERT_THAT(samples, SizeIs(5));
  EXPECT_EQ(samples[0], "{__key__: packed/0000, note.txt: , png: }");
  EXPECT_EQ(samples[1], absl::StrCat("{__key__: packed/0001, note.txt: not asked for, png: ",
                                     std::string(300, '\1'), "}"));
}

TEST(TarShards, NamesTheArchiveOnRequest) {
  FakeFiles files;
  files.Put("a.tar", Member("x.cls", "1"));
  EXPECT_THAT(Read(Dataset::TarShards("a.tar", {"cls"}, {.url = true}), files),
              ElementsAre("{__key__: x, __url__: a.tar, cls: 1}"));
}

TEST(TarShards, AMissingFieldNamesArchiveSampleAndField) {
  EXPECT_THAT(
      ReadAll(Dataset::TarShards(TEST_DATA "/incomplete.tar", {"jpg;jpeg", "cls"})),
      ElementsAre("{__key__: a, cls: 1, jpg: a}",
                  AllOf(HasSubstr("TarShards#0"), HasSubstr("incomplete.tar"),
                        HasSubstr("sample b has no file .cls"), HasSubstr("its files are: jpg")),
                  "{__key__: c, cls: 3, jpg: c}"));
  EXPECT_THAT(ReadAll(Dataset::TarShards(TEST_DATA "/incomplete.tar", {"jpg", "cls"},
                                         {.skip_incomplete = true})),
              ElementsAre("{__key__: a, cls: 1, jpg: a}"));
}

TEST(TarShards, TheFirstAlternativePresentCounts) {
  FakeFiles files;
  files.Put("a", Member("x.png", "png") + Member("x.jpg", "jpg") + Member("y.png", "only png"));
  EXPECT_THAT(Read(Dataset::TarShards("a", {"jpg;png"}), files),
              ElementsAre("{__key__: x, jpg: jpg}", "{__key__: y, jpg: only png}"));
}

TEST(TarShards, KeysEndAtTheFirstDotOfTheLastComponent) {
  FakeFiles files;
  files.Put("a", Member("v1.0/img.seg.PNG", "1") + Member("v1.0/img.txt", "t") +
                     Member("no_extension", "") + Member(".hidden", "") + Member("d/.x", "") +
                     Member("__meta.json__", "") + Member("v1.0/img.seg.png", "2"));
  EXPECT_THAT(Read(Dataset::TarShards("a", {"seg.png"}), files),
              ElementsAre(HasSubstr("v1.0/img has more than one file .seg.png")));
  files.Put("b", Member("x.txt", "1") + Member("y.txt", "2") + Member("x.txt", "3"));
  EXPECT_THAT(
      Read(Dataset::TarShards("b", {"txt"}), files),  // the members of a sample are adjacent
      ElementsAre("{__key__: x, txt: 1}", "{__key__: y, txt: 2}", "{__key__: x, txt: 3}"));
}

TEST(TarShards, EntriesThatAreNoFilesAreSkipped) {
  FakeFiles files;
  std::string link = Member("x.cls", "", '2');
  files.Put("a", Member("dir/", "", '\0') + Member("dir", "", '5') + link +
                     Member("comment", "unknown to us", 'Z') + Member("x.cls", "old", '\0') +
                     Member("y.cls", "contiguous", '7'));
  EXPECT_THAT(Read(Dataset::TarShards("a", {"cls"}), files),
              ElementsAre("{__key__: x, cls: old}", "{__key__: y, cls: contiguous}"));
}

TEST(TarShards, PaxSizesAndNamesTakeTheHeadersPlace) {
  FakeFiles files;
  std::string large = Member("short.cls", "contents");
  large.replace(124, 11, "00000000000");  // a size that does not fit the header
  unsigned sum = 0;
  large.replace(148, 8, "        ");
  for (int i = 0; i < 512; ++i) sum += static_cast<uint8_t>(large[i]);
  for (int i = 5; i >= 0; --i, sum /= 8) large[148 + i] = static_cast<char>('0' + sum % 8);
  large[154] = '\0';
  files.Put("a", Member("g", PaxRecord("comment=not for us"), 'g') +
                     Member("x", PaxRecord("path=long.cls") + "10 size=8\n", 'x') + large +
                     Member("z.cls", "next"));
  EXPECT_THAT(Read(Dataset::TarShards("a", {"cls"}), files),
              ElementsAre("{__key__: long, cls: contents}", "{__key__: z, cls: next}"));
}

TEST(TarShards, ADamagedHeaderGivesUpTheRestOfItsArchiveOnly) {
  FakeFiles files;
  std::string damaged = Member("x.cls", "1") + Member("y.cls", "2") + Member("z.cls", "3");
  damaged[1024] ^= 1;
  files.Put("bad", damaged);
  files.Put("good", Member("x.cls", "4"));
  EXPECT_THAT(Read(Dataset::TarShards({"bad", "good"}, {"cls"}), files),
              ElementsAre("{__key__: x, cls: 1}",
                          AllOf(HasSubstr("bad: at offset 1024"), HasSubstr("no tar header"),
                                HasSubstr("skipped")),
                          "{__key__: x, cls: 4}"));
}

TEST(TarShards, AFlippedBitInAHeaderIsFound) {
  FakeFiles files;
  const std::string whole = Member("x.cls", "1");
  for (size_t bit = 0; bit < 8 * 512; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
    files.Put("flipped", flipped);
    const Strings samples = Read(Dataset::TarShards("flipped", {"cls"}), files);
    if (samples == Strings{"{__key__: x, cls: 1}"}) {  // the bit was in the padding of the checksum
      ASSERT_GE(bit / 8, 148u);
      ASSERT_LT(bit / 8, 156u);
      continue;
    }
    ASSERT_THAT(samples, ElementsAre(StartsWith("error: "))) << bit;
  }
}

TEST(TarShards, ACutIsFoundUnlessItEndsAFile) {
  FakeFiles files;
  const std::string one = Member("x.cls", "1"), two = Member("y.cls", std::string(600, 'y'));
  for (size_t size = 1; size < two.size(); ++size) {
    files.Put("cut", one + two.substr(0, size));
    const Strings samples = Read(Dataset::TarShards("cut", {"cls"}), files);
    if (size >= 512 + 600) {  // only padding is missing
      ASSERT_THAT(samples, SizeIs(2)) << size;
      ASSERT_THAT(samples[1], Not(StartsWith("error: "))) << size;
      continue;
    }
    ASSERT_THAT(samples, ElementsAre("{__key__: x, cls: 1}",
                                     AllOf(HasSubstr("offset 1024"), HasSubstr("cut off"))))
        << size;
  }
}

TEST(TarShards, AnUnreadableHeaderIsAnErrorAfterWholeSamples) {
  FakeFiles files;
  std::string damaged = Member("x.jpg", "image") + Member("x.cls", "1");
  damaged[1024] ^= 1;
  files.Put("bad", damaged);
  EXPECT_THAT(Read(Dataset::TarShards("bad", {"jpg", "cls"}), files),
              ElementsAre(AllOf(HasSubstr("offset 1024"), HasSubstr("no tar header"))));
  EXPECT_THAT(
      Read(Dataset::TarShards("bad", {"jpg"}), files),  // not missing: the sample, then the error
      ElementsAre("{__key__: x, jpg: image}", HasSubstr("no tar header")));
}

TEST(TarShards, SparseFilesAndHugeHeadersAreRefused) {
  FakeFiles files;
  files.Put("sparse", Member("x.cls", "1", 'S'));
  files.Put("pax", Member("p", "22 GNU.sparse.major=1\n", 'x') + Member("x.cls", "1"));
  files.Put("huge", Member("p", std::string(2 << 20, 'x'), 'x') + Member("x.cls", "1"));
  files.Put("alone", Member("p", PaxRecord("path=a.cls"), 'x'));
  files.Put("torn", Member("p", "99 path=a.cls\n", 'x') + Member("x.cls", "1"));
  EXPECT_THAT(Read(Dataset::TarShards({"sparse", "pax", "huge", "alone", "torn"}, {"cls"}), files),
              ElementsAre(HasSubstr("sparse"), HasSubstr("sparse"), HasSubstr("2097152 bytes"),
                          HasSubstr("ends between"), HasSubstr("damaged")));
}

TEST(TarShards, AnEmptyFileAndAnEmptyArchiveHoldNothing) {
  FakeFiles files;
  files.Put("empty", "");
  files.Put("archive", std::string(10240, '\0'));
  EXPECT_THAT(Read(Dataset::TarShards({"empty", "archive"}, {"cls"}), files), IsEmpty());
}

TEST(TarShards, ImpossibleFieldsAreMistakesInTheDataset) {
  EXPECT_THAT(Dataset::TarShards("a", {"jpg;"}).status().ToString(),
              AllOf(HasSubstr("TarShards#0"), HasSubstr("'jpg;'")));
  EXPECT_THAT(Dataset::TarShards("a", {"jpg;png", "PNG"}).status().ToString(),
              HasSubstr("png twice"));
  EXPECT_THAT(Dataset::TarShards("a", {"__key__"}).status().ToString(), HasSubstr("__key__"));
}

TEST(TarShards, AFaultOfTheDiskIsPassedOn) {
  FakeFiles files;
  files.Put("a", DataFile("ustar.tar"));
  files.FailFrom("a", 2000, absl::UnavailableError("the disk is gone"));
  EXPECT_THAT(Read(Dataset::TarShards("a", {"cls"}), files),
              ElementsAre(AllOf(HasSubstr("the disk is gone"), HasSubstr("skipped"))));
}

}  // namespace
}  // namespace penstock
