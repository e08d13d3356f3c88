// SPDX-License-Identifier: Apache-2.0
#include "control/stub/target.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/protocol/host_port.h"
#include "control/stub/dispatcher_stub.h"
#include "control/stub/scheme.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Target, TheProtocolMayBeLeftOut) {
  EXPECT_THAT(ParseTarget("host:5050")->addresses, ElementsAre("host:5050"));
  EXPECT_THAT(ParseTarget("grpc://host:5050")->addresses, ElementsAre("host:5050"));
  EXPECT_EQ(ParseTarget("host:5050")->protocol, "grpc");
  EXPECT_FALSE(ParseTarget("grpc://host:5050")->tls());
  EXPECT_TRUE(ParseTarget("grpcs://host:5050")->tls());
  EXPECT_THAT(ParseTarget("grpcs://host:5050")->addresses, ElementsAre("host:5050"));
}

TEST(Target, OneProtocolMayPrecedeSeveralAddresses) {
  const absl::StatusOr<Target> two = ParseTarget("grpcs://a.example:5050,b.example:5051");
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_TRUE(two->tls());
  EXPECT_THAT(two->addresses, ElementsAre("a.example:5050", "b.example:5051"));
  EXPECT_THAT(ParseTarget("a:1,b:1,c:1")->addresses, ElementsAre("a:1", "b:1", "c:1"));
  EXPECT_THAT(ParseTarget("grpc://[::1]:5050,b:5050,[fd00::1]:5050")->addresses,
              ElementsAre("[::1]:5050", "b:5050", "[fd00::1]:5050"));
}

TEST(Target, AMistakeInAListIsNamedWithWhatIsAllowed) {
  const auto error = [](const char* service) {
    const absl::Status status = ParseTarget(service).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << service << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"grpc://a:5050,b:5050\"")) << service;
    return std::string(status.message());
  };
  for (const char* service : {"grpc://", "a:1,", ",a:1", "a:1,,b:1", "grpc://,"}) {
    EXPECT_THAT(error(service), HasSubstr("empty address"));
  }
  EXPECT_THAT(error("a:1,b:1,a:1"), HasSubstr("names a:1 twice"));
  EXPECT_THAT(error("a:1, b:1"), HasSubstr("white space"));
  EXPECT_THAT(error("a:1,b"), HasSubstr("lacks a port in \"b\""));
  EXPECT_THAT(error("grpc://a:1,grpc://b:1"), HasSubstr("more than one \"://\""));
  for (const char* service : {"[::1]", "::1:5050", "a:", ":5050", "fd00::1"}) {
    EXPECT_THAT(error(service), HasSubstr("lacks a port"));
  }
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
  RegisterScheme("sim", [](const std::vector<std::string>& addresses) {
    return absl::UnavailableError(absl::StrCat("for ", absl::StrJoin(addresses, " and ")));
  });
  EXPECT_THAT(ParseTarget("sim://a:1,b:1")->addresses, ElementsAre("a:1", "b:1"));
  EXPECT_EQ(FindScheme("sim")({"a:1", "b:1"}).status(), absl::UnavailableError("for a:1 and b:1"));
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
