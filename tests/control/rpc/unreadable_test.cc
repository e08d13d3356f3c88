// SPDX-License-Identifier: Apache-2.0
// A dispatcher that sends unreadable messages, as one of another release may.
#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/proto/dispatcher.grpc.pb.h"
#include "control/rpc/status_grpc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/peers.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;
using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// Sends these bytes and leaves the stream open.
class Says final : public Reactor {
 public:
  explicit Says(std::deque<std::string> texts) : texts_(std::move(texts)) { OnWriteDone(true); }
  void OnWriteDone(bool) override {
    if (texts_.empty()) return;
    const grpc::Slice slice(texts_.front());
    texts_.pop_front();
    out_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&out_);
  }
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  std::deque<std::string> texts_;
  grpc::ByteBuffer out_;
};

template <class Base>
using Streams = wire::Dispatcher::WithRawCallbackMethod_ClientSession<
    wire::Dispatcher::WithRawCallbackMethod_WorkerSession<Base>>;

class Service final : public Streams<wire::Dispatcher::Service> {
 public:
  explicit Service(std::deque<std::string> texts) : texts_(std::move(texts)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    stub_ = DispatcherStub::Make(absl::StrCat("127.0.0.1:", port)).value();
  }
  ~Service() override { server_->Shutdown(std::chrono::system_clock::now()); }
  DispatcherStub& stub() { return *stub_; }

  Reactor* ClientSession(grpc::CallbackServerContext*) override { return new Says(texts_); }
  Reactor* WorkerSession(grpc::CallbackServerContext*) override { return new Says(texts_); }

 private:
  const std::deque<std::string> texts_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<DispatcherStub> stub_;
};

class Worker : public Peer<WorkerUp, WorkerDown> {
 public:
  explicit Worker(DispatcherStub& stub) { session_ = stub.OpenWorkerSession(events()); }
};
class Client : public Peer<ClientUp, ClientDown> {
 public:
  explicit Client(DispatcherStub& stub) { session_ = stub.OpenClientSession(events()); }
};

// gRPC itself would leave the stream open, on which nothing could arrive any more.
TEST(Unreadable, BytesEndTheStreamWithWordsThatNameThem) {
  Service service({"\xff\xff\xff"});
  const absl::Status of_worker = Worker(service.stub()).WaitClosed();
  EXPECT_EQ(of_worker.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(of_worker.message()),
              HasSubstr("a message from the dispatcher cannot be read: 3 bytes cannot be parsed as "
                        "penstock.control.wire.WorkerDown"));
  const absl::Status of_client = Client(service.stub()).WaitClosed();
  EXPECT_EQ(of_client.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(of_client.message()), HasSubstr("wire.ClientDown"));
}

TEST(Unreadable, AWrongNumberEndsTheStreamWithWordsThatNameIt) {
  wire::WorkerDown down;
  down.mutable_splits()->mutable_run()->set_first_ordinal(-1);
  Service service({down.SerializeAsString()});
  EXPECT_THAT(std::string(Worker(service.stub()).WaitClosed().message()),
              HasSubstr("cannot be read: a run of splits has a negative number"));
}

TEST(Unreadable, MessagesOfALaterReleaseAreSkipped) {
  const std::string kind = "\xc2\x3e\x01x";  // field 1000 of any message
  wire::ClientDown down;
  down.mutable_error()->set_message("known");
  down.mutable_error()->set_code(9);
  down.mutable_error()
      ->GetReflection()
      ->MutableUnknownFields(down.mutable_error())
      ->AddVarint(1000, 1);
  Service service({kind, kind, down.SerializeAsString()});
  EXPECT_EQ(Client(service.stub()).Next<SessionError>().status,
            absl::FailedPreconditionError("known"));
}

TEST(Unreadable, OneOfJoinedMessagesEndsTheStreamAfterThoseBefore) {
  wire::WorkerDown down;
  down.mutable_heartbeat()->set_counter(1);
  down.add_more()->mutable_heartbeat()->set_counter(2);
  down.add_more()->mutable_splits()->mutable_run()->set_first_ordinal(-1);
  down.add_more()->mutable_heartbeat()->set_counter(3);
  Service service({down.SerializeAsString()});
  Worker worker(service.stub());
  EXPECT_EQ(worker.Next<WorkerHeartbeatAnswer>().counter, 1u);
  EXPECT_EQ(worker.Next<WorkerHeartbeatAnswer>().counter, 2u);
  EXPECT_THAT(std::string(worker.WaitClosed().message()),
              HasSubstr("cannot be read: a run of splits has a negative number"));
}

TEST(Unreadable, OneOfALaterReleaseIsSkippedAmongJoinedMessages) {
  wire::ClientDown down;
  down.mutable_heartbeat()->set_counter(1);
  down.add_more();
  down.add_more()->mutable_heartbeat()->set_counter(2);
  Service service({down.SerializeAsString()});
  Client client(service.stub());
  EXPECT_EQ(client.Next<ClientHeartbeatAnswer>().counter, 1u);
  EXPECT_EQ(client.Next<ClientHeartbeatAnswer>().counter, 2u);
}

TEST(FromGrpc, TellsAQuotaOfGrpcFromARefusal) {
  const auto code = grpc::StatusCode::RESOURCE_EXHAUSTED;
  EXPECT_TRUE(
      absl::IsUnavailable(FromGrpc(grpc::Status(code, "Received RST_STREAM with error code 11"))));
  EXPECT_TRUE(absl::IsResourceExhausted(FromGrpc(grpc::Status(code, "too many jobs"))));
}

}  // namespace
}  // namespace penstock::control
