// SPDX-License-Identifier: Apache-2.0
#include "control/settings/settings.h"

#include <filesystem>
#include <fstream>

#include "control/settings/namespace_settings.h"
#include "control/settings/tls_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// A config struct with a field of each type.
struct Config {
  std::string protocol = "auto";
  std::vector<std::string> fallback;
  int port = 5050;
  int64_t bytes = 1;
  bool journal = false;
  absl::Duration patience = absl::Seconds(1);
};

std::vector<Setting> SettingsOf(Config& config) {
  return {{"data-transfer-protocol", &config.protocol, ""},
          {"fallback", &config.fallback, ""},
          {"port", &config.port, ""},
          {"budget-bytes", &config.bytes, "", "budget"},
          {"journal", &config.journal, ""},
          {"patience-ms", &config.patience, ""}};
}

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".toml");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void WriteFile(const std::string& text) { std::ofstream(path_) << text; }
  absl::StatusOr<Sources> SettleIt(const std::set<std::string>& given = {}, std::string path = "") {
    return Settle("worker", SettingsOf(config_), given, std::move(path),
                  [this](const std::string& variable) -> std::optional<std::string> {
                    auto value = environment_.find(variable);
                    if (value == environment_.end()) return std::nullopt;
                    return value->second;
                  });
  }
  // Returns the error for a file of that text.
  std::string Complaint(const std::string& text) {
    WriteFile(text);
    const absl::Status status = SettleIt({}, path_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }
  std::string Place(int line) const { return path_.string() + ":" + std::to_string(line); }

  std::filesystem::path path_;
  std::map<std::string, std::string> environment_;
  Config config_;
};

TEST_F(SettingsTest, UnsetValuesKeepTheirDefaultAndHaveNoSource) {
  auto sources = SettleIt();
  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_THAT(*sources, IsEmpty());
  EXPECT_EQ(config_.port, 5050);
}

TEST_F(SettingsTest, EveryTypeComesFromTheEnvironment) {
  environment_ = {{"PENSTOCK_DATA_TRANSFER_PROTOCOL", "tcp"},
                  {"PENSTOCK_FALLBACK", "shm, grpc"},
                  {"PENSTOCK_WORKER_PORT", "7"},
                  {"PENSTOCK_WORKER_BUDGET_BYTES", "9000000000"},
                  {"PENSTOCK_WORKER_JOURNAL", "true"},
                  {"PENSTOCK_WORKER_PATIENCE_MS", "1500"}};
  auto sources = SettleIt();
  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_EQ(config_.protocol, "tcp");
  EXPECT_THAT(config_.fallback, ElementsAre("shm", "grpc"));
  EXPECT_EQ(config_.port, 7);
  EXPECT_EQ(config_.bytes, 9000000000);
  EXPECT_TRUE(config_.journal);
  EXPECT_EQ(config_.patience, absl::Milliseconds(1500));
  EXPECT_EQ((*sources)["port"], "PENSTOCK_WORKER_PORT");
}

TEST_F(SettingsTest, EveryTypeComesFromTheFileAndSaysWhere) {
  WriteFile(
      "# of all programs\n"
      "[worker]\n"
      "data_transfer_protocol = 'tcp'\n"
      "fallback = ['shm', 'grpc']\n"
      "port = 7\n"
      "budget_bytes = 9_000_000_000\n"
      "journal = true\n"
      "patience_ms = 1500\n"
      "[client]\n"
      "whatever = 1  # is the clients' affair\n");
  environment_ = {{"PENSTOCK_CONFIG", path_}};
  auto sources = SettleIt();
  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_EQ(config_.protocol, "tcp");
  EXPECT_THAT(config_.fallback, ElementsAre("shm", "grpc"));
  EXPECT_EQ(config_.port, 7);
  EXPECT_EQ(config_.bytes, 9000000000);
  EXPECT_TRUE(config_.journal);
  EXPECT_EQ(config_.patience, absl::Milliseconds(1500));
  EXPECT_EQ((*sources)["data-transfer-protocol"], Place(3));
}

TEST_F(SettingsTest, TheProgramCountsBeforeTheEnvironmentBeforeTheFile) {
  WriteFile("[worker]\nport = 1\nbudget_bytes = 1000\npatience_ms = 1000\n");
  environment_ = {{"PENSTOCK_WORKER_PORT", "2"}, {"PENSTOCK_WORKER_BUDGET_BYTES", "2000"}};
  config_.port = 3;
  auto sources = SettleIt({"port"}, path_);
  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_EQ(config_.port, 3);
  EXPECT_EQ(config_.bytes, 2000);
  EXPECT_EQ(config_.patience, absl::Seconds(1));
  EXPECT_THAT(*sources, ElementsAre(Pair("budget-bytes", "PENSTOCK_WORKER_BUDGET_BYTES"),
                                    Pair("patience-ms", Place(4))));
}

