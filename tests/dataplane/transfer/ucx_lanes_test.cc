// SPDX-License-Identifier: Apache-2.0
// A link over other lanes than were asked for does not open. Run with settings of UCX's
// own that lead it astray: UCX_TLS=all, so that it prefers shared memory to tcp.
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
  EXPECT_THAT(ucx::LanesOfProcess(), testing::IsEmpty());  // nothing went over those
}

}  // namespace
}  // namespace penstock::transfer
