// SPDX-License-Identifier: Apache-2.0
// What `ucx` decides before it sends a byte: which releases and lanes are compatible, and which
// addresses are valid.
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/ucx/address.h"
#include "dataplane/transfer/ucx/compatibility.h"
#include "dataplane/transfer/ucx/settings.h"
#include "dataplane/transfer/verbs/devices.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::transfer::ucx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status Check(std::string_view worker_release, std::string_view release,
                   const Settings& settings = {}) {
  return CheckCompatibility(CompatibilityOf(worker_release, settings.lanes, 7), release, settings);
}

TEST(Compatibility, ReleasesOfOneLineSpeakWithEachOther) {
  EXPECT_TRUE(Check("1.13.1", "1.13.1").ok());
  EXPECT_TRUE(Check("1.13.0", "1.13.1").ok());
}

TEST(Compatibility, OthersAreRefusedInWordsThatNameBoth) {
  const absl::Status refused = Check("1.13.1", "1.22.0");
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("UCX 1.13.1"), HasSubstr("this client 1.22.0"),
                    HasSubstr("PENSTOCK_UCX_ANY_RELEASE=1")));
  EXPECT_FALSE(Check("1.1.0", "1.13.1").ok());
}

TEST(Compatibility, AnyReleaseIsTriedOnRequest) {
  EXPECT_TRUE(Check("1.13.1", "1.22.0", {.any_release = true}).ok());
}

TEST(Compatibility, LanesMustBeTheSame) {
  const absl::Status refused = CheckCompatibility(CompatibilityOf("1.13.1", Lanes::kTcp, 7),
                                                  "1.13.1", {.lanes = Lanes::kRdma});
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("'tcp'"), HasSubstr("'rdma'")));
}

TEST(Compatibility, NonsenseIsRefused) {
  for (const char* nonsense :
       {"", "v1", "v0 ucx=1.13.1 lanes=rdma", "v1 ucx lanes=rdma", "=,= =="}) {
    EXPECT_EQ(CheckCompatibility(nonsense, "1.13.1", {}).code(), absl::StatusCode::kNotFound)
        << nonsense;
  }
}

TEST(Address, IsTextAndComesBack) {
  const std::string bytes("\0\xff an address \n", 16);
  const std::string text = EncodeAddress(bytes);
  EXPECT_EQ(
      text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_="),
      std::string::npos);
  EXPECT_EQ(*DecodeAddress(text), bytes);
}

TEST(Address, InvalidOnesNeverReachUcx) {
  std::string changed = EncodeAddress("an address");
  changed[3] = changed[3] == 'A' ? 'B' : 'A';
  for (const std::string& none : {std::string(), std::string("localhost:1"), changed}) {
    EXPECT_EQ(DecodeAddress(none).status().code(), absl::StatusCode::kInvalidArgument) << none;
    EXPECT_EQ((*FindTransport("ucx"))->Dial(none, {}, nullptr).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(Lanes, HaveThreeNames) {
  for (const char* name : {"rdma", "any", "tcp"}) EXPECT_EQ(NameOf(*ParseLanes(name)), name);
  EXPECT_EQ(ParseLanes("ib").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Lanes, WithoutADeviceRdmaSaysSo) {
  const auto devices = verbs::ListDevices();
  if (devices.ok() && !devices->empty()) GTEST_SKIP() << "this machine has one";
  ASSERT_TRUE(Set({.lanes = Lanes::kRdma}).ok());
  const auto listener = (*FindTransport("ucx"))->Listen({}, nullptr);
  EXPECT_EQ(listener.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(listener.status().message()),
              AllOf(HasSubstr("no usable RDMA device: "), HasSubstr("ucx_lanes = tcp")));
}

}  // namespace
}  // namespace penstock::transfer::ucx