TEST_F(SettingsTest, TheNameInTheReleaseBeforeIsAcceptedToo) {
  WriteFile("[worker]\nbudget = 7\n");
  ASSERT_TRUE(SettleIt({}, path_).ok());
  EXPECT_EQ(config_.bytes, 7);
  environment_ = {{"PENSTOCK_WORKER_BUDGET", "8"}};
  auto sources = SettleIt({}, path_);
  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_EQ(config_.bytes, 8);
  EXPECT_THAT(*sources, ElementsAre(Pair("budget-bytes", "PENSTOCK_WORKER_BUDGET")));
  environment_["PENSTOCK_WORKER_BUDGET_BYTES"] = "9";
  ASSERT_TRUE(SettleIt({}, path_).ok());
  EXPECT_EQ(config_.bytes, 9);
}

TEST_F(SettingsTest, AFileThatIsNamedCountsBeforeThatOfTheEnvironment) {
  WriteFile("[worker]\nport = 1\n");
  environment_ = {{"PENSTOCK_CONFIG", "/no/such/file"}};
  EXPECT_TRUE(SettleIt({}, path_).ok());
  EXPECT_EQ(config_.port, 1);
  const absl::Status missing = SettleIt().status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/no/such/file: No such file"));
  EXPECT_EQ(SettleIt({}, testing::TempDir()).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SettingsTest, AnUnknownKeyNamesItsPlaceAndTheKnownOnes) {
  EXPECT_EQ(Complaint("[worker]\nport = 1\nprot = 2\n"),
            Place(3) +
                ": [worker] has no key 'prot'; it has data_transfer_protocol, fallback, port, "
                "budget_bytes, journal, patience_ms");
  EXPECT_EQ(Complaint("\n[wroker]\n"), Place(2) +
                                           ": unknown section [wroker]; use one of [dispatcher], "
                                           "[worker], [client], [files], [namespaces]");
  EXPECT_THAT(Complaint("port = 1\n"), HasSubstr(Place(1) + ": 'port' is not in a section"));
}

TEST_F(SettingsTest, ANamespaceHasTheLimitsOfItsTable) {
  WriteFile(
      "[namespaces.vision]\nmax_jobs = 7\nmax_clients = 0\n"
      "[namespaces.'a.b']\nmax_dataset_bytes = 8\nmax_partitions = 9\n");
  DispatcherConfig config{.namespace_limits = {.jobs = 1, .clients = 2}};
  const Environment none = [](const std::string&) { return std::nullopt; };
  ASSERT_TRUE(SettleNamespaces(config, path_, none).ok());
  ASSERT_EQ(config.namespaces.size(), 2u);
  const NamespaceLimits& vision = config.namespaces.at("vision");
  EXPECT_EQ(vision.jobs, 7);
  EXPECT_EQ(vision.clients, 0);
  EXPECT_EQ(vision.partitions, 0);
  const NamespaceLimits& other = config.namespaces.at("a.b");
  EXPECT_EQ(other.jobs, 1);  // of each namespace
  EXPECT_EQ(other.dataset_bytes, 8);
  EXPECT_EQ(other.partitions, 9);
  EXPECT_TRUE(SettleNamespaces(config, "", none).ok());  // there may be no file
}

TEST_F(SettingsTest, AWrongTableOfANamespaceNamesItsPlace) {
  const auto complaint = [&](const std::string& text) {
    WriteFile(text);
    DispatcherConfig config;
    const absl::Status status =
        SettleNamespaces(config, path_, [](const std::string&) { return std::nullopt; });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(complaint("[namespaces.v]\njobs = 1\n"),
            Place(2) +
                ": [namespaces.v] has no key 'jobs'; it has max_jobs, max_dataset_bytes, "
                "max_partitions, max_clients, max_worker_percent");
  EXPECT_EQ(complaint("[namespaces]\nmax_jobs = 1\n"),
            Place(2) + ": max_jobs is 1, but must be a table [namespaces.max_jobs]");
  EXPECT_EQ(complaint("[namespaces.v]\nmax_jobs = 'x'\n"),
            Place(2) + ": max_jobs is a string, but must be a whole number");
}

TEST_F(SettingsTest, AWrongTypeNamesItsPlaceAndTheRightOne) {
  EXPECT_EQ(Complaint("[worker]\nport = 'many'\n"),
            Place(2) + ": port is a string, but must be a whole number");
  EXPECT_THAT(Complaint("[worker]\nport = 1.5\n"), HasSubstr("a number with a fraction"));
  EXPECT_THAT(Complaint("[worker]\nport = 3000000000\n"), HasSubstr("port is 3000000000"));
  EXPECT_THAT(Complaint("[worker]\npatience_ms = -1\n"), HasSubstr("milliseconds, 0 or more"));
  EXPECT_THAT(Complaint("[worker]\nfallback = 'tcp'\n"),
              HasSubstr("fallback is a string, but must be an array of strings"));
  EXPECT_THAT(Complaint("[worker]\nfallback = ['tcp', 1]\n"),
              HasSubstr("an array of values other than"));
  EXPECT_THAT(Complaint("[worker]\njournal = 1\n"), HasSubstr("journal is 1, but must be true"));
  environment_ = {{"PENSTOCK_WORKER_PORT", "many"}};
  EXPECT_EQ(Complaint(""), "PENSTOCK_WORKER_PORT is 'many', but must be a whole number");
}

// Otherwise `--tls-certificate "$CERTIFICATE"` would serve in plain text if the variable is not
// set.
TEST_F(SettingsTest, TlsSettingsMayNotBeEmpty) {
  TlsConfig tls;
  std::vector<Setting> settings = TlsSettingsOf(tls);
  settings.push_back(TokenSettingOf(tls));
  const auto settle = [&](const Environment& environment, const std::set<std::string>& given,
                          const std::string& path) {
    tls = {};
    return std::string(Settle("worker", settings, given, path, environment).status().message());
  };
  const Environment none = [](const std::string&) { return std::nullopt; };
  for (const Setting& setting : settings) {
    const std::string key = KeyOf(setting.name);
    const std::string variable = VariableOf("worker", setting.name);
    const Environment empty = [&](const std::string& name) -> std::optional<std::string> {
      if (name == variable) return "";
      return std::nullopt;
    };
    EXPECT_EQ(settle(empty, {}, ""), variable + " is empty; give it a value, or unset it");
    EXPECT_EQ(settle(none, {setting.name}, ""), std::string("--") + setting.name +
                                                    " is empty; give " + key +
                                                    " a value, or leave it out altogether");
    WriteFile("[worker]\n" + key + " = \"\"\n");
    EXPECT_THAT(settle(none, {}, path_), HasSubstr(Place(2) + ": " + key + " is empty"));
    EXPECT_EQ(settle(none, {}, ""), "");
  }
}

TEST_F(SettingsTest, AnEmptyVariableOfAnotherSettingCountsAsUnset) {
  environment_ = {{"PENSTOCK_DATA_TRANSFER_PROTOCOL", ""}, {"PENSTOCK_WORKER_PORT", ""}};
  ASSERT_TRUE(SettleIt().ok());
  EXPECT_EQ(config_.protocol, "auto");
  EXPECT_EQ(config_.port, 5050);
}

TEST_F(SettingsTest, AClientRefusesTheTlsSettingOfServers) {
  EXPECT_TRUE(RefuseServerTls([](const std::string&) { return std::nullopt; }).ok());
  const absl::Status refused = RefuseServerTls([](const std::string& variable) {
    return variable == "PENSTOCK_TLS_MUTUAL" ? std::optional<std::string>("true") : std::nullopt;
  });
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("PENSTOCK_TLS_MUTUAL is set"));
}

TEST_F(SettingsTest, AVariableNamesItsProgramOnce) {
  EXPECT_EQ(VariableOf("worker", "port"), "PENSTOCK_WORKER_PORT");
  EXPECT_EQ(VariableOf("worker", "worker-tags"), "PENSTOCK_WORKER_TAGS");
  EXPECT_EQ(VariableOf("dispatcher", "worker-timeout-ms"), "PENSTOCK_DISPATCHER_WORKER_TIMEOUT_MS");
  EXPECT_EQ(VariableOf("client", "fallback"), "PENSTOCK_FALLBACK");
  EXPECT_EQ(VariableOf("jobs_list", "dispatcher-address"), "PENSTOCK_DISPATCHER_ADDRESS");
}

TEST_F(SettingsTest, InvalidTomlNamesItsLine) {
  EXPECT_THAT(Complaint("[worker]\nport = \n"), HasSubstr(Place(2) + ": "));
  EXPECT_THAT(Complaint("[worker]\nport = 1\nport = 2\n"), HasSubstr(Place(3) + ": "));
}

}  // namespace
}  // namespace penstock
