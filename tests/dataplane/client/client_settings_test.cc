// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/client_settings.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClientSettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".toml");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void WriteFile(const std::string& text) {
    std::ofstream(path_) << text;
    environment_["PENSTOCK_CONFIG"] = path_;
  }
  absl::StatusOr<ClientSettings> Read() {
    return ReadClientSettings([this](const std::string& variable) -> std::optional<std::string> {
      auto value = environment_.find(variable);
      if (value == environment_.end()) return std::nullopt;
      return value->second;
    });
  }
  absl::StatusOr<transfer::TransportPreference> GetPreference(
      const DistributeOptions& options = {}) {
    absl::StatusOr<ClientSettings> settings = Read();
    if (!settings.ok()) return settings.status();
    return MakeTransportPreference(options, *settings);
  }

  std::filesystem::path path_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ClientSettingsTest, WithoutAChoiceTheWorkersPreferenceCounts) {
  auto preference = GetPreference();
  ASSERT_TRUE(preference.ok()) << preference.status();
  EXPECT_EQ(preference->protocol, "");
  EXPECT_THAT(preference->fallback, IsEmpty());
}

TEST_F(ClientSettingsTest, TheProgramCountsBeforeTheEnvironmentBeforeTheFile) {
  WriteFile("[client]\ndata_transfer_protocol = 'shm'\nfallback = ['grpc']\n");
  auto preference = GetPreference();
  ASSERT_TRUE(preference.ok()) << preference.status();
  EXPECT_EQ(preference->protocol, "shm");
  EXPECT_EQ(preference->source, path_.string() + ":2");
  EXPECT_THAT(preference->fallback, ElementsAre("grpc"));

  environment_["PENSTOCK_DATA_TRANSFER_PROTOCOL"] = "ucx";
  environment_["PENSTOCK_FALLBACK"] = "tcp,shm";
  preference = GetPreference();
  ASSERT_TRUE(preference.ok()) << preference.status();
  EXPECT_EQ(preference->protocol, "ucx");
  EXPECT_EQ(preference->source, "PENSTOCK_DATA_TRANSFER_PROTOCOL");
  EXPECT_THAT(preference->fallback, ElementsAre("tcp", "shm"));

  preference = GetPreference({.data_transfer_protocol = "local", .fallback = {"tcp"}});
  ASSERT_TRUE(preference.ok()) << preference.status();
  EXPECT_EQ(preference->protocol, "local");
  EXPECT_EQ(preference->source, "DistributeOptions");
  EXPECT_THAT(preference->fallback, ElementsAre("tcp"));
}

TEST_F(ClientSettingsTest, AProgramThatSaysAutoMeansIt) {
  environment_["PENSTOCK_DATA_TRANSFER_PROTOCOL"] = "tcp";
  auto preference = GetPreference({.data_transfer_protocol = "auto"});
  ASSERT_TRUE(preference.ok()) << preference.status();
  EXPECT_EQ(preference->protocol, "auto");
}

TEST_F(ClientSettingsTest, NamesLibrariesToLoad) {
  environment_["PENSTOCK_TRANSPORTS"] = "/opt/a.so,/opt/b.so";
  absl::StatusOr<ClientSettings> settings = Read();
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->transports, ElementsAre("/opt/a.so", "/opt/b.so"));
}

TEST_F(ClientSettingsTest, AMistakeInTheFileIsNamed) {
  WriteFile("[client]\nprotocol = 'shm'\n");
  const absl::Status status = GetPreference().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(":2: [client] has no key 'protocol'; it has data_transfer_protocol, "
                        "fallback, ucx_lanes, checksum_values, tcp_connections, transports"));
}

}  // namespace
}  // namespace penstock::client
