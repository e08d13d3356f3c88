// SPDX-License-Identifier: Apache-2.0
// One suite for all disks, then the failures of the fake one.
#include "control/env/disk.h"

#include <filesystem>

#include "control/env/fake_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class AnyDisk : public ::testing::TestWithParam<bool> {
 protected:
  AnyDisk() {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(disk().MakeFolders(folder_).ok());
  }
  Disk& disk() { return GetParam() ? LocalDisk() : fake_; }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Put(const std::string& name, const std::string& bytes) {
    const auto file = disk().Create(Path(name), Disk::Readers::kOwner);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append(bytes).ok());
  }
  std::string BytesOf(const std::string& name) {
    const absl::StatusOr<std::string> bytes = disk().Read(Path(name));
    return bytes.ok() ? *bytes : bytes.status().ToString();
  }

 private:
  FakeDisk fake_;
  const std::string folder_ = ::testing::TempDir() + "/any_disk/below";
};

TEST_P(AnyDisk, ReadsWhatWasAppended) {
  const auto file = disk().Create(Path("a"), Disk::Readers::kOwner);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), Path("a"));
  EXPECT_TRUE((*file)->Append("one ").ok());
  EXPECT_TRUE((*file)->Sync().ok());
  EXPECT_TRUE((*file)->Append("two").ok());
  EXPECT_EQ(BytesOf("a"), "one two");
}

TEST_P(AnyDisk, CreateEmptiesAFile) {
  Put("a", "long before");
  Put("a", "new");
  EXPECT_EQ(BytesOf("a"), "new");
}

