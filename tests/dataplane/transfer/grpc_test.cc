// SPDX-License-Identifier: Apache-2.0
// Besides what every transport must do: what strangers may do at a worker's port.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "dataplane/transfer/grpc/receive_stream.h"
#include "dataplane/transfer/grpc/slices.h"
#include "dataplane/transfer/grpc/transport.h"
#include "dataplane/transfer/message.h"
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {

INSTANTIATE_TEST_SUITE_P(Grpc, TransportConformance, testing::Values("grpc"));

namespace {

// Calls at a worker's port whose clients say nothing, or what one asks them to.
class Strangers {
 public:
  explicit Strangers(const std::string& address)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {}
  ~Strangers() {
    for (const auto& call : calls_) call->context.TryCancel();
    queue_.Shutdown();
    while (AwaitOne() != nullptr) {
    }
  }

  void Come(const std::string& saying = "") {
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    call.stream = stub_.PrepareCall(&call.context, kLinkMethod, &queue_);
    call.stream->StartCall(nullptr);
    // An earlier call may end before this one begins.
    while (AwaitOne() != &begun_) {
    }
    call.stream->Finish(&call.status, &call);
    if (saying.empty()) return;
    call.stream->Write(ToBuffer(saying), nullptr);
    while (!call.ended && AwaitOne() != &begun_) {
    }
  }
  // The next code with which one of the calls ends, or one has.
  grpc::StatusCode NextEnd() {
    while (ends_.empty() && AwaitOne() != nullptr) {
    }
    if (ends_.empty()) return grpc::StatusCode::OK;
    const grpc::StatusCode code = ends_.front();
    ends_.erase(ends_.begin());
    return code;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::Status status;
    bool ended = false;
  };
  // What came out of the queue: a call that ended, or (`begun_`) one that began or was written to.
  const void* AwaitOne() {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok)) return nullptr;
    if (tag == nullptr) return &begun_;
    Call& call = *static_cast<Call*>(tag);
    call.ended = true;
    ends_.push_back(call.status.error_code());
    return &call;
  }

  const char begun_ = 0;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<grpc::StatusCode> ends_;
};

std::unique_ptr<Listener> ListenWith(StrangerLimits limits) {
  auto listener = StartGrpcListener(
      {}, [](const Hello&, std::shared_ptr<SendLink>) { return absl::InternalError("let in"); },
      limits);
  EXPECT_TRUE(listener.ok()) << listener.status();
  return listener.ok() ? *std::move(listener) : nullptr;
}

TEST(GrpcStrangers, WhoSaysNothingIsTurnedAway) {
  const auto listener = ListenWith({.hello_timeout = std::chrono::milliseconds(50)});
  Strangers strangers(listener->address());
  strangers.Come();
  EXPECT_EQ(strangers.NextEnd(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(GrpcStrangers, OfTooManyOneGoesAndWhoSaysHelloIsHeard) {
  const auto listener = ListenWith({.count = 2});
  Strangers strangers(listener->address());
  for (int i = 0; i < 3; ++i) strangers.Come();
  EXPECT_EQ(strangers.NextEnd(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  Strangers other(listener->address());
  other.Come(Encode(Hello{.token = "sesame"}));
  EXPECT_EQ(other.NextEnd(), grpc::StatusCode::INTERNAL);
}

TEST(GrpcStrangers, AnEnormousHelloIsRefused) {
  const auto listener = ListenWith({});
  Strangers strangers(listener->address());
  strangers.Come(Encode(Hello{.token = std::string(2 << 20, 'x')}));
  EXPECT_EQ(strangers.NextEnd(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace penstock::transfer
