// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <optional>

#include "dataplane/transfer/ucx/ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::transfer::ucx {
namespace {

using ::testing::IsEmpty;

// A device whose events the test makes up.
class FakeWatch final : public verbs::PortWatch {
 public:
  int fd() const override { return -1; }
  absl::StatusOr<std::optional<verbs::PortChange>> Next() override {
    if (failed) return absl::UnavailableError("the RDMA device mlx5_0 has failed");
    if (events.empty()) return std::nullopt;
    const verbs::PortChange next = events.front();
    events.pop_front();
    return next;
  }

  std::deque<verbs::PortChange> events;
  bool failed = false;
};

// mlx5_0 has two ports, both up.
class PortsTest : public ::testing::Test {
 protected:
  PortsTest() : ports_(Devices()) {}

  std::vector<Ports::Device> Devices() {
    auto watch = std::make_unique<FakeWatch>();
    device_ = watch.get();
    std::vector<Ports::Device> devices;
    devices.push_back({"mlx5_0", {{1, true}, {2, true}}, std::move(watch)});
    return devices;
  }

  FakeWatch* device_ = nullptr;
  Ports ports_;
};

TEST_F(PortsTest, ADownPortIsReportedOnceUntilItIsUp) {
  EXPECT_THAT(ports_.Look(), IsEmpty());
  device_->events = {{.port = 2, .active = false}};
  const std::vector<Ports::Change> down = ports_.Look();
  ASSERT_EQ(down.size(), 1u);
  EXPECT_EQ(down[0].port, "mlx5_0:2");
  EXPECT_FALSE(down[0].active);
  EXPECT_EQ(down[0].reason, "the port mlx5_0:2 went down");
  EXPECT_TRUE(ports_.IsDown("mlx5_0:2"));
  EXPECT_FALSE(ports_.IsDown("mlx5_0:1"));
  EXPECT_FALSE(ports_.AllAreDown());
  EXPECT_THAT(ports_.Look(), IsEmpty());
  device_->events = {{.port = 2, .active = true}};
  const std::vector<Ports::Change> up = ports_.Look();
  ASSERT_EQ(up.size(), 1u);
  EXPECT_TRUE(up[0].active);
  EXPECT_FALSE(ports_.IsDown("mlx5_0:2"));
}

TEST_F(PortsTest, AShortOutageBetweenTwoLooksIsNoChange) {
  device_->events = {{.port = 1, .active = false}, {.port = 1, .active = true}};
  EXPECT_THAT(ports_.Look(), IsEmpty());
  EXPECT_FALSE(ports_.IsDown("mlx5_0:1"));
}

TEST_F(PortsTest, ADeviceThatFailsHasNoPortLeft) {
  device_->failed = true;
  const std::vector<Ports::Change> down = ports_.Look();
  ASSERT_EQ(down.size(), 2u);
  EXPECT_EQ(down[0].port, "mlx5_0:1");
  EXPECT_EQ(down[1].port, "mlx5_0:2");
  EXPECT_EQ(down[1].reason, "the RDMA device mlx5_0 has failed");
  EXPECT_TRUE(ports_.AllAreDown());
  EXPECT_THAT(ports_.Look(), IsEmpty());
}

TEST(Ports, WhereThereAreNoneNoneIsDown) {
  Ports none({});
  EXPECT_THAT(none.Look(), IsEmpty());
  EXPECT_FALSE(none.AllAreDown());
  EXPECT_FALSE(none.IsDown("mlx5_0:1"));
}

}  // namespace
}  // namespace penstock::transfer::ucx
