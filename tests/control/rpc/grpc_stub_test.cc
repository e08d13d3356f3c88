// SPDX-License-Identifier: Apache-2.0
// The stub over gRPC at addresses where no dispatcher of this release answers.
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

struct ServerAt {
  explicit ServerAt(grpc::Service* service) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service);
    server = builder.BuildAndStart();
    address = absl::StrCat("127.0.0.1:", port);
  }

  std::unique_ptr<grpc::Server> server;
  std::string address;
};

// A dispatcher whose release has none of the calls yet. gRPC answers them.
struct ServerWithoutCalls {
  wire::Dispatcher::Service service;
  ServerAt server{&service};
};

TEST(EarlierRelease, ACallThatItLacksSaysToUpgradeTheDispatcherFirst) {
  const ServerWithoutCalls server;
  const std::string& address = server.server.address;
  const std::unique_ptr<DispatcherStub> stub = DispatcherStub::Make(address).value();
  for (const absl::Status& status : {stub->FinaliseUpgrade({.timeout = absl::Minutes(1)}),
                                     stub->RemoveJob("j", {.timeout = absl::Minutes(1)})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(address, " does not know this call")));
    EXPECT_THAT(std::string(status.message()), HasSubstr("upgrade the dispatcher first"));
  }
}

TEST(SeveralAddresses, OneThatDoesNotAnswerIsLeftAfterASecond) {
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(listen(silent, 10), 0);  // connections are made, and nobody accepts them
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&at), &size), 0);
  const ServerWithoutCalls other;
  const std::unique_ptr<DispatcherStub> stub =
      DispatcherStub::Make(
          absl::StrCat("grpc://127.0.0.1:", ntohs(at.sin_port), ",", other.server.address))
          .value();
  const absl::Status status = stub->FinaliseUpgrade({.timeout = absl::Seconds(6)});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(other.server.address, " does not know this call")));
  close(silent);
}

// Answers one call.
struct Leader {
  struct Service final : wire::Dispatcher::Service {
    grpc::Status FinaliseUpgrade(grpc::ServerContext*, const wire::Empty*, wire::Empty*) override {
      return grpc::Status::OK;
    }
  };
  Service service;
  ServerAt server{&service};
};

// A worker may listen at the port of a dispatcher that is gone.
TEST(SeveralAddresses, AServerThatIsNoDispatcherIsLeft) {
  const ServerWithoutCalls other;
  const Leader leader;
  const std::unique_ptr<DispatcherStub> stub =
      DispatcherStub::Make(
          absl::StrCat("grpc://", other.server.address, ",", leader.server.address))
          .value();
  EXPECT_EQ(stub->FinaliseUpgrade({.timeout = absl::Minutes(1)}), absl::OkStatus());
}

}  // namespace
}  // namespace penstock::control
