// SPDX-License-Identifier: Apache-2.0
// A dispatcher whose release has none of the calls yet. gRPC answers them.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "control/proto/dispatcher.grpc.pb.h"
#include "control/stub/dispatcher_stub.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

TEST(EarlierRelease, ACallThatItLacksSaysToUpgradeTheDispatcherFirst) {
  wire::Dispatcher::Service without_calls;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&without_calls);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::string address = absl::StrCat("127.0.0.1:", port);
  const std::unique_ptr<DispatcherStub> stub = DispatcherStub::Make(address).value();
  for (const absl::Status& status : {stub->FinaliseUpgrade({.timeout = absl::Minutes(1)}),
                                     stub->RemoveJob("j", {.timeout = absl::Minutes(1)})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(address, " does not know this call")));
    EXPECT_THAT(std::string(status.message()), HasSubstr("upgrade the dispatcher first"));
  }
}

}  // namespace
}  // namespace penstock::control
