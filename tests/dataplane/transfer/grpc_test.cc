// SPDX-License-Identifier: Apache-2.0
// In addition to the suite of all transports: what an unauthenticated client can do at a worker's
// port, and how a client treats a worker that breaks the protocol.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/transfer/grpc/receive_stream.h"
#include "dataplane/transfer/grpc/slices.h"
#include "dataplane/transfer/grpc/transport.h"
#include "dataplane/transfer/message.h"
#include "tests/control/observe/count_refused.h"
#include "tests/dataplane/transfer/conformance.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::transfer {

INSTANTIATE_TEST_SUITE_P(Grpc, TransportConformance, testing::Values("grpc"));

namespace {

// Calls at a worker's port whose clients send nothing, or one given message.
class UnauthenticatedCalls {
 public:
  explicit UnauthenticatedCalls(const std::string& address)
      : stub_(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                        WithOwnConnection())) {}
  ~UnauthenticatedCalls() {
    for (const auto& call : calls_) call->context.TryCancel();
    queue_.Shutdown();
    while (AwaitOne() != nullptr) {
    }
  }

  void Start(const std::string& saying = "") {
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
  // Waits for a call to end, if none has yet; returns its status code.
  grpc::StatusCode NextEnd() {
    while (ends_.empty() && AwaitOne() != nullptr) {
    }
    if (ends_.empty()) return grpc::StatusCode::OK;
    const grpc::StatusCode code = ends_.front();
    ends_.erase(ends_.begin());
    return code;
  }

 private:
  static grpc::ChannelArguments WithOwnConnection() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
  }
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::Status status;
    bool ended = false;
  };
  // Waits for the next event of the queue: a call that ended, or (`begun_`) one that began or was
  // written to.
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

std::unique_ptr<Listener> ListenWith(UnauthenticatedLimits limits) {
  auto listener = StartGrpcListener(
      {}, [](const Hello&, std::shared_ptr<SendLink>) { return absl::InternalError("let in"); },
      limits);
  EXPECT_TRUE(listener.ok()) << listener.status();
  return listener.ok() ? *std::move(listener) : nullptr;
}

TEST(GrpcUnauthenticated, SilentClientsAreTurnedAway) {
  const int64_t before = RefusedSoFar("grpc", "too_late");
  const auto listener = ListenWith({.hello_timeout = std::chrono::milliseconds(50)});
  UnauthenticatedCalls calls(listener->address());
  calls.Start();
  EXPECT_EQ(calls.NextEnd(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(RefusedSoFar("grpc", "too_late"), before + 1);
}

TEST(GrpcUnauthenticated, OneOfTooManyIsDroppedAndAHelloIsHeard) {
  const int64_t before = RefusedSoFar("grpc", "too_many");
  const auto listener = ListenWith({.count = 2});
  UnauthenticatedCalls calls(listener->address());
  for (int i = 0; i < 3; ++i) calls.Start();
  EXPECT_EQ(calls.NextEnd(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(RefusedSoFar("grpc", "too_many"), before + 1);
  UnauthenticatedCalls other(listener->address());
  other.Start(Encode(Hello{.token = "sesame"}));
  EXPECT_EQ(other.NextEnd(), grpc::StatusCode::INTERNAL);
}

TEST(GrpcUnauthenticated, AnEnormousHelloIsRefused) {
  const auto listener = ListenWith({});
  UnauthenticatedCalls calls(listener->address());
  calls.Start(Encode(Hello{.token = std::string(2 << 20, 'x')}));
  EXPECT_EQ(calls.NextEnd(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(GrpcUnauthenticated, AnAdmittedClientGivesItsPlaceBack) {
  std::promise<void> admitted[3];
  size_t count = 0;  // used for one call at a time
  auto listener = StartGrpcListener({},
                                    [&](const Hello&, std::shared_ptr<SendLink> link) {
                                      admitted[count++].set_value();
                                      return std::make_shared<WorkerEnd>(std::move(link));
                                    },
                                    {.pace = {.places = 1, .per_place = absl::InfiniteDuration()}});
  ASSERT_TRUE(listener.ok()) << listener.status();
  for (std::promise<void>& next : admitted) {
    UnauthenticatedCalls calls((*listener)->address());
    calls.Start(Encode(Hello{.token = "sesame"}));
    EXPECT_EQ(next.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }
}

// --- A client against a worker that breaks the protocol --------------------------------

using Reactor = grpc::ServerGenericBidiReactor;

// Waits for the client's hello and its credits, then sends these messages.
class Says final : public Reactor {
 public:
  explicit Says(std::deque<grpc::ByteBuffer> messages) : messages_(std::move(messages)) {
    StartRead(&in_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (++heard_ < 2) return StartRead(&in_);
    OnWriteDone(true);
  }
  void OnWriteDone(bool ok) override {
    if (!ok || messages_.empty()) return;
    out_ = std::move(messages_.front());
    messages_.pop_front();
    StartWrite(&out_);
  }
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  std::deque<grpc::ByteBuffer> messages_;
  int heard_ = 0;
  grpc::ByteBuffer in_, out_;
};

class FaultyWorker final : public grpc::CallbackGenericService {
 public:
  explicit FaultyWorker(std::deque<grpc::ByteBuffer> messages) : messages_(std::move(messages)) {
    messages_.push_front(ToBuffer(Encode(Welcome())));
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~FaultyWorker() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  Reactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Says(messages_);
  }

  std::deque<grpc::ByteBuffer> messages_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

grpc::ByteBuffer AnElement(int64_t value) {
  const Element element =
      *MakeElement(DefaultPool(), {Tensor(kInt64, {}, &value)}, Spec(Scalar(kInt64)));
  Loan loan = *DefaultPool().Lend(element.block().size());
  std::memcpy(loan.bytes().data(), element.block().data(), element.block().size());
  const absl::Span<const std::byte> block = loan.bytes().first(element.block().size());
  return ToBuffer(MessageType::kElement, block, std::move(loan));
}

// Gives two credits, and expects that the link is closed for more elements than granted.
void ExpectUngranted(std::deque<grpc::ByteBuffer> messages, size_t received) {
  FaultyWorker worker(std::move(messages));
  const auto transport = MakeGrpcTransport();
  const auto client = std::make_shared<ClientEnd>();
  DialOptions options;
  options.spec = Scalar(kInt64);
  auto link = transport->Dial(worker.address(), options, client);
  ASSERT_TRUE(link.ok()) << link.status();
  (*link)->Grant({2});
  const absl::Status reason = client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kDataLoss) << reason;
  EXPECT_THAT(std::string(reason.message()), testing::HasSubstr("granted"));
  EXPECT_EQ(client->indices().size(), received);
}

TEST(GrpcFaultyWorker, MoreElementsThanCreditsAreDataLoss) {
  ExpectUngranted({AnElement(1), AnElement(2), AnElement(3)}, 2);
}

TEST(GrpcFaultyWorker, AnErrorWithoutACreditIsDataLoss) {
  const std::string error = Encode(ErrorMessage{{}, absl::InternalError("no")});
  ExpectUngranted({AnElement(1), AnElement(2), ToBuffer(error)}, 2);
}

TEST(GrpcFaultyWorker, MoreCreditsGivenBackThanThereWereAreDataLoss) {
  ExpectUngranted({ToBuffer(Encode(Recalled{3}))}, 0);
}

}  // namespace
}  // namespace penstock::transfer
