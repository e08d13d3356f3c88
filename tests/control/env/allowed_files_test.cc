// SPDX-License-Identifier: Apache-2.0
// Files and a disk of this machine that show only allowed folders, and the ways around a list.
#include "control/env/allowed_files.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The folder `data` is allowed, and its neighbour `secret` is not.
class AllowedFilesTest : public ::testing::Test {
 protected:
  AllowedFilesTest() {
    std::string pattern = ::testing::TempDir() + "penstock_allowed_XXXXXX";
    root_ = fs::canonical(mkdtemp(pattern.data())).string();
    for (const char* folder : {"data/below", "secret/below", "other"})
      fs::create_directories(At(folder));
    Put("data/a", "allowed");
    Put("data/below/b", "allowed");
    Put("secret/s", "secret");
    Put("other/o", "other");
    Allow({At("data")});
  }
  ~AllowedFilesTest() override { fs::remove_all(root_); }

  std::string At(const std::string& name) const { return root_ + "/" + name; }
  void Put(const std::string& name, const std::string& bytes) {
    std::ofstream(At(name), std::ios::binary) << bytes;
  }
  void Link(const std::string& to, const std::string& name) { fs::create_symlink(to, At(name)); }
  void Allow(const std::vector<std::string>& allowed) {
    files_ = MakeAllowedFiles(allowed).value();
  }

  // Returns the contents of a file, or the error.
  std::string Read(const std::string& name) {
    const absl::StatusOr<std::unique_ptr<File>> file = files_->Open(name);
    if (!file.ok()) return file.status().ToString();
    std::string bytes(static_cast<size_t>((*file)->size()), '\0');
    EXPECT_TRUE((*file)->ReadAt(0, absl::MakeSpan(bytes)).ok());
    return bytes;
  }
  static std::string Refusal(const std::string& name) {
    return absl::StrCat("PERMISSION_DENIED: ", name,
                        " is not allowed on this worker: add its folder to --files-allow "
                        "(files_allow)");
  }

  std::string root_;
  std::unique_ptr<Files> files_;
};

TEST_F(AllowedFilesTest, ReadsBelowAnAllowedFolder) {
  EXPECT_EQ(Read(At("data/a")), "allowed");
  EXPECT_EQ(Read(At("data/below/../below/./b")), "allowed");
  EXPECT_EQ(Read(absl::StrCat("file://", At("data/a"))), "allowed");
  EXPECT_THAT(Read(At("data/none")), AllOf(HasSubstr("NOT_FOUND"), HasSubstr(At("data/none"))));
  EXPECT_THAT(Read(At("data")), HasSubstr("is a directory"));
}

TEST_F(AllowedFilesTest, RefusesOtherFilesWhetherTheyExistOrNot) {
  for (const char* name :
       {"secret/s", "secret/none", "secret", "none", "database", "data/../secret/s",
        "data/below/../../secret/s", "data/../../../../etc/passwd"}) {
    EXPECT_EQ(Read(At(name)), Refusal(At(name)));
  }
  EXPECT_EQ(Read(absl::StrCat("file://", At("secret/s"))), Refusal(At("secret/s")));
  EXPECT_EQ(Read("/etc/passwd"), Refusal("/etc/passwd"));
  EXPECT_EQ(Read("/"), Refusal("/"));
  EXPECT_EQ(Read(""), Refusal(""));
}

