// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/job_connection.h"

#include <future>
#include <optional>
#include <stop_token>

#include "gtest/gtest.h"
#include "penstock/dataset.h"

namespace penstock::client {
namespace {

TEST(JobConnection, AStopEndsAJoin) {
  const DistributeOptions options{.service = "grpc://127.0.0.1:1",  // nobody answers there
                                  .job_name = "j",
                                  .timeout = absl::Hours(1)};
  std::stop_source stop;
  JobConnection connection(NodeOf(Dataset::Range(3).Distribute(options)), options,
                           stop.get_token());
  ASSERT_TRUE(connection.Open().ok());
  std::promise<void> begins;
  auto joined = std::async(std::launch::async, [&] {
    begins.set_value();
    return connection.Join(std::nullopt, std::nullopt).status();
  });
  begins.get_future().wait();
  stop.request_stop();
  EXPECT_EQ(joined.get().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace penstock::client
