// SPDX-License-Identifier: Apache-2.0
// Bytes that are no message, and messages whose numbers are wrong, over real streams. Each ends its
// stream, but no worker.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "control/observe/metrics.h"
#include "control/proto/dispatcher.grpc.pb.h"
#include "control/proto/messages_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/dispatcher_fixture.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

constexpr char kNoMessage[] = "\xff\xff\xff";
// Field 1000 of any message: a kind that a later release may have.
constexpr char kOfLaterRelease[] = "\xc2\x3e\x01x";

// A worker's or client's end of a stream, which carries any bytes.
template <class Down>
class ByteStream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, Down> {
 public:
  ByteStream(const std::string& address, const std::string& method) {
    grpc::TemplatedGenericStub<grpc::ByteBuffer, Down>(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))
        .PrepareBidiStreamingCall(&context_, "/penstock.control.wire.Dispatcher/" + method, {},
                                  this);
    this->StartRead(&in_);
    this->StartCall();
  }
  ~ByteStream() override {
    context_.TryCancel();
    WaitDone();
  }

  void Send(const std::string& text) {
    const grpc::Slice slice(text);
    out_ = grpc::ByteBuffer(&slice, 1);
    this->StartWrite(&out_);
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return std::exchange(written_, false); });
  }
  Down Next() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return !came_.empty() || done_; });
    if (came_.empty()) {
      ADD_FAILURE() << "the stream is over: " << done_->error_message();
      return Down();
    }
    Down first = std::move(came_.front());
    came_.pop_front();
    return first;
  }
  grpc::Status WaitDone() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return done_.has_value(); });
    return *done_;
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      std::lock_guard lock(mu_);
      came_.push_back(in_);
      changed_.notify_all();
    }
    this->StartRead(&in_);
  }
  void OnWriteDone(bool) override {
    std::lock_guard lock(mu_);
    written_ = true;
    changed_.notify_all();
  }
  void OnDone(const grpc::Status& status) override {
    std::lock_guard lock(mu_);
    done_ = status;
    changed_.notify_all();
  }

 private:
  grpc::ClientContext context_;
  grpc::ByteBuffer out_;
  Down in_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Down> came_;             // guarded by mu_
  bool written_ = false;              // guarded by mu_
  std::optional<grpc::Status> done_;  // guarded by mu_
};

class UnreadableTest : public DispatcherTest {
 protected:
  template <class Wire, class Message>
  static std::string Bytes(const Message& message) {
    Wire wire;
    ToWire(message, &wire);
    return wire.SerializeAsString();
  }
};

TEST_F(UnreadableTest, BytesOfAWorkerEndItsStreamAndItsNextOneGoesOn) {
  Start();
  const JobAnswer job = MakeJob("run");
  const WorkerHello hello{.worker = WorkerId(1), .address = "worker1", .permits = 1};
  ByteStream<wire::WorkerDown> worker(stub_->address(), "WorkerSession");
  worker.Send(Bytes<wire::WorkerUp>(WorkerUp(hello)));
  EXPECT_TRUE(worker.Next().has_welcome());
  worker.Send(kNoMessage);
  const grpc::Status status = worker.WaitDone();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(),
              HasSubstr("3 bytes cannot be parsed as penstock.control.wire.WorkerUp"));

  HandWorker again(*stub_, 1);
  HandClient client(*stub_, job, 5);
  again.Next<Assign>();
  EXPECT_EQ(stub_->GetStatus(kOnce)->workers.size(), 1u);
}

