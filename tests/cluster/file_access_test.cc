// SPDX-License-Identifier: Apache-2.0
// Which files datasets may read and write on a worker.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/cluster/cluster.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A cluster with one worker, and a folder with a file of two lines.
class FileAccessTest : public ::testing::Test {
 protected:
  FileAccessTest() : cluster_(0) {
    fs::create_directory(folder_.path() + "/data");
    fs::create_directory(folder_.path() + "/cache");
    std::ofstream(InData("lines")) << "1\n2\n";
  }

  std::string InData(const std::string& name) const { return folder_.path() + "/data/" + name; }
  std::string InCache(const std::string& name) const { return folder_.path() + "/cache/" + name; }

  // Starts a worker on all addresses.
  void StartReachable(std::vector<std::string> files_allow, std::string cache_dir = "") {
    WorkerConfig config;
    config.host = "0.0.0.0";
    config.worker_address = "localhost:%port%";
    config.files_allow = std::move(files_allow);
    config.cache_dir = std::move(cache_dir);
    cluster_.AddWorker(std::move(config));
  }

  // Returns how many elements a pass has, or its error.
  std::string Pass(const Dataset& dataset) {
    absl::StatusOr<Iterator> it =
        dataset.Distribute(cluster_.Options(ShardingPolicy::kOff)).MakeIterator();
    if (!it.ok()) return it.status().ToString();
    for (int count = 0;; ++count) {
      const absl::StatusOr<std::optional<Element>> element = it->Next();
      if (!element.ok()) return element.status().ToString();
      if (!element->has_value()) return std::to_string(count);
    }
  }

  TemporaryFolder folder_;
  Cluster cluster_;
};

Dataset ReadIn(const std::string& name) {
  return Dataset::FromTensorSlices<std::string>({name}).Map([](Expr x) { return ReadFile(x); });
}

TEST_F(FileAccessTest, AReachableWorkerReadsNothingUnlessItIsAllowed) {
  StartReachable({});
  for (const Dataset& dataset :
       {Dataset::TextLine("/etc/passwd"), Dataset::TextLine(InData("lines")), ReadIn("/etc/passwd"),
        Dataset::FromTensorSlices<std::string>({"/etc/passwd"}).Interleave(Dataset::TextLine)}) {
    EXPECT_THAT(Pass(dataset),
                AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr("is not allowed on this worker"),
                      HasSubstr("--files-allow (files_allow)")));
  }
  EXPECT_EQ(Pass(Dataset::Range(3)), "3");
}

TEST_F(FileAccessTest, AReachableWorkerReadsAllowedFolders) {
  StartReachable({folder_.path() + "/data"});
  EXPECT_EQ(Pass(Dataset::TextLine(InData("lines"))), "2");
  EXPECT_EQ(Pass(ReadIn(InData("lines"))), "1");
  EXPECT_EQ(Pass(Dataset::ListFiles(InData("*"))), "1");
  EXPECT_THAT(Pass(Dataset::TextLine("/etc/passwd")), HasSubstr("/etc/passwd is not allowed"));
  fs::create_symlink("/etc/passwd", InData("link"));
  EXPECT_THAT(Pass(Dataset::TextLine(InData("link"))),
              HasSubstr(InData("link") + " is not allowed"));
}

TEST_F(FileAccessTest, AWorkerOnLoopbackReadsWhatItsUserMay) {
  cluster_.AddWorker();
  EXPECT_EQ(Pass(Dataset::TextLine(InData("lines"))), "2");
  EXPECT_EQ(Pass(Dataset::TextLine(InData("lines")).Cache(InCache("c"))), "2");
  EXPECT_TRUE(fs::exists(InCache("c.partition-1")));
}

TEST_F(FileAccessTest, AListAppliesOnLoopbackToo) {
  WorkerConfig config;
  config.files_allow = {folder_.path() + "/data"};
  cluster_.AddWorker(std::move(config));
  EXPECT_EQ(Pass(Dataset::TextLine(InData("lines"))), "2");
  EXPECT_THAT(Pass(Dataset::TextLine("/etc/passwd")), HasSubstr("/etc/passwd is not allowed"));
}

TEST_F(FileAccessTest, AReachableWorkerWritesOnlyInTheCacheFolder) {
  StartReachable({folder_.path()}, folder_.path() + "/cache");
  const Dataset lines = Dataset::TextLine(InData("lines"));
  EXPECT_EQ(Pass(lines.Cache(InCache("c"))), "2");
  struct stat about;
  ASSERT_EQ(::stat(InCache("c.partition-1").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600);
  EXPECT_EQ(Pass(lines.Cache(InCache("c"))), "2");
  fs::create_symlink(folder_.path() + "/data", InCache("link"));
  int64_t count = 0;
  for (const std::string& name :
       {InData("c"), InCache("../data/c"), InCache("link/c"), InData("lines")}) {
    // Equal datasets share their registration, whatever their caches are called.
    EXPECT_THAT(
        Pass(Dataset::Range(++count).Cache(name)),
        AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr(name + ".partition-1 is not allowed"),
              HasSubstr("set --cache-dir (cache_dir)")));
  }
  EXPECT_FALSE(fs::exists(InData("c.partition-1")));
  EXPECT_EQ(Pass(Dataset::Range(9).Cache()), "9") << "a cache in memory needs no folder";
}

TEST_F(FileAccessTest, WithoutACacheFolderAReachableWorkerWritesNothing) {
  StartReachable({folder_.path()});
  EXPECT_THAT(Pass(Dataset::Range(3).Cache(InCache("c"))),
              HasSubstr("set --cache-dir (cache_dir)"));
  EXPECT_TRUE(fs::is_empty(folder_.path() + "/cache"));
}

TEST_F(FileAccessTest, AWorkerConnectsToNoServiceThatADefinitionNames) {
  cluster_.AddWorker();
  const DistributeOptions options = cluster_.Options(ShardingPolicy::kOff);
  const absl::StatusOr<std::string> id =
      RegisterDataset(cluster_.service(), Dataset::Range(3).Distribute(options));
  ASSERT_TRUE(id.ok()) << id.status();
  const absl::StatusOr<Dataset> registered = FromDatasetId(*id, options, Scalar(kInt64));
  ASSERT_TRUE(registered.ok()) << registered.status();
  const absl::Status refused = FirstError(*registered);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("workers do not read from a service"));
}

TEST_F(FileAccessTest, AnEntryThatIsNoPlaceIsRefusedAtTheStart) {
  WorkerConfig config;
  config.dispatcher_address = cluster_.service();
  config.files_allow = {"ftp://host/"};
  const absl::Status refused = WorkerServer::Start(config).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("ftp://host/"));
}

}  // namespace
}  // namespace penstock
