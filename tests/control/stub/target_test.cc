// SPDX-License-Identifier: Apache-2.0
#include "control/stub/target.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

TEST(Target, TheProtocolMayBeLeftOut) {
  EXPECT_EQ(ParseTarget("host:5050")->address, "host:5050");
  EXPECT_EQ(ParseTarget("grpc://host:5050")->address, "host:5050");
  EXPECT_EQ(ParseTarget("host:5050")->protocol, "grpc");
  EXPECT_FALSE(ParseTarget("grpc://host:5050")->tls());
  EXPECT_TRUE(ParseTarget("grpcs://host:5050")->tls());
  EXPECT_EQ(ParseTarget("grpcs://host:5050")->address, "host:5050");
}

TEST(Target, ErrorsNameTheMistake) {
  EXPECT_THAT(ParseTarget("").status().message(), HasSubstr("must not be empty"));
  EXPECT_THAT(ParseTarget("grpc://a://b:1").status().message(), HasSubstr("more than one \"://\""));
  EXPECT_THAT(ParseTarget("grpc://host").status().message(), HasSubstr("lacks a port"));
  absl::Status unknown = ParseTarget("ucx://host:1").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(unknown.message(), HasSubstr("known: grpc"));
}

}  // namespace
}  // namespace penstock::control