TEST_F(UnreadableTest, BytesOfAClientAreAnErrorThatItHears) {
  Start();
  const JobAnswer job = MakeJob("run");
  ByteStream<wire::ClientDown> client(stub_->address(), "ClientSession");
  client.Send(Bytes<wire::ClientUp>(ClientUp(ClientHello{
      .job = job.job, .client = ClientId(5), .incarnation = Incarnation(1), .token = job.token})));
  EXPECT_TRUE(client.Next().has_welcome());
  client.Send(kNoMessage);
  wire::ClientDown down;
  while (!HasFailure() && !down.has_error()) down = client.Next();
  EXPECT_THAT(down.error().message(),
              HasSubstr("cannot read a message from client 5: 3 bytes cannot be parsed as"));
  EXPECT_EQ(client.WaitDone().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(UnreadableTest, MessagesOfALaterReleaseAreSkipped) {
  Start();
  const JobAnswer job = MakeJob("run");
  wire::WorkerUp hello;
  ToWire(WorkerUp(WorkerHello{.worker = WorkerId(1), .address = "worker1", .permits = 1}), &hello);
  hello.mutable_hello()
      ->GetReflection()
      ->MutableUnknownFields(hello.mutable_hello())
      ->AddVarint(1000, 1);
  ByteStream<wire::WorkerDown> worker(stub_->address(), "WorkerSession");
  worker.Send(hello.SerializeAsString());
  EXPECT_TRUE(worker.Next().has_welcome());
  worker.Send(kOfLaterRelease);
  worker.Send(Bytes<wire::WorkerUp>(WorkerUp(WorkerHeartbeat{1})));
  HandClient client(*stub_, job, 5);
  wire::WorkerDown down;
  while (!HasFailure() && !down.has_assign()) down = worker.Next();
}

// A peer that ends or breaks its stream has sent nothing unreadable.
TEST_F(UnreadableTest, AStreamThatBreaksIsNotOne) {
  const Counter& unreadable = ProcessMetrics().GetCounter("penstock_dispatcher_events_total", "",
                                                          {{"event", "unreadable"}});
  const int64_t before = unreadable.value();
  Start();
  HandWorker(*stub_, 1).Disconnect();
  {
    HandWorker worker(*stub_, 2);
    server_->Stop();
    EXPECT_FALSE(worker.WaitClosed().ok());
  }
  EXPECT_EQ(unreadable.value(), before);
}

// A worker's session, kept open as in dataplane/worker/agent.h.
class KeptWorker : ReconnectingWorkerEvents {
 public:
  explicit KeptWorker(DispatcherStub& stub) : session_(stub.KeepWorkerSession(this).value()) {}
  void Send(WorkerUp message) { session_->Send(std::move(message)); }
  // Returns the next event: "welcome", "assign", or why the stream was lost.
  std::string Next() {
    std::unique_lock lock(mu_);
    if (!changed_.wait_for(lock, kPatience, [&] { return !notes_.empty(); })) return "nothing";
    std::string first = std::move(notes_.front());
    notes_.pop_front();
    return first;
  }

 private:
  WorkerUp Hello() override {
    return WorkerHello{.worker = WorkerId(1), .address = "worker1", .permits = 1};
  }
  void OnMessage(WorkerDown message, uint64_t) override {
    if (std::holds_alternative<WorkerWelcome>(message)) Note("welcome");
    if (std::holds_alternative<Assign>(message)) Note("assign");
  }
  void OnLost(const absl::Status& status) override { Note(std::string(status.message())); }
  void OnGivenUp(const absl::Status& status) override {
    Note("given up: " + std::string(status.message()));
  }
  void Note(std::string what) {
    std::lock_guard lock(mu_);
    notes_.push_back(std::move(what));
    changed_.notify_all();
  }
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::string> notes_;  // guarded by mu_
  const std::unique_ptr<ReconnectingWorkerSession> session_;
};

TEST_F(UnreadableTest, AWorkerWithAWrongNumberRegistersAgainAndGoesOn) {
  Start();
  const JobAnswer job = MakeJob("run");
  KeptWorker worker(*stub_);
  EXPECT_EQ(worker.Next(), "welcome");
  worker.Send(Ended{{}, -1});
  EXPECT_THAT(worker.Next(), HasSubstr("cannot read a message from this worker: the end of a "
                                       "partition has index -1"));
  EXPECT_EQ(worker.Next(), "welcome");
  HandClient client(*stub_, job, 5);
  EXPECT_EQ(worker.Next(), "assign");
}

}  // namespace
}  // namespace penstock::control
