// SPDX-License-Identifier: Apache-2.0
#include "dataplane/python/environment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::python_host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kEnvironment[] = {"PATH=/bin",
                                        "PATHS=/other",
                                        "LC_ALL=C",
                                        "OMP_NUM_THREADS=1",
                                        "PYTHONPATH=/modules",
                                        "AWS_SECRET_ACCESS_KEY=secret",
                                        "PENSTOCK_METRICS_TOKEN=secret",
                                        "MY_DATA=/data",
                                        "MY_DATABASE=secret",
                                        nullptr};

TEST(Environment, ContainsNoCredentials) {
  EXPECT_THAT(SelectEnvironment(kEnvironment, std::vector<std::string>()),
              ElementsAre("PATH=/bin", "LC_ALL=C", "OMP_NUM_THREADS=1", "PYTHONPATH=/modules"));
}

TEST(Environment, ContainsNamedVariables) {
  EXPECT_THAT(SelectEnvironment(kEnvironment, std::vector<std::string>{"MY_DATA", "NOT_SET"}),
              ElementsAre("PATH=/bin", "LC_ALL=C", "OMP_NUM_THREADS=1", "PYTHONPATH=/modules",
                          "MY_DATA=/data"));
}

TEST(Environment, IsWholeWithoutAList) {
  EXPECT_EQ(SelectEnvironment(kEnvironment, std::nullopt).size(), 9u);
}

TEST(Environment, NamesAreChecked) {
  EXPECT_TRUE(CheckVariableNames({"MY_DATA", "AWS_REGION"}).ok());
  for (const char* wrong : {"", "MY_DATA=/data"}) {
    const absl::Status refused = CheckVariableNames({"PATH", wrong});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("python_env contains '"));
  }
}

}  // namespace
}  // namespace penstock::python_host