TEST_F(AllowedFilesTest, AnEmptyListAllowsNothing) {
  Allow({});
  EXPECT_EQ(Read(At("data/a")), Refusal(At("data/a")));
  EXPECT_EQ(files_->Glob("/*").status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(AllowedFilesTest, RefusesLinksThatLeadOutsideWhetherTheirTargetExistsOrNot) {
  Link(At("secret"), "data/absolute");
  Link("../secret", "data/relative");
  Link("../../secret/s", "data/below/file");
  Link("absolute", "data/chain");
  Link(At("secret/none"), "data/dangling");
  for (const char* name : {"data/absolute/s", "data/absolute/none", "data/relative/s",
                           "data/relative/none", "data/below/file", "data/chain/s",
                           "data/chain/below/../s", "data/dangling", "data/absolute"}) {
    EXPECT_EQ(Read(At(name)), Refusal(At(name)));
  }
}

TEST_F(AllowedFilesTest, FollowsLinksThatStayInside) {
  Link("below", "data/relative");
  Link(At("data/below"), "data/absolute");
  Link("../data/relative/b", "data/file");
  EXPECT_EQ(Read(At("data/relative/b")), "allowed");
  EXPECT_EQ(Read(At("data/absolute/b")), "allowed");
  EXPECT_EQ(Read(At("data/file")), "allowed");
  Link("loop", "data/loop");
  EXPECT_THAT(Read(At("data/loop")), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(AllowedFilesTest, FollowsLinksFromOneAllowedFolderToAnother) {
  Link(At("other/o"), "data/absolute");
  Link("../other/o", "data/relative");
  Allow({At("data"), At("other/")});
  for (const char* name : {"data/absolute", "data/relative", "data/../other/o"})
    EXPECT_EQ(Read(At(name)), "other") << name;
}

TEST_F(AllowedFilesTest, AnAllowedFolderMayBeALinkItself) {
  Link("data", "alias");
  Link(At("alias/below"), "data/through_alias");
  Allow({At("alias")});
  EXPECT_EQ(Read(At("alias/a")), "allowed");
  EXPECT_EQ(Read(At("data/a")), "allowed");
  EXPECT_EQ(Read(At("alias/through_alias/b")), "allowed");
  EXPECT_EQ(Read(At("alias/../secret/s")), Refusal(At("alias/../secret/s")));
}

TEST_F(AllowedFilesTest, AllowsASingleFileAndAFolderThatComesLater) {
  Allow({At("data/a"), absl::StrCat("file://", At("later"))});
  EXPECT_EQ(Read(At("data/a")), "allowed");
  EXPECT_EQ(Read(At("data/below/b")), Refusal(At("data/below/b")));
  EXPECT_THAT(Read(At("data/a/b")), HasSubstr("cannot open"));
  EXPECT_THAT(Read(At("later/l")), HasSubstr("NOT_FOUND"));
  fs::create_directory(At("later"));
  Put("later/l", "late");
  EXPECT_EQ(Read(At("later/l")), "late");
}

TEST_F(AllowedFilesTest, AFolderThatComesLaterMayBeBelowALink) {
  Link("data", "alias");
  Allow({At("alias/later"), At("alias/file")});
  EXPECT_THAT(Read(At("alias/later/l")), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(Read(At("alias/file")), HasSubstr("NOT_FOUND"));
  EXPECT_EQ(Read(At("alias/a")), Refusal(At("alias/a")));
  fs::create_directory(At("data/later"));
  Put("data/later/l", "late");
  Put("data/file", "late");
  for (const char* name : {"alias/later/l", "data/later/l", "alias/file"})
    EXPECT_EQ(Read(At(name)), "late") << name;
  EXPECT_EQ(Read(At("data/a")), Refusal(At("data/a")));
}

TEST_F(AllowedFilesTest, ALinkThatComesInThePlaceOfAMissingFolderIsFollowed) {
  Link("data", "alias");
  Allow({At("alias/later")});
  EXPECT_THAT(Read(At("alias/later/o")), HasSubstr("NOT_FOUND"));
  Link("../other", "data/later");  // only the operator can write above an allowed folder
  EXPECT_EQ(Read(At("alias/later/o")), "other");
  EXPECT_EQ(Read(At("secret/s")), Refusal(At("secret/s")));
}

// The system ends a path at a NUL byte, so ".." and a NUL byte are ".." to it.
TEST_F(AllowedFilesTest, RefusesNulBytesInPaths) {
  using std::string_literals::operator""s;
  for (const std::string& name : {"data/..\0x/secret/s"s, "data/..\0/secret/s"s,
                                  "data/below/..\0x/..\0x/secret/s"s, "data/a\0"s}) {
    const std::string path = At(name);
    for (const absl::Status& refused :
         {files_->Open(path).status(), files_->Open("file://" + path).status(),
          files_->Glob(path).status(), files_->Glob(path + "*").status(),
          LocalFiles().Open(path).status(), LocalFiles().Glob(path).status()}) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
      EXPECT_THAT(std::string(refused.message()), HasSubstr("NUL byte"));
    }
  }
  EXPECT_FALSE(MakeAllowedFiles({At("data\0x"s)}).ok());
}

TEST_F(AllowedFilesTest, ARootOfAllFilesAllowsThem) {
  Allow({"/"});
  EXPECT_EQ(Read(At("secret/s")), "secret");
  EXPECT_EQ(Read(At("data/../secret/s")), "secret");
  EXPECT_THAT(files_->Glob(At("secret/*")).value(), ElementsAre(At("secret/s")));
}

TEST_F(AllowedFilesTest, RelativePathsBeginAtTheWorkingDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(At("data/below"));
  EXPECT_EQ(Read("b"), "allowed");
  EXPECT_EQ(Read("../a"), "allowed");
  EXPECT_EQ(Read("../../secret/s"), Refusal("../../secret/s"));
  EXPECT_THAT(files_->Glob("../*").value(), ElementsAre("../a"));
  Allow({"."});
  EXPECT_EQ(Read(At("data/below/b")), "allowed");
  fs::current_path(At("secret"));  // the list means the folder that it named
  EXPECT_EQ(Read(At("data/below/b")), "allowed");
  EXPECT_EQ(Read("s"), Refusal("s"));
  EXPECT_EQ(Read(At("secret/s")), Refusal(At("secret/s")));
  fs::current_path(before);
}

TEST_F(AllowedFilesTest, AnAllowedLinkThatIsChangedAllowsNothingElse) {
  Link("data", "alias");
  Allow({At("alias")});
  fs::remove(At("alias"));
  Link("secret", "alias");
  EXPECT_THAT(Read(At("alias/s")), HasSubstr("NOT_FOUND"));
  EXPECT_EQ(Read(At("secret/s")), Refusal(At("secret/s")));
  EXPECT_EQ(Read(At("alias/a")), "allowed");
  EXPECT_EQ(Read(At("data/a")), "allowed");
}

TEST_F(AllowedFilesTest, AnAllowedLinkIsFollowedAgainWhenItsTargetIsGone) {
  Link("data", "alias");
  Link("data/a", "file");
  Allow({At("alias"), At("file")});
  fs::rename(At("data"), At("old"));
  EXPECT_THAT(Read(At("alias/a")), HasSubstr("cannot open"));
  for (const char* link : {"alias", "file"}) fs::remove(At(link));
  Link("other", "alias");
  Link("other/o", "file");
  EXPECT_EQ(Read(At("alias/o")), "other");
  EXPECT_EQ(Read(At("file")), "other");
  EXPECT_EQ(Read(At("other/o")), "other");
  EXPECT_EQ(Read(At("old/a")), Refusal(At("old/a")));
}

TEST_F(AllowedFilesTest, ALinkInThePlaceOfAFolderAboveIsNotFollowedInSilence) {
  Allow({At("data/below")});
  EXPECT_EQ(Read(At("data/below/b")), "allowed");
  fs::rename(At("data"), At("moved"));
  Link("moved", "data");  // only the operator can write here; the folder is found again
  EXPECT_EQ(Read(At("data/below/b")), "allowed");
  EXPECT_EQ(Read(At("moved/below/b")), "allowed");
  EXPECT_EQ(Read(At("moved/a")), Refusal(At("moved/a")));
}

TEST_F(AllowedFilesTest, AHardLinkIsAFileOfItsFolder) {
  fs::create_hard_link(At("secret/s"), At("data/hard"));
  EXPECT_EQ(Read(At("data/hard")), "secret");
}

TEST_F(AllowedFilesTest, ALinkThatIsSwappedMeanwhileLeadsNowhereElse) {
  fs::create_directories(At("data/good"));
  Put("data/good/s", "allowed");
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    while (!stop) {
      Link("good", "data/next");
      fs::rename(At("data/next"), At("data/swapped"));
      Link("../secret", "data/next");
      fs::rename(At("data/next"), At("data/swapped"));
      fs::remove(At("data/swapped"));
      fs::create_directory(At("data/swapped"));
      Put("data/swapped/s", "allowed");
      fs::remove_all(At("data/swapped"));
    }
  });
  for (int i = 0; i < 5'000; ++i) EXPECT_NE(Read(At("data/swapped/s")), "secret");
  stop = true;
  swapper.join();
}

TEST_F(AllowedFilesTest, ListsOnlyAllowedFolders) {
  EXPECT_THAT(files_->Glob(At("data/*")).value(), ElementsAre(At("data/a")));
  EXPECT_THAT(files_->Glob(At("data/*/?")).value(), ElementsAre(At("data/below/b")));
  EXPECT_THAT(files_->Glob(At("data/a")).value(), ElementsAre(At("data/a")));
  EXPECT_THAT(files_->Glob(At("data/none/*")).value(), IsEmpty());
  EXPECT_THAT(files_->Glob(absl::StrCat("file://", At("data/*"))).value(),
              ElementsAre(absl::StrCat("file://", At("data/a"))));
  for (const char* pattern : {"secret/*", "none/*", "*/s", "sec*", "secret/s", "secret/none",
                              "data/../secret/*", "data/below/../../*"}) {
    const absl::Status refused = files_->Glob(At(pattern)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << pattern << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("--files-allow")) << pattern;
  }
}

TEST_F(AllowedFilesTest, AListingThatMeetsALinkToTheOutsideFailsInsteadOfLeavingItOut) {
  Link(At("secret"), "data/link");
  EXPECT_THAT(files_->Glob(At("data/*/?")).status().ToString(), Refusal(At("data/link")));
  EXPECT_THAT(files_->Glob(At("data/link/*")).status().ToString(), Refusal(At("data/link")));
  EXPECT_THAT(files_->Glob(At("data/l*")).status().ToString(), Refusal(At("data/link")));
  EXPECT_THAT(files_->Glob(At("data/a*")).value(), ElementsAre(At("data/a")));
}

TEST(MakeAllowedFiles, RefusesEntriesThatAreNoPlace) {
  for (const char* entry : {"", "ftp://host/", "file://host/data", "https://host/a/../b",
                            "https://host/?query", "s3://buc*ket/"}) {
    const absl::Status refused = MakeAllowedFiles({entry}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << entry << ": " << refused;
  }
}

// --- The disk ------------------------------------------------------------------------

class LimitedDiskTest : public AllowedFilesTest {
 protected:
  const std::unique_ptr<Disk> disk_ =
      LocalDiskFor(PathLookup({At("data")}, "choose another place"));
};

TEST_F(LimitedDiskTest, WritesBelowItsFolder) {
  const auto file = disk_->CreateLocked(At("data/below/new"));
  ASSERT_TRUE(file.ok()) << file.status();
  struct stat about;
  ASSERT_EQ(stat(At("data/below/new").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600);
  EXPECT_TRUE((*file)->Append("bytes").ok());
  EXPECT_TRUE((*file)->Rename(At("data/below/final")).ok());
  EXPECT_TRUE((*file)->CheckThere().ok());
  EXPECT_EQ(disk_->Read(At("data/below/final")).value(), "bytes");
  EXPECT_TRUE(disk_->OpenFolder(At("data/below")).value()->Sync().ok());
  EXPECT_THAT(disk_->List(At("data/below")).value(), ::testing::UnorderedElementsAre("b", "final"));
  EXPECT_EQ(disk_->RemoveUnlocked(At("data/below/final")).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(disk_->Remove(At("data/below/final")).ok());
  EXPECT_TRUE(disk_->MakeFolders(At("data/x/y")).ok());
  EXPECT_TRUE(fs::is_directory(At("data/x/y")));
}

TEST_F(LimitedDiskTest, TouchesNothingElse) {
  Link(At("secret"), "data/folder");
  Link(At("secret/s"), "data/file");
  Link(At("secret/new"), "data/dangling");
  for (const char* name : {"secret/s", "secret/new", "data/../secret/s", "data/folder/s",
                           "data/folder/new", "data/file", "data/dangling"}) {
    const std::string path = At(name);
    for (const absl::Status& refused :
         {disk_->CreateLocked(path).status(), disk_->Create(path, Disk::Readers::kByUmask).status(),
          disk_->Read(path).status(), disk_->Remove(path), disk_->RemoveUnlocked(path),
          disk_->List(path).status(), disk_->OpenFolder(path).status(),
          disk_->MakeFolders(path + "/x")}) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
      EXPECT_THAT(std::string(refused.message()), HasSubstr("choose another place"));
    }
  }
  EXPECT_FALSE(fs::exists(At("secret/new")));
  EXPECT_EQ(LocalDisk().Read(At("secret/s")).value(), "secret");
}

TEST_F(LimitedDiskTest, RefusesNulBytesInPaths) {
  const auto file = disk_->CreateLocked(At("data/new")).value();
  const std::string path = At(std::string("data/..\0x/secret/new", 20));
  for (Disk* disk : {disk_.get(), &LocalDisk()}) {
    for (const absl::Status& refused :
         {disk->CreateLocked(path).status(), disk->Create(path, Disk::Readers::kByUmask).status(),
          disk->Read(path).status(), disk->Remove(path), disk->RemoveUnlocked(path),
          disk->List(path).status(), disk->OpenFolder(path).status(), disk->MakeFolders(path),
          file->Rename(path)}) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    }
  }
  EXPECT_TRUE(file->CheckThere().ok());
  EXPECT_TRUE(fs::is_empty(At("secret/below")));
  EXPECT_FALSE(fs::exists(At("secret/new")));
}

TEST_F(LimitedDiskTest, ARenameReplacesALinkAndNotItsTarget) {
  Link(At("secret/s"), "data/link");
  const auto file = disk_->CreateLocked(At("data/new")).value();
  EXPECT_TRUE(file->Append("bytes").ok());
  EXPECT_TRUE(file->Rename(At("data/link")).ok());
  EXPECT_FALSE(fs::is_symlink(At("data/link")));
  EXPECT_EQ(LocalDisk().Read(At("secret/s")).value(), "secret");
}

}  // namespace
}  // namespace penstock
