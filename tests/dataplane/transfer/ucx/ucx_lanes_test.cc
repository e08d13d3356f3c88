// SPDX-License-Identifier: Apache-2.0
// A link over other lanes than requested does not open. Run with misleading settings of UCX:
// UCX_TLS=all makes it prefer shared memory to tcp.
#include "dataplane/transfer/ucx/lanes_used.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::transfer {
namespace {

TEST(UcxLanes, OthersThanWereAskedForAreRefusedByName) {
  Transport& ucx = **FindTransport("ucx");
  Worker worker(ucx);
  ASSERT_TRUE(worker.listening());
  auto client = std::make_shared<ClientEnd>();
  DialOptions options;
  options.hello.token = "sesame";
  const auto link = ucx.Dial(worker.address(), std::move(options), client);
  ASSERT_TRUE(link.ok()) << link.status();
  const absl::Status reason = client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(reason.message()), testing::ContainsRegex("would use (posix|sysv)"));
  EXPECT_THAT(std::string(reason.message()), testing::HasSubstr("ucx_lanes is 'tcp'"));
  EXPECT_THAT(ucx::LanesOfProcess(), testing::IsEmpty());  // nothing went over other lanes
}

}  // namespace
}  // namespace penstock::transfer
