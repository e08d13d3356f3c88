// SPDX-License-Identifier: Apache-2.0
// Searches everything that a cluster writes, shows and says for its secrets.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "control/dispatcher/server/job_key.h"
#include "control/journal/changes_proto.h"
#include "control/journal/journal.h"
#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/strangers.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr char kPageToken[] = "token-of-the-pages";
constexpr char kFileToken[] = "token-of-this-process";

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the output of a subcommand of `penstock`, with its errors.
std::string OutputOf(const std::string& arguments) {
  std::FILE* const output =
      popen(absl::StrCat(PENSTOCK_COMMAND, " ", arguments, " 2>&1").c_str(), "r");
  std::string text;
  char piece[4096];
  for (size_t got; (got = fread(piece, 1, sizeof piece, output)) > 0;) text.append(piece, got);
  EXPECT_EQ(pclose(output), 0) << arguments << ": " << text;
  return text;
}

// Returns the only job in a journal.
control::JobRecord JobIn(const std::string& work_dir) {
  auto journal = control::OpenSqliteJournal(work_dir);
  EXPECT_TRUE(journal.ok()) << journal.status();
  const control::Recovered recovered = (*journal)->TakeRecovered();
  control::State state;
  if (!recovered.snapshot.empty()) state = *control::DecodeState(recovered.snapshot);
  for (const auto& record : recovered.records) {
    EXPECT_TRUE(control::ApplyRecord(record.bytes, state).ok());
  }
  EXPECT_EQ(state.jobs.size(), 1u);
  return state.jobs.begin()->second;
}

// Returns the token that the dispatcher gives a client of its only job.
std::string TokenOfJobAt(const std::string& address) {
  const auto stub = control::DispatcherStub::Make(address).value();
  const control::JobStatus job = stub->GetStatus({}).value().jobs.at(0);
  const absl::StatusOr<control::JobAnswer> answer =
      stub->GetOrCreateJob({.request = {Incarnation(1), 1},
                            .name = job.name,
                            .run_id = job.run_id,
                            .dataset_id = job.dataset_id,
                            .terms = job.terms},
                           {});
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? answer->token : "";
}

class Secrets : public testing::Test {
 protected:
  Secrets() {
    std::ofstream(Path("token")) << kFileToken;
    setenv("PENSTOCK_TOKEN_FILE", Path("token").c_str(), 1);
  }
  ~Secrets() override { unsetenv("PENSTOCK_TOKEN_FILE"); }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  DispatcherConfig Config() const {
    return {.work_dir = Path("journal"),
            .fault_tolerant_mode = true,
            .metrics_port = 0,
            .metrics_token = kPageToken};
  }
  WorkerConfig OfWorker() const {
    WorkerConfig config;
    config.metrics_port = 0;
    config.metrics_token = kPageToken;
    config.tls.token_file = Path("token");
    return config;
  }
  void ShowPages(int port) {
    for (const char* page : {"/", "/metrics"}) {
      const std::string request = absl::StrCat("GET ", page, " HTTP/1.1\r\nAuthorization: Bearer ");
      const std::string at = absl::StrCat("localhost:", port);
      shown_[absl::StrCat("page ", page, " of ", port)] =
          Say(at, absl::StrCat(request, kPageToken, "\r\n\r\n"));
      shown_[absl::StrCat("refusal ", page, " of ", port)] =
          Say(at, absl::StrCat(request, "wrong\r\n\r\n"));
    }
  }
  void ShowCommands(const std::string& address) {
    for (const char* command : {"status", "jobs list", "links", "links --json", "datasets list",
                                "trace", "trace --json"}) {
      shown_[command] = OutputOf(absl::StrCat(command, " --dispatcher-address ", address));
    }
  }
  // Reads a part, shows a state, and reads the rest. The cache is complete afterwards.
  void Read(Cluster& cluster) {
    DistributeOptions options = cluster.Options(ShardingPolicy::kOff, "job");
    options.ack_mode = AckMode::kOnCommit;
    Iterator it = IteratorOf(Dataset::Range(1000).Cache(Path("cache")).Distribute(options));
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(it.Next().ok());
    const absl::StatusOr<State> state = it.Save();
    ASSERT_TRUE(state.ok()) << state.status();
    shown_["state"] = state->bytes;
    ShowCommands(absl::StrCat("localhost:", cluster.dispatcher().port()));
    while (it.Next()->has_value()) {
    }
  }
  // Returns the files of the cache. Each partition has its own.
  std::vector<fs::path> CacheFiles() const {
    std::vector<fs::path> files;
    for (const fs::directory_entry& file : fs::directory_iterator(folder_.path())) {
      if (file.path().filename().string().starts_with("cache")) files.push_back(file.path());
    }
    return files;
  }
  void ExpectNowhere(const std::string& secret) const {
    ASSERT_GE(secret.size(), 16u);
    for (const auto& [what, text] : shown_) {
      EXPECT_EQ(text.find(secret), std::string::npos) << secret << " is in " << what;
    }
  }

