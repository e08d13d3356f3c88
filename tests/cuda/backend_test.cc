// SPDX-License-Identifier: Apache-2.0
// Properties of any linked backend, on any machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "dataplane/memory/device/device.h"
#include "penstock/device_stage.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WithoutADevice : public testing::Test {
 protected:
  void SetUp() override {
    if (backend_.Count().ok()) GTEST_SKIP() << "this machine has " << DescribeDevices(backend_);
  }
  DeviceBackend& backend_ = LinkedDeviceBackend();
};

TEST_F(WithoutADevice, SaysWhyInWords) {
  const absl::Status why = backend_.Count().status();
  EXPECT_EQ(why.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(why.message()), StartsWith("no GPU: "));
  EXPECT_THAT(DescribeDevices(backend_), StartsWith(std::string(backend_.name()) + ": no GPU: "));
}

TEST_F(WithoutADevice, EveryRequestIsRefusedWithTheReason) {
  const std::string why(backend_.Count().status().message());
  std::array<std::byte, 64> memory;
  const absl::Status refused[] = {backend_.Describe(0).status(),
                                  backend_.Allocate(0, 64).status(),
                                  backend_.MakeStream(0).status(),
                                  backend_.WrapStream(0, nullptr).status(),
                                  backend_.MakeEvent(0).status(),
                                  LaunchStage(0, nullptr, GatherRows()),
                                  backend_.page_lock().Register(absl::MakeSpan(memory)).status()};
  for (const absl::Status& status : refused) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

TEST_F(WithoutADevice, NothingCountsAsRegistered) {
  const int64_t made = CountRegistrations().made;
  std::array<std::byte, 64> memory;
  EXPECT_FALSE(backend_.page_lock().Register(absl::MakeSpan(memory)).ok());
  EXPECT_EQ(CountRegistrations().made, made);
}

TEST_F(WithoutADevice, MemoryIsTheHosts) {
  int here = 0;
  const absl::StatusOr<MemoryKind> kind = backend_.KindOf(&here);
  ASSERT_TRUE(kind.ok()) << kind.status();
  EXPECT_EQ(*kind, MemoryKind::kHost);
}

}  // namespace
}  // namespace penstock
