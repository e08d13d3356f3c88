// SPDX-License-Identifier: Apache-2.0
// Strangers at the dispatcher's port, over real connections, with small bounds.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/dispatcher/core.h"
#include "control/dispatcher/server/listener.h"
#include "control/journal/journal.h"
#include "control/proto/dispatcher.grpc.pb.h"
#include "control/rpc/wire_bytes.h"
#include "control/sync/clock.h"
#include "control/sync/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/server/port_fixture.h"
#include "tests/control/observe/count_refused.h"
#include "tests/control/observe/descriptors_left.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// An auth_file that admits one certificate, and no token.
class AuthFileOfAdmin {
 public:
  AuthFileOfAdmin() {
    std::ofstream(path_) << "[admin]\nrole = \"operator\"\ncertificates = [\"admin\"]\n";
  }
  ~AuthFileOfAdmin() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = absl::StrCat(testing::TempDir(), "/port-auth-", getpid(), ".toml");
};

TEST_F(PortTest, ClientsThatAreServedGiveTheirPlaceBack) {
  Start({.pace = {.places = 1, .per_place = absl::InfiniteDuration()}});
  for (int i = 0; i < 3; ++i) {
    const auto stub = wire::Dispatcher::NewStub(NewChannel());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    wire::VersionRange range;
    EXPECT_TRUE(stub->GetVersion(&context, {}, &range).ok()) << i;
  }
}

TEST_F(PortTest, RefusesOneOfTooManyStrangers) {
  Start({.unidentified = 3});
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 4; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(stub_->ClientSession(contexts.back().get()));
  }
  // Threads of the server may take the streams in another order than they were opened in.
  std::vector<std::future<grpc::Status>> ends;
  for (const auto& stream : streams) ends.push_back(AwaitEnd(*stream));
  auto first = ends.end();
  while ((first = std::ranges::find_if(ends, IsThere)) == ends.end()) listener_->Sweep();
  const grpc::Status refused = first->get();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  EXPECT_THAT(refused.error_message(), HasSubstr("more than 3 peers"));
  ends.erase(first);
  for (auto& context : contexts) context->TryCancel();
  for (auto& end : ends) EXPECT_EQ(end.get().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(PortTest, WhoConnectsBeforeItServesIsServed) {
  Bind({});
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<in_port_t>(listener_->port()));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  Serve();
  char head[9] = {};  // of the server's first frame of HTTP/2
  EXPECT_EQ(recv(client, head, sizeof head, MSG_WAITALL), ssize_t{sizeof head});
  close(client);
}

TEST_F(PortTest, WhoIsNeverServedLeavesThePortFree) {
  Bind({});
  const int port = listener_->port();
  listener_.reset();
  EXPECT_TRUE(Listener::Bind({.host = "127.0.0.1", .port = port}).ok());
}