  const TemporaryFolder folder_;
  std::map<std::string, std::string> shown_;  // by the place that shows it
};

TEST_F(Secrets, AreNowhereInFilesOutputsAndEvents) {
  testing::internal::CaptureStderr();
  std::string job;
  {
    Cluster cluster(0, Config());
    cluster.AddWorker(OfWorker());
    Read(cluster);
    ShowPages(cluster.dispatcher().metrics_port());
    ShowPages(cluster.worker(0).metrics_port());
    job = TokenOfJobAt(cluster.service());
    cluster.RestartDispatcher();
    EXPECT_EQ(TokenOfJobAt(cluster.service()), job);
  }
  shown_["events"] = testing::internal::GetCapturedStderr();
  EXPECT_THAT(shown_["events"], testing::HasSubstr("job_created"));
  for (const char* command : {"print", "verify"}) {
    shown_[command] = OutputOf(absl::StrCat("journal ", command, " ", Path("journal")));
  }
  EXPECT_THAT(shown_["print"], testing::HasSubstr("job_created"));
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(folder_.path())) {
    if (file.is_regular_file() && file.path() != Path("token") &&
        file.path() != Path("journal/key")) {
      shown_[file.path()] = ContentOf(file.path());
    }
  }
  ASSERT_FALSE(CacheFiles().empty());
  ASSERT_TRUE(shown_.contains(Path("journal/journal.db")));
  ExpectNowhere(kPageToken);
  ExpectNowhere(kFileToken);
  ExpectNowhere(job);
  // The hexadecimal digits, without the newline.
  ExpectNowhere(ContentOf(Path("journal/key")).substr(0, 64));
  const control::JobRecord record = JobIn(Path("journal"));
  EXPECT_EQ(control::OpenJobKey(Config(), 0)->Of(record), job);
  EXPECT_THAT(shown_["print"], testing::HasSubstr(record.nonce)) << "the nonce is not secret";
}

TEST_F(Secrets, ALostKeyCostsTheJobsThatNeedItAndNothingElse) {
  Cluster cluster(1, Config());
  const std::string journal = Path("journal");
  const Dataset dataset = Dataset::Range(1000);
  Iterator reader = IteratorOf(dataset.Distribute(cluster.Options(ShardingPolicy::kOff, "first")));
  ASSERT_TRUE(reader.Next().ok());
  cluster.dispatcher().Stop();
  ASSERT_TRUE(fs::remove(journal + "/key"));
  const absl::Status refused = DispatchServer::Start(Config()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  const std::string repair = absl::StrCat("journal repair --forget-key ", journal);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("penstock " + repair));

  EXPECT_THAT(OutputOf(repair), testing::HasSubstr("cancelled: job first"));
  EXPECT_THAT(OutputOf(repair), testing::HasSubstr("no job needs the key"));
  cluster.RestartDispatcher();
  absl::Status end;
  while (end.ok()) end = reader.Next().status();
  EXPECT_THAT(std::string(end.message()), testing::HasSubstr("without the key of the journal"));
  EXPECT_EQ(ReadAll(dataset.Distribute(cluster.Options(ShardingPolicy::kOff, "second"))).size(),
            1000u);
}

TEST_F(Secrets, FilesAreMadeForTheirOwnerOnly) {
  const mode_t mask = umask(0);
  {
    Cluster cluster(0, Config());
    cluster.AddWorker(OfWorker());
    EXPECT_EQ(ReadAll(Dataset::Range(10)
                          .Cache(Path("cache"))
                          .Distribute(cluster.Options(ShardingPolicy::kOff)))
                  .size(),
              10u);
    EXPECT_EQ(fs::status(Path("journal")).permissions(), fs::perms::owner_all);
    int files = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(Path("journal"))) {
      ++files;
      EXPECT_EQ(file.status().permissions(), fs::perms::owner_read | fs::perms::owner_write)
          << file;
    }
    EXPECT_GE(files, 3);
    EXPECT_FALSE(CacheFiles().empty());
    for (const fs::path& file : CacheFiles()) {
      EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write)
          << file;
    }
  }
  umask(mask);
}

}  // namespace
}  // namespace penstock
