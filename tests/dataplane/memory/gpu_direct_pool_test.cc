// SPDX-License-Identifier: Apache-2.0
// Places that another device writes to: when they are opened, and how they end. Their use by links:
// tests/dataplane/transfer/ucx/gpu_direct_receive_test.cc.
#include "dataplane/memory/device/gpu_direct_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/dataplane/memory/fake_device.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class NoDriver final : public GpuDirectDriver {
 public:
  absl::StatusOr<GpuDirectFacts> Ask(int) override { return GpuDirectFacts(); }
  absl::Status FlushWrites(int) override { return absl::OkStatus(); }
};

class Opened final : public Registration {
 public:
  Opened(absl::Span<std::byte> places, std::atomic<int>& open) : Registration(places), open_(open) {
    ++open_;
  }
  ~Opened() override { --open_; }

 private:
  std::atomic<int>& open_;
};

class GpuDirectPoolTest : public ::testing::Test {
 protected:
  // Returns a place for a body of this many bytes, once places for it are open; nullopt if the pool
  // is off.
  std::optional<DevicePlace> Lend(size_t body_bytes) {
    std::optional<DevicePlace> place;
    EXPECT_TRUE(Eventually([&] {
      place = pool_.LendPlace(128, body_bytes, open_);
      return place.has_value() || pool_.state().starts_with("off");
    }));
    return place;
  }

  FakeDevice device_;
  NoDriver driver_;
  std::atomic<int> opened_ = 0;
  absl::Span<std::byte> last_;  // places that were opened
  absl::Status refuses_;
  GpuDirectPool::Open open_ =
      [this](DeviceBackend&, GpuDirectDriver&, int,
             absl::Span<std::byte> places) -> absl::StatusOr<std::unique_ptr<Registration>> {
    last_ = places;
    if (!refuses_.ok()) return refuses_;
    return std::make_unique<Opened>(places, opened_);
  };
  GpuDirectPool pool_{device_, driver_, {.places = 2}};
};

TEST_F(GpuDirectPoolTest, APlaceFitsItsBodyAndIsFreeAfterItsLoan) {
  EXPECT_EQ(pool_.state(), "not asked for");
  std::optional<DevicePlace> one = Lend(1000), two = Lend(1000);
  EXPECT_EQ(one->body.size(), 1000u);
  EXPECT_EQ(one->loan.bytes().size(), 128u);
  EXPECT_NE(one->body.data(), two->body.data());
  EXPECT_EQ(device_.KindOf(one->body.data()).value(), MemoryKind::kDevice);
  EXPECT_FALSE(pool_.LendPlace(128, 1000, open_).has_value());
  const std::byte* const place = two->body.data();
  two.reset();
  EXPECT_EQ(Lend(1000)->body.data(), place);
}

TEST_F(GpuDirectPoolTest, LargerBodiesGetLargerPlacesAndTheOldOnesGoWhenTheyAreReturned) {
  std::optional<DevicePlace> small = Lend(1000);
  std::optional<DevicePlace> large = Lend(1 << 20);
  EXPECT_EQ(large->body.size(), size_t{1} << 20);
  EXPECT_EQ(pool_.grown(), 1);
  small.reset();
  EXPECT_TRUE(Eventually([&] { return opened_ == 1; }));
}

TEST_F(GpuDirectPoolTest, ATrainersMemoryIsLeftToIt) {
  EXPECT_FALSE(Lend(FakeDevice::kMemoryBytes / 16 + 1).has_value());
  EXPECT_THAT(pool_.state(), HasSubstr("more than a sixteenth of the memory of GPU:0"));
}

TEST_F(GpuDirectPoolTest, MemoryThatMayStillBeWrittenIsNeverFreed) {
  refuses_ = absl::DeadlineExceededError("the trial did not end");
  EXPECT_FALSE(Lend(1000).has_value());
  EXPECT_EQ(pool_.state(), "off: the trial did not end");
  EXPECT_EQ(device_.KindOf(last_.data()).value(), MemoryKind::kDevice);
}

TEST_F(GpuDirectPoolTest, ARefusedTrialIsNotRepeated) {
  refuses_ = absl::FailedPreconditionError("no NIC");
  EXPECT_FALSE(Lend(1000).has_value());
  refuses_ = absl::OkStatus();
  EXPECT_FALSE(pool_.LendPlace(128, 1000, open_).has_value());
  EXPECT_EQ(pool_.state(), "off: no NIC");
}

}  // namespace
}  // namespace penstock
