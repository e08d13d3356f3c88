// SPDX-License-Identifier: Apache-2.0
// Whole epochs from servers that are killed with kill −9 and started again over and over, and that
// fail one request in twenty: every record comes once, in order.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "control/env/scheme_files.h"
#include "control/observe/metrics.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/sources.h"
#include "tests/cluster/cluster.h"
#include "tests/remote/server_process.h"

namespace penstock {
namespace {

constexpr int kFiles = 8;
constexpr int kRecords = 600;  // in each file
constexpr int kKills = 3;
constexpr int kFailuresOfAnOutage = 5;

// Returns the number of its file, its number in the file, and a filling of varying length.
std::string RecordOf(int file, int record) {
  return absl::StrCat(file, " ", record, " ", std::string((record * 37) % 8'000, 'x'));
}

// The files, certificates, logs and configurations of all tests, in one folder.
class World : public ::testing::Environment {
 public:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "penstock_remote_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(folder_ + "/data/shards");
    for (int file = 0; file < kFiles; ++file) WriteFile(file);
    std::ofstream(folder_ + "/data/shards/notes.txt") << "none of them";
    RunCommand({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                "/CN=penstock test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                folder_ + "/key.pem", "-out", ca_file()});
    s3_port_ = FreePort();
    const absl::Status configured =
        ConfigureFiles({.s3_endpoint = absl::StrCat("http://127.0.0.1:", s3_port_),
                        .s3_region = "eu-west-1",
                        .ca_file = ca_file(),
                        .range_bytes = 64 << 10,
                        .ranges_ahead = 3,
                        .read_ahead_bytes = 1 << 20});
    ASSERT_TRUE(configured.ok()) << configured;
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "a/secret+key", 1);
    setenv("AWS_SESSION_TOKEN", "a session", 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string NameOf(int file) { return absl::StrCat("day=", file, " +.tfrecord"); }
  const std::string& folder() const { return folder_; }
  std::string ca_file() const { return folder_ + "/cert.pem"; }
  int s3_port() const { return s3_port_; }

 private:
  void WriteFile(int file) const {
    auto writer = TFRecordWriter::Create(folder_ + "/data/shards/" + NameOf(file)).value();
    for (int record = 0; record < kRecords; ++record)
      ASSERT_TRUE(writer->Write(RecordOf(file, record)).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }

  std::string folder_;
  int s3_port_ = 0;
};
World& TheWorld() {
  static World* const world = static_cast<World*>(::testing::AddGlobalTestEnvironment(new World));
  return *world;
}
[[maybe_unused]] const World& kMadeBeforeMain = TheWorld();

int64_t Retries(const std::string& scheme) {
  return ProcessMetrics()
      .GetCounter("penstock_file_retries_total", "", {{"scheme", scheme}})
      .value();
}

// Kills a server while an epoch is read, and starts it again when its clients have noticed.
class Killer {
 public:
  Killer(ServerProcess& server, std::string scheme)
      : server_(server), scheme_(std::move(scheme)), thread_([this] { Run(); }) {}
  ~Killer() {
    over_ = true;
    thread_.join();
  }
  // Called for each record.
  void Read() { ++read_; }
  int outages() const { return outages_; }

 private:
  void Run() {
    for (int kill = 1; kill <= kKills; ++kill) {
      if (!Becomes([&] { return read_ >= kill * kFiles * kRecords / (2 * (kKills + 1)); })) return;
      const int64_t before = Retries(scheme_);
      server_.Kill();
      const bool noticed =
          Becomes([&] { return Retries(scheme_) >= before + kFailuresOfAnOutage; });
      server_.Start();
      if (!noticed) return;
      ++outages_;
    }
    Becomes([] { return false; });  // the server ends with this thread
  }
  // Waits for the condition; returns false if the epoch is over first.
  bool Becomes(const std::function<bool()>& condition) {
    while (!condition()) {
      if (over_) return false;
      poll(nullptr, 0, kBetweenLooksMs);
    }
    return true;
  }

  ServerProcess& server_;
  const std::string scheme_;
  std::atomic<int> read_ = 0;
  std::atomic<int> outages_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Checks the records of an epoch as they come.
class Count {
 public:
  // Expects that each record is whole, comes once, and comes after the earlier ones in its file.
  void Take(std::string_view record) {
    const std::vector<std::string> parts =
        absl::StrSplit(std::string(record), absl::MaxSplits(' ', 2));
    int file, number;
    ASSERT_EQ(parts.size(), 3u);
    ASSERT_TRUE(absl::SimpleAtoi(parts[0], &file) && absl::SimpleAtoi(parts[1], &number));
    ASSERT_EQ(record, RecordOf(file, number));
    ASSERT_EQ(number, next_[file]++) << "of file " << file;
    in_order_ = in_order_ && file >= last_file_;
    last_file_ = file;
    ++total_;
  }
  int total() const { return total_; }
  bool files_in_order() const { return in_order_; }

 private:
  std::vector<int> next_ = std::vector<int>(kFiles, 0);
  int last_file_ = 0;
  int total_ = 0;
  bool in_order_ = true;
};

void ReadEpoch(Iterator& it, Count& count, Killer& killer, int most = kFiles * kRecords + 1) {
  for (int i = 0; i < most; ++i) {
    const absl::StatusOr<std::optional<Element>> element = it.Next();
    ASSERT_TRUE(element.ok()) << element.status();
    if (!element->has_value()) return;
    ASSERT_NO_FATAL_FAILURE(count.Take((*element)->tensor(0).string()));
    killer.Read();
  }
}

void ReadInProcess(const Dataset& dataset, ServerProcess& server, const std::string& scheme) {
  Count count;
  Killer killer(server, scheme);
  absl::StatusOr<Iterator> it = dataset.MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  // Saved in the middle and restored by another iterator.
  ASSERT_NO_FATAL_FAILURE(ReadEpoch(*it, count, killer, 1'000));
  const State state = it->Save().value();
  absl::StatusOr<Iterator> other = dataset.MakeIterator();
  ASSERT_TRUE(other.ok() && other->Restore(state).ok());
  ASSERT_NO_FATAL_FAILURE(ReadEpoch(*other, count, killer));
  EXPECT_EQ(count.total(), kFiles * kRecords);
  EXPECT_TRUE(count.files_in_order());
  EXPECT_EQ(killer.outages(), kKills);
}

void ReadThroughTwoWorkers(const Dataset& dataset, ServerProcess& server,
                           const std::string& scheme) {
  Cluster cluster(2);
  Count count;
  Killer killer(server, scheme);
  absl::StatusOr<Iterator> it =
      dataset.Distribute(cluster.Options(ShardingPolicy::kDynamic)).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  ASSERT_NO_FATAL_FAILURE(ReadEpoch(*it, count, killer));
  EXPECT_EQ(count.total(), kFiles * kRecords);
  EXPECT_EQ(killer.outages(), kKills);
}

// --- nginx ---------------------------------------------------------------------------

class Nginx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(NGINX)) GTEST_SKIP() << "there is no " NGINX ": ./run deps";
    const std::string& folder = TheWorld().folder();
    const int port = FreePort();
    tls_port_ = FreePort();
    const std::string config = folder + "/nginx.conf";
    std::string temporary;
    for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
      absl::StrAppend(&temporary, kind, "_temp_path ", folder, "/", kind, ";\n");
    std::ofstream(config) << absl::StrCat(
        "daemon off; master_process off; pid ", folder, "/nginx.pid; error_log stderr crit;\n",
        "events { worker_connections 512; }\n", "http {\naccess_log off; root ", folder, "/data;\n",
        temporary, "split_clients $request_id $fault { 2.5% busy; 2.5% gone; * none; }\n",
        "server {\n", "listen 127.0.0.1:", port, "; listen 127.0.0.1:", tls_port_, " ssl;\n",
        "ssl_certificate ", TheWorld().ca_file(), "; ssl_certificate_key ", folder, "/key.pem;\n",
        "if ($fault = busy) { return 503; }\n", "if ($fault = gone) { return 444; }\n", "}\n}\n");
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{NGINX, "-e", "stderr", "-p", folder, "-c", config}, port,
        folder + "/nginx.log");
  }

  Dataset Records(const std::string& scheme) const {
    std::vector<std::string> names;
    for (int file = 0; file < kFiles; ++file) {
      names.push_back(absl::StrCat(scheme,
                                   "://127.0.0.1:", scheme == "https" ? tls_port_ : server_->port(),
                                   "/shards/day=", file, "%20+.tfrecord"));
    }
    return Dataset::TFRecord(std::move(names));
  }

  std::unique_ptr<ServerProcess> server_;
  int tls_port_ = 0;
};

TEST_F(Nginx, AnEpochInProcessIsExact) {
  ReadInProcess(Records("http"), *server_, "http");
}

TEST_F(Nginx, AnEpochThroughTwoWorkersIsExact) {
  ReadThroughTwoWorkers(Records("http"), *server_, "http");
}

TEST_F(Nginx, AnEpochUnderACertificateOfOnesOwnIsExact) {
  ReadInProcess(Records("https"), *server_, "http");
}

TEST_F(Nginx, ACertificateThatNobodyVouchesForIsRefusedAtOnce) {
  const auto files = MakeSchemeFiles({}, ProcessEnvironment()).value();
  const absl::Status refused =
      files->Open(absl::StrCat("https://127.0.0.1:", tls_port_, "/shards/notes.txt")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("ca_file of [files]"));
}

TEST_F(Nginx, AFileThatChangesWhileItIsReadIsAnError) {
  const std::string path = TheWorld().folder() + "/data/changing";
  std::ofstream(path) << std::string(1 << 20, 'a');
  const std::string name = absl::StrCat("http://127.0.0.1:", server_->port(), "/changing");
  const auto file = DefaultFiles().Open(name);
  ASSERT_TRUE(file.ok()) << file.status();
  std::ofstream(path) << std::string((1 << 20) + 1, 'b');
  char byte;
  const absl::Status changed = (*file)->ReadAt(1 << 19, {&byte, 1}).status();
  EXPECT_EQ(changed.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(changed.message()), testing::HasSubstr(name + " changed"));
}

// --- S3 --------------------------------------------------------------------------------

class S3 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(MOTO_PYTHON))
      GTEST_SKIP() << "moto is not installed: ./run deps s3";
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{MOTO_PYTHON, S3_SERVER, TheWorld().folder() + "/data", "bucket",
                                 absl::StrCat(TheWorld().s3_port())},
        TheWorld().s3_port(), TheWorld().folder() + "/s3.log");
  }
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(S3, ListsAndReadsAsTheTreeIs) {
  EXPECT_THAT(DefaultFiles().Glob("s3://bucket/shards/*.txt").value(),
              testing::ElementsAre("s3://bucket/shards/notes.txt"));
  EXPECT_EQ(DefaultFiles().Glob("s3://bucket/*/day=[0-9]*").value().size(), 8u);
  EXPECT_EQ(DefaultFiles().Open("s3://bucket/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(S3, AnEpochInProcessIsExact) {
  std::vector<std::string> names;
  for (int file = 0; file < kFiles; ++file)
    names.push_back("s3://bucket/shards/" + World::NameOf(file));
  ReadInProcess(Dataset::TFRecord(std::move(names)), *server_, "s3");
}

TEST_F(S3, AnEpochThroughTwoWorkersIsExact) {
  ReadThroughTwoWorkers(Dataset::ListFiles({"s3://bucket/shards/*.tfrecord"})
                            .Interleave(Dataset::TFRecord, {.cycle_length = 2}),
                        *server_, "s3");
}

}  // namespace
}  // namespace penstock
