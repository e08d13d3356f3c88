// SPDX-License-Identifier: Apache-2.0
#include "control/env/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "control/env/fake_files.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A place for files, one for each implementation of Files.
class Place {
 public:
  virtual ~Place() = default;
  virtual Files& files() = 0;
  virtual std::string Path(const std::string& name) = 0;
  virtual void Put(const std::string& name, const std::string& bytes) = 0;
};

class LocalPlace final : public Place {
 public:
  LocalPlace() {
    std::string pattern = ::testing::TempDir() + "penstock_files_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~LocalPlace() override { std::filesystem::remove_all(root_); }
  Files& files() override { return LocalFiles(); }
  std::string Path(const std::string& name) override { return root_ + "/" + name; }
  void Put(const std::string& name, const std::string& bytes) override {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }

 private:
  std::string root_;
};

class FakePlace final : public Place {
 public:
  Files& files() override { return files_; }
  std::string Path(const std::string& name) override { return "/fake/" + name; }
  void Put(const std::string& name, const std::string& bytes) override {
    files_.Put(Path(name), bytes);
  }

 private:
  FakeFiles files_;
};

using MakePlace = std::unique_ptr<Place> (*)();
class FilesTest : public ::testing::TestWithParam<MakePlace> {
 protected:
  std::unique_ptr<Place> place_ = GetParam()();
};

TEST_P(FilesTest, ReadsAtAnyOffsetAndStopsAtTheEnd) {
  place_->Put("a", "0123456789");
  absl::StatusOr<std::unique_ptr<File>> file = place_->files().Open(place_->Path("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 10);
  EXPECT_EQ((*file)->name(), place_->Path("a"));
  char bytes[4] = {};
  EXPECT_EQ((*file)->ReadAt(3, absl::MakeSpan(bytes)).value(), 4u);
  EXPECT_EQ(std::string(bytes, 4), "3456");
  EXPECT_EQ((*file)->ReadAt(8, absl::MakeSpan(bytes)).value(), 2u);
  EXPECT_EQ((*file)->ReadAt(10, absl::MakeSpan(bytes)).value(), 0u);
}

TEST_P(FilesTest, AFileThatIsNotThereIsNotFoundByItsName) {
  const absl::Status status = place_->files().Open(place_->Path("none")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(place_->Path("none")));
}

TEST_P(FilesTest, GlobGivesMatchingFilesInTheOrderOfTheirBytes) {
  for (const char* name : {"b2", "b10", "B1", "c1", "b1"}) place_->Put(name, "");
  EXPECT_THAT(place_->files().Glob(place_->Path("b*")).value(),
              ElementsAre(place_->Path("b1"), place_->Path("b10"), place_->Path("b2")));
  EXPECT_THAT(place_->files().Glob(place_->Path("[bc]1")).value(),
              ElementsAre(place_->Path("b1"), place_->Path("c1")));
  EXPECT_THAT(place_->files().Glob(place_->Path("b1")).value(), ElementsAre(place_->Path("b1")));
  EXPECT_THAT(place_->files().Glob(place_->Path("none*")).value(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Local, FilesTest, ::testing::Values(+[]() -> std::unique_ptr<Place> {
                           return std::make_unique<LocalPlace>();
                         }));
INSTANTIATE_TEST_SUITE_P(Fake, FilesTest, ::testing::Values(+[]() -> std::unique_ptr<Place> {
                           return std::make_unique<FakePlace>();
                         }));

TEST(LocalFiles, ADirectoryIsNoFile) {
  EXPECT_EQ(LocalFiles().Open("/").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(LocalFiles().Glob("/").value(), IsEmpty());
}

TEST(LocalFiles, AnErrorOfTheDiskIsNotTheDatas) {
  // Reading this file where nothing is mapped is EIO.
  std::unique_ptr<File> file = LocalFiles().Open("/proc/self/mem").value();
  char byte;
  const absl::Status status = file->ReadAt(0, {&byte, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot read /proc/self/mem at 0"));
}

TEST(FakeFiles, FailsFromTheGivenOffset) {
  FakeFiles files;
  files.Put("a", "0123456789");
  files.FailFrom("a", 6, absl::UnavailableError("the disk is gone"));
  std::unique_ptr<File> file = files.Open("a").value();
  char bytes[4];
  EXPECT_TRUE(file->ReadAt(2, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(file->ReadAt(3, absl::MakeSpan(bytes)).status().code(), absl::StatusCode::kUnavailable);
  files.FailFrom("a", 0, absl::OkStatus());
  EXPECT_TRUE(file->ReadAt(3, absl::MakeSpan(bytes)).ok());
}

}  // namespace
}  // namespace penstock
