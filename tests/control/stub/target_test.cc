// SPDX-License-Identifier: Apache-2.0
#include "control/stub/target.h"

#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "control/stub/dispatcher_stub.h"
#include "control/stub/scheme.h"
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

TEST(Target, ARegisteredSchemeIsAProtocol) {
  RegisterScheme("sim", [](const std::string& address) {
    return absl::UnavailableError(absl::StrCat("for ", address));
  });
  EXPECT_EQ(ParseTarget("sim://host:1")->address, "host:1");
  EXPECT_EQ(FindScheme("sim")("host:1").status(), absl::UnavailableError("for host:1"));
  RegisterScheme("sim", nullptr);
  EXPECT_EQ(ParseTarget("sim://host:1").status().code(), absl::StatusCode::kNotFound);
}

TEST(HostPort, KnowsLoopbackByItsText) {
  for (const char* host : {"localhost", "LOCALHOST", "127.0.0.1", "127.9.8.7", "::1", "[::1]"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"", "0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com",
                           "localhost.com", "1270.0.0.1", "fd00::1", "head"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
  EXPECT_EQ(HostOf("head:5050"), "head");
  EXPECT_EQ(HostOf("[::1]:5050"), "::1");
  EXPECT_EQ(HostOf("::1"), "::1");
  EXPECT_EQ(HostOf("head"), "head");
}

}  // namespace
}  // namespace penstock::control
