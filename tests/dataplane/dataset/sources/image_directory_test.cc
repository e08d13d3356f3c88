// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/fake_files.h"
#include "dataplane/dataset/graph/split.h"
#include "penstock/sources.h"
#include "tests/dataplane/dataset/transforms/text_of.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Strings = std::vector<std::string>;

// A real directory, deleted at the end. Its name is a pattern that matches others too.
class ImageDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"cat/b.jpg", "cat/a.PNG", "cat/notes.txt", "bird/z.jpeg",
                             "no images/readme.txt", "top.jpg"}) {
      const std::filesystem::path path = root_ + "/" + name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << "<" << name << ">";
    }
    std::filesystem::create_directories(root_ + "/cat/deeper.jpg");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  const std::string root_ = ::testing::TempDir() + "penstock_images[12]";
};

TEST_F(ImageDirectoryTest, LabelsFollowTheSortedSubdirectories) {
  EXPECT_THAT(
      ReadAll(Dataset::ImageDirectory(root_ + "/")),
      ElementsAre(absl::StrCat("{image: <bird/z.jpeg>, label: 0, path: ", root_, "/bird/z.jpeg}"),
                  absl::StrCat("{image: <cat/a.PNG>, label: 1, path: ", root_, "/cat/a.PNG}"),
                  absl::StrCat("{image: <cat/b.jpg>, label: 1, path: ", root_, "/cat/b.jpg}")));
  const auto classes = ImageDirectoryClasses(root_);
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_THAT(*classes, ElementsAre("bird", "cat"));
}

TEST_F(ImageDirectoryTest, NoImagesAreNotFound) {
  const std::string none = root_ + "/cat";
  EXPECT_THAT(ReadAll(Dataset::ImageDirectory(none)),
              ElementsAre(AllOf(HasSubstr("ImageDirectory#0"), HasSubstr(none))));
  EXPECT_EQ(PlanSplits(Dataset::ImageDirectory(none)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ImageDirectoryClasses(none).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Dataset::ImageDirectory("").status().ToString(), HasSubstr("root"));
}

TEST_F(ImageDirectoryTest, ShufflingKeepsImagesAndLabelsTogether) {
  FakeFiles files;
  for (char c = 'a'; c <= 'p'; ++c)
    files.Put(absl::StrCat("/i/", std::string(1, c), "/x.jpg"), std::string(1, c));
  const auto read = [&](ImageDirectoryOptions options, uint64_t seed) {
    return ReadAll(Dataset::ImageDirectory("/i", options), {.seed = seed, .files = &files});
  };
  const Strings sorted = read({}, 1);
  ASSERT_THAT(sorted, SizeIs(16));
  EXPECT_EQ(sorted[3], "{image: d, label: 3, path: /i/d/x.jpg}");
  Strings shuffled = read({.shuffle = true}, 1);
  EXPECT_NE(shuffled, sorted);
  EXPECT_NE(shuffled, read({.shuffle = true}, 2));
  EXPECT_EQ(read({.shuffle = true, .seed = 5}, 1), read({.shuffle = true, .seed = 5}, 2));
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, sorted);
}

TEST_F(ImageDirectoryTest, AFileThatCannotBeReadTakesItsPlace) {
  FakeFiles files;
  files.Put("/i/a/1.jpg", "one");
  files.Put("/i/a/2.jpg", "two");
  files.FailFrom("/i/a/1.jpg", 0, absl::UnavailableError("the disk is gone"));
  EXPECT_THAT(ReadAll(Dataset::ImageDirectory("/i"), {.files = &files}),
              ElementsAre(AllOf(HasSubstr("ImageDirectory#0"), HasSubstr("the disk is gone")),
                          "{image: two, label: 0, path: /i/a/2.jpg}"));
}

TEST_F(ImageDirectoryTest, SplitsAreSingleFilesWhereTheyAreShuffled) {
  FakeFiles files;
  for (int i = 0; i < 2000; ++i) files.Put(absl::StrCat("/i/a/", i, ".jpg"), "x");
  const auto count = [&](bool shuffle) {
    const auto plan = PlanSplits(Dataset::ImageDirectory("/i", {.shuffle = shuffle}), files);
    return plan.ok() ? plan->providers.at(0).count : -1;
  };
  EXPECT_EQ(count(true), 2000);
  EXPECT_EQ(count(false), 1024);
}

}  // namespace
}  // namespace penstock