TEST_F(PortTest, WaitsForAHelloForALimitedTime) {
  Start({.hello_timeout = absl::Milliseconds(300)});
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub_->ClientSession(&context);
  wire::ClientUp heartbeat;
  ToWire(ClientUp(ClientHeartbeat{}), &heartbeat);
  EXPECT_TRUE(stream->Write(heartbeat));  // is not a hello
  const grpc::Status late = EndOf(*stream);
  EXPECT_EQ(late.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << late.error_message();
  EXPECT_THAT(late.error_message(), HasSubstr("no hello"));
}

TEST_F(PortTest, RefusesALongMessage) {
  Start({.message_bytes = 1 << 20});
  EXPECT_TRUE(Register("short", 1 << 19).ok());
  const grpc::Status refused = Register("long", 1 << 21);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
}

// A call of which only the head is sent, until Send().
class HeadOnly {
 public:
  HeadOnly(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel),
        call_(
            stub_.PrepareCall(&context_, "/penstock.control.wire.Dispatcher/" + method, &queue_)) {
    call_->StartCall(nullptr);
    Wait();
  }
  ~HeadOnly() {
    if (!finished_) {
      context_.TryCancel();
      Finish();
    }
    queue_.Shutdown();
  }
  void Send(const std::string& text) {
    const grpc::Slice slice(text);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    Wait();
  }
  // Waits for the end of the call.
  grpc::Status Finish() {
    grpc::Status status;
    grpc::ByteBuffer answer;
    do {
      call_->Read(&answer, nullptr);
    } while (Wait());
    call_->Finish(&status, nullptr);
    Wait();
    finished_ = true;
    return status;
  }

 private:
  bool Wait() {
    void* tag;
    bool ok = false;
    EXPECT_TRUE(queue_.Next(&tag, &ok));
    return ok;
  }
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

TEST_F(PortTest, ServesEveryMethodOfTheService) {
  Start({});
  // This use of the table links the file that describes the service.
  ASSERT_NE(descriptor_table_control_2fproto_2fdispatcher_2eproto.filename, nullptr);
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      "penstock.control.wire.Dispatcher");
  ASSERT_NE(service, nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    const std::string& method = service->method(i)->name();
    HeadOnly call(NewChannel(), method);
    call.Send("\xff\xff\xff");  // is no message
    const grpc::Status end = call.Finish();
    EXPECT_THAT(end.error_message(), HasSubstr("cannot be parsed")) << method;
  }
  HeadOnly unknown(NewChannel(), "Nothing");
  EXPECT_EQ(unknown.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(PortTest, RefusesAnUnknownCallerAtTheHead) {
  const AuthFileOfAdmin auth;
  Start({}, auth.path());
  for (const char* method : {"GetOrRegisterDataset", "GetStatus", "ClientSession"}) {
    HeadOnly call(NewChannel(), method);
    const grpc::Status refused = call.Finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_THAT(refused.error_message(), HasSubstr("auth_file")) << method;
  }
}

TEST_F(PortTest, CallsWithoutARequestAreBounded) {
  Start({.calls = 3});
  const int64_t many = RefusedSoFar("dispatcher", "too_many");
  std::vector<std::unique_ptr<HeadOnly>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(std::make_unique<HeadOnly>(NewChannel(), "GetOrRegisterDataset"));
  }
  EXPECT_EQ(calls[0]->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(calls[1]->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(RefusedSoFar("dispatcher", "too_many"), many + 2);
  EXPECT_TRUE(Register("some", 10).ok());
}

// The bytes of 30 copies are above the limit.
TEST_F(PortTest, UnreadAnswersWithOneDefinitionHoldOneCopy) {
  Start({.call_bytes = 40 << 20});
  ASSERT_TRUE(Register("large", 4 << 20).ok());
  std::promise<std::shared_ptr<const DatasetRecord>> found;
  core_->GetDataset("large", 0, [&](const auto& record) { found.set_value(record.value()); });
  const std::shared_ptr<const DatasetRecord> record = found.get_future().get();
  wire::DatasetRequest request;
  request.set_dataset_id("large");
  const DeafCaller deaf(listener_->port(),
                        WithoutAWindow() + Calls("GetDataset", 30, request.SerializeAsString()));
  EXPECT_TRUE(Eventually([&] { return record.use_count() > 30; }));
  EXPECT_TRUE(Get("large").ok());
  listener_.reset();
  EXPECT_TRUE(Eventually([&] { return record.use_count() < 30; }));
}

// The peer reads nothing, so nothing but the bounds can end its calls. The summary is in each
// answer, unlike the definition.
TEST_F(PortTest, UnreadAnswersDoNotKeepOthersFromTheirs) {
  Start({.read_time_per_mib = absl::Milliseconds(10),
         .call_bytes = 40 << 20,
         .pressed_read_timeout = absl::Seconds(3)});
  ASSERT_TRUE(
      Register({.dataset_id = "large", .summary = {.spec_text = std::string(4 << 20, 'x')}}).ok());
  wire::DatasetRequest request;
  request.set_dataset_id("large");
  const int64_t late = RefusedSoFar("dispatcher", "too_late");
  const std::string calls = WithoutAWindow() + Calls("GetDataset", 30, request.SerializeAsString());
  std::vector<std::unique_ptr<DeafCaller>> deaf;
  const auto refused = [&] { return Get("large").error_code() == grpc::StatusCode::UNAVAILABLE; };
  int in_a_row = 0;  // one more is refused while an answer that was read is still counted
  for (int i = 0; i < 100 && in_a_row < 3; ++i) {
    in_a_row = refused() ? in_a_row + 1 : 0;
    if (in_a_row == 0) deaf.push_back(std::make_unique<DeafCaller>(listener_->port(), calls));
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_EQ(in_a_row, 3);
  EXPECT_TRUE(Eventually([&] { return Get("large").ok(); }));
  EXPECT_GT(RefusedSoFar("dispatcher", "too_late"), late);
}

TEST_F(PortTest, UnauthenticatedStreamsThatNobodyReadsHaveTheBoundsOfStrangers) {
  const AuthFileOfAdmin auth;
  Start({.unidentified = 3, .hello_timeout = absl::Milliseconds(500)}, auth.path());
  const auto refused = [](const char* reason) { return RefusedSoFar("dispatcher", reason); };
  const int64_t strangers = refused("unauthenticated");
  const int64_t many = refused("too_many");
  const int64_t late = refused("too_late");
  EXPECT_EQ(Register("some", 10).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(refused("unauthenticated"), strangers + 1);

  const DeafCaller deaf(listener_->port(), WithoutAWindow() + Calls("ClientSession", 5));
  for (int i = 0; i < 1000 && refused("too_late") < late + 3; ++i) {
    absl::SleepFor(absl::Milliseconds(20));
    if (refused("unauthenticated") == strangers + 6) listener_->Sweep();
  }
  EXPECT_EQ(refused("unauthenticated"), strangers + 6);
  EXPECT_EQ(refused("too_many"), many + 2);
  EXPECT_EQ(refused("too_late"), late + 3);
}

// gRPC's own listener never accepts again after this.
TEST_F(PortTest, WithoutADescriptorItWaitsForOneAndSleeps) {
  Start({});
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  {
    const DescriptorsLeft none(0);
    EXPECT_EQ(Connect(fd, listener_->port()), 0);
    EXPECT_LT(CpuTimeOfASecond(), absl::Milliseconds(300));
  }
  close(fd);
  stub_ = wire::Dispatcher::NewStub(NewChannel());
  EXPECT_TRUE(Register("some", 10).ok());
}

TEST_F(PortTest, ClientsLeaveDescriptorsFree) {
  Start({});
  std::vector<int> fds;
  for (int i = 0; i < 60; ++i) fds.push_back(socket(AF_INET, SOCK_STREAM, 0));
  std::optional<DescriptorsLeft> few(40);
  for (int fd : fds) EXPECT_EQ(Connect(fd, listener_->port()), 0);
  char byte;
  EXPECT_LE(recv(fds.back(), &byte, 1, 0), 0);  // closed
  const int ours = dup(STDERR_FILENO);
  EXPECT_GE(ours, 0);
  close(ours);
  few.reset();
  for (int fd : fds) close(fd);
  stub_ = wire::Dispatcher::NewStub(NewChannel());
  EXPECT_TRUE(Register("some", 10).ok());
}

}  // namespace
}  // namespace penstock::control
