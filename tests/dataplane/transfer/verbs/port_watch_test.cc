// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/verbs/port_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "dataplane/transfer/verbs/library.h"

namespace penstock::transfer::verbs {
namespace {

// One device whose events come through a pipe, whole. Global, because the functions of a C library
// have no object.
class PortWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(pipe_), 0);
    context_.async_fd = pipe_[0];
    unacknowledged_ = 0;
  }
  void TearDown() override {
    close(pipe_[0]);
    close(pipe_[1]);
    EXPECT_EQ(unacknowledged_, 0);
  }

  static void Happens(ibv_event_type type, int port = 1) {
    ibv_async_event event = {};
    event.event_type = type;
    event.element.port_num = port;
    ASSERT_EQ(write(pipe_[1], &event, sizeof(event)), static_cast<ssize_t>(sizeof(event)));
  }

  static std::unique_ptr<PortWatch> Open() {
    absl::StatusOr<std::unique_ptr<PortWatch>> watch = PortWatch::Open("mlx5_0", library_);
    EXPECT_TRUE(watch.ok()) << watch.status();
    return watch.ok() ? *std::move(watch) : nullptr;
  }

  static inline int pipe_[2];
  static inline int unacknowledged_;
  static inline ibv_device device_;
  static inline ibv_device* devices_[] = {&device_, nullptr};
  static inline ibv_context context_;
  static inline const Library library_ = {
      .get_device_list = [](int* count) -> ibv_device** {
        *count = 1;
        return devices_;
      },
      .free_device_list = [](ibv_device**) {},
      .get_device_name = [](ibv_device*) -> const char* { return "mlx5_0"; },
      .open_device = [](ibv_device*) { return &context_; },
      .close_device = [](ibv_context*) { return 0; },
      .get_async_event =
          [](ibv_context* context, ibv_async_event* event) {
            if (read(context->async_fd, event, sizeof(*event)) != sizeof(*event)) return -1;
            ++unacknowledged_;
            return 0;
          },
      .ack_async_event = [](ibv_async_event*) { --unacknowledged_; },
  };
};

TEST_F(PortWatchTest, TellsWhichPortWentDownAndUpInOrder) {
  const std::unique_ptr<PortWatch> watch = Open();
  Happens(IBV_EVENT_PORT_ERR, 2);
  Happens(IBV_EVENT_PORT_ACTIVE, 2);
  for (const bool active : {false, true}) {
    absl::StatusOr<std::optional<PortChange>> change = watch->Next();
    ASSERT_TRUE(change.ok() && change->has_value()) << change.status();
    EXPECT_EQ((*change)->port, 2);
    EXPECT_EQ((*change)->active, active);
  }
}

TEST_F(PortWatchTest, DoesNotWaitForEvents) {
  const absl::StatusOr<std::optional<PortChange>> change = Open()->Next();
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_FALSE(change->has_value());
}

TEST_F(PortWatchTest, SkipsEventsThatConcernNoPort) {
  const std::unique_ptr<PortWatch> watch = Open();
  Happens(IBV_EVENT_GID_CHANGE);
  Happens(IBV_EVENT_PORT_ACTIVE);
  const absl::StatusOr<std::optional<PortChange>> change = watch->Next();
  ASSERT_TRUE(change.ok() && change->has_value()) << change.status();
  EXPECT_TRUE((*change)->active);
}

TEST_F(PortWatchTest, ADeviceThatHasFailedStaysFailed) {
  const std::unique_ptr<PortWatch> watch = Open();
  Happens(IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(watch->Next().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(watch->Next().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(PortWatchTest, ADeviceThatIsNotThereIsNamed) {
  const absl::Status status = PortWatch::Open("mlx5_7", library_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "there is no RDMA device mlx5_7");
}

}  // namespace
}  // namespace penstock::transfer::verbs
