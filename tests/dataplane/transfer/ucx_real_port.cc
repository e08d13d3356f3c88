// SPDX-License-Identifier: Apache-2.0
// Run by tests/rdma in a virtual machine: the arguments are a device with one active port,
// its network interface, which is down afterwards, and the program `ip`.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::transfer {
namespace {

using ::testing::HasSubstr;

std::string device_name, interface, ip_program;

int Ip(const std::string& words) {
  return std::system((ip_program + " " + words).c_str());
}

class UcxPort : public ::testing::Test {
 protected:
  std::unique_ptr<ReceiveLink> Dial(std::shared_ptr<ClientEnd> client) {
    DialOptions options;
    options.hello.token = "sesame";
    options.spec = Spec(Scalar(kInt64));
    auto link = ucx_.Dial(worker_.address(), std::move(options), std::move(client));
    EXPECT_TRUE(link.ok()) << link.status();
    return link.ok() ? *std::move(link) : nullptr;
  }

  Transport& ucx_ = **FindTransport("ucx");
  Worker worker_{ucx_};
};

TEST_F(UcxPort, ThatGoesDownEndsItsLinksAtBothEndsAndOpensNone) {
  ASSERT_TRUE(worker_.listening());
  auto client = std::make_shared<ClientEnd>();
  const auto link = Dial(client);
  ASSERT_TRUE(client->AwaitOpen());
  const auto at_worker = worker_.Link(0);
  ASSERT_NE(at_worker, nullptr);

  ASSERT_EQ(Ip("link set " + interface + " down"), 0);
  const std::string why = "the port " + device_name + ":1 went down";
  for (const absl::Status& reason : {client->AwaitClosed(), at_worker->AwaitClosed()}) {
    EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
    EXPECT_THAT(std::string(reason.message()), HasSubstr(why));
  }

  auto early = std::make_shared<ClientEnd>();
  const auto in_vain = Dial(early);
  const absl::Status refused = early->AwaitClosed();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no RDMA port of this machine is up"));
}

}  // namespace
}  // namespace penstock::transfer

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 4) return 2;
  penstock::transfer::device_name = argv[1];
  penstock::transfer::interface = argv[2];
  penstock::transfer::ip_program = argv[3];
  // UCX 1.13 aborts when it goes on with a queue pair that the software device has flushed.
  const int failed = RUN_ALL_TESTS();
  std::fflush(nullptr);
  std::_Exit(failed);
}
