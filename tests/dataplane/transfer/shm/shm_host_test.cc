// SPDX-License-Identifier: Apache-2.0
// Which processes can share memory.
#include <string>
#include <utility>

#include "dataplane/transfer/shm/host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::transfer::shm {
namespace {

using ::testing::HasSubstr;

TEST(SameHost, DifferencesAreSaidInWords) {
  const std::string ours = DescribeHost();
  EXPECT_TRUE(CheckSameHost(ours, ours).ok());
  const std::pair<std::string, std::string> cases[] = {
      {"", "other versions"},
      {"v2 boot net user pid ipc uid:0", "other versions"},
      {"v1 other net user pid ipc uid:0", "different machine"},
      {"v1 boot other user pid ipc uid:0", "different network namespace"},
      {"v1 boot net other pid ipc uid:0", "different user namespace"},
      {"v1 boot net user other ipc uid:0", "different PID namespace"},
      {"v1 boot net user pid other uid:0", "different IPC namespace"},
      {"v1 boot net user pid ipc uid:7", "different user"},
  };
  for (const auto& [theirs, why] : cases) {
    const absl::Status status = CheckSameHost(theirs, "v1 boot net user pid ipc uid:0");
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  EXPECT_TRUE(
      CheckSameHost("v1-3 boot net user pid ipc uid:0", "v3-4 boot net user pid ipc uid:0").ok());
}

}  // namespace
}  // namespace penstock::transfer::shm