TEST_P(AnyDisk, NamesAFileThatIsMissing) {
  const absl::Status read = disk().Read(Path("a")).status();
  EXPECT_EQ(read.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.message()), HasSubstr(Path("a")));
  EXPECT_TRUE(disk().Remove(Path("a")).ok());
  EXPECT_EQ(disk().Create(Path("none/a"), Disk::Readers::kOwner).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(disk().List(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(disk().OpenFolder(Path("none")).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(AnyDisk, RenameReplacesAFile) {
  Put("b", "old");
  const auto file = disk().Create(Path("a"), Disk::Readers::kByUmask);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->Append("new").ok());
  EXPECT_TRUE((*file)->Rename(Path("b")).ok());
  EXPECT_TRUE((*file)->Append(" and more").ok());
  EXPECT_EQ((*file)->path(), Path("b"));
  EXPECT_EQ(BytesOf("b"), "new and more");
  EXPECT_THAT(*disk().List(Path("")), UnorderedElementsAre("b"));
}

TEST_P(AnyDisk, NoticesAFileThatWasRemovedOrReplaced) {
  const auto file = disk().Create(Path("a"), Disk::Readers::kOwner);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->CheckThere().ok());
  EXPECT_TRUE(disk().Remove(Path("a")).ok());
  EXPECT_EQ((*file)->CheckThere().code(), absl::StatusCode::kNotFound);
  Put("a", "another");
  EXPECT_EQ((*file)->CheckThere().code(), absl::StatusCode::kDataLoss);
}

TEST_P(AnyDisk, KeepsALockedFileUntilItIsClosed) {
  auto file = disk().CreateLocked(Path("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(disk().CreateLocked(Path("a")).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(disk().RemoveUnlocked(Path("a")).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(BytesOf("a"), "");
  file->reset();
  EXPECT_TRUE(disk().RemoveUnlocked(Path("a")).ok());
  EXPECT_EQ(disk().Read(Path("a")).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(AnyDisk, MakesFoldersOnce) {
  EXPECT_TRUE(disk().MakeFolders(Path("c/d/e")).ok());
  EXPECT_TRUE(disk().MakeFolders(Path("c/d/e/")).ok());
  Put("c/d/e/a", "there");
  EXPECT_EQ(BytesOf("c/d/e/a"), "there");
  const auto folder = disk().OpenFolder(Path("c"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE((*folder)->Sync().ok());
}

INSTANTIATE_TEST_SUITE_P(Disks, AnyDisk, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Local" : "Fake"; });

// --- The fake one --------------------------------------------------------------------

class FakeDiskTest : public ::testing::Test {
 protected:
  FakeDiskTest() {
    EXPECT_TRUE(disk_.MakeFolders("/d").ok());
    file_ = *disk_.Create("/d/a", Disk::Readers::kOwner);
    folder_ = *disk_.OpenFolder("/d");
  }
  FakeDisk disk_;
  std::unique_ptr<DiskFile> file_;
  std::unique_ptr<DiskFolder> folder_;
  std::mt19937_64 random_;
};

TEST_F(FakeDiskTest, KeepsAfterAPowerLossWhatWasSynced) {
  EXPECT_TRUE(file_->Append("synced").ok());
  EXPECT_TRUE(file_->Sync().ok());
  EXPECT_TRUE(folder_->Sync().ok());
  for (int time = 0; time < 50; ++time) {
    disk_.LosePower(random_);
    EXPECT_EQ(*disk_.Read("/d/a"), "synced");
  }
  EXPECT_EQ(file_->Append("more").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(FakeDiskTest, MayLoseBytesThatWereNotSynced) {
  int lost = 0;
  for (int time = 0; time < 50; ++time) {
    FakeDisk disk;
    ASSERT_TRUE(disk.MakeFolders("/d").ok());
    const auto file = *disk.Create("/d/a", Disk::Readers::kOwner);
    EXPECT_TRUE((*disk.OpenFolder("/d"))->Sync().ok());
    EXPECT_TRUE(file->Append("not synced").ok());
    disk.LosePower(random_);
    if (*disk.Read("/d/a") != "not synced") ++lost;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 50);
}

TEST_F(FakeDiskTest, MayLoseANameThatWasNotSynced) {
  int lost = 0;
  for (int time = 0; time < 50; ++time) {
    FakeDisk disk;
    ASSERT_TRUE(disk.MakeFolders("/d").ok());
    const auto file = *disk.Create("/d/a", Disk::Readers::kOwner);
    EXPECT_TRUE(file->Sync().ok());
    disk.LosePower(random_);
    if (disk.List("/d")->empty()) ++lost;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 50);
}

TEST_F(FakeDiskTest, FailsAtOneOperation) {
  disk_.FailAt(disk_.operations() + 1, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(file_->Append("one").ok());
  EXPECT_EQ(file_->Append("four").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(file_->Append(" and more").ok());
  EXPECT_EQ(*disk_.Read("/d/a"), "onefo and more");
}

TEST_F(FakeDiskTest, IsFullAtItsCapacity) {
  disk_.SetCapacity(10);
  EXPECT_TRUE(file_->Append("1234567").ok());
  const absl::Status full = file_->Append("abcd");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("/d/a"));
  EXPECT_EQ(*disk_.Read("/d/a"), "1234567ab");
  EXPECT_FALSE(file_->Append("efgh").ok());  // no room for half of it
  EXPECT_EQ(*disk_.Read("/d/a"), "1234567abe");
  EXPECT_TRUE(disk_.Create("/d/b", Disk::Readers::kOwner).ok());
  EXPECT_TRUE(disk_.Remove("/d/a").ok());
  const auto other = *disk_.Create("/d/c", Disk::Readers::kOwner);
  EXPECT_TRUE(other->Append("1234567890").ok());
}

TEST_F(FakeDiskTest, FailsForGood) {
  disk_.FailAt(disk_.operations(), absl::AbortedError("killed"), /*for_good=*/true);
  EXPECT_FALSE(disk_.Read("/d/a").ok());
  EXPECT_FALSE(disk_.List("/d").ok());
  disk_.LosePower(random_);
  EXPECT_TRUE(disk_.List("/d").ok());
}

TEST_F(FakeDiskTest, LosesBytesThatItFailedToSync) {
  EXPECT_TRUE(folder_->Sync().ok());
  EXPECT_TRUE(file_->Append("lost").ok());
  disk_.FailAt(disk_.operations(), absl::UnavailableError("EIO"));
  EXPECT_FALSE(file_->Sync().ok());
  EXPECT_TRUE(file_->Sync().ok());
  EXPECT_EQ(*disk_.Read("/d/a"), "lost");
  disk_.LosePower(random_);
  EXPECT_EQ(*disk_.Read("/d/a"), "");
}

}  // namespace
}  // namespace penstock
