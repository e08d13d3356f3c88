// SPDX-License-Identifier: Apache-2.0
// Strangers at the dispatcher's port, over real connections, with small bounds.
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
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
#include "tests/control/observe/count_refused.h"
#include "tests/control/observe/no_descriptors_left.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

class PortTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<wire::ClientUp, wire::ClientDown>;

  void Start(const PortLimits& limits, const std::string& auth_file = "") {
    CoreOptions options;
    options.now = BootTime;
    options.random = RandomNumber;
    options.port_refuses = [](const std::string&) { return false; };
    options.events = StderrEventLog();
    core_ = Core::Open(std::move(options), OpenMemoryJournal()).value();
    DispatcherConfig config = {.host = "127.0.0.1"};
    config.auth_file = auth_file;
    auto listener = Listener::Start(config, core_.get(), limits);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    stub_ = wire::Dispatcher::NewStub(NewChannel());
  }
  ~PortTest() override {
    listener_.reset();
    core_.reset();
  }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", listener_->port()),
                                     grpc::InsecureChannelCredentials(), arguments);
  }
  // Registers a dataset whose definition has this many bytes.
  grpc::Status Register(const std::string& id, size_t bytes) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    wire::RegisterDatasetRequest request;
    ToWire(RegisterDatasetRequest{.dataset_id = id, .definition = std::string(bytes, 'x')},
           &request);
    wire::RegisterDatasetAnswer answer;
    return stub_->GetOrRegisterDataset(&context, request, &answer);
  }
  // Returns how a stream without a hello ends. Sweeps meanwhile.
  grpc::Status EndOf(Stream& stream) {
    auto end = std::async(std::launch::async, [&stream] {
      wire::ClientDown message;
      while (stream.Read(&message)) {
      }
      return stream.Finish();
    });
    while (end.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
      listener_->Sweep();
    }
    return end.get();
  }

  std::unique_ptr<Core> core_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<wire::Dispatcher::Stub> stub_;
};

TEST_F(PortTest, RefusesTheOldestStranger) {
  Start({.unidentified = 3});
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 4; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(stub_->ClientSession(contexts.back().get()));
  }
  const grpc::Status refused = EndOf(*streams[0]);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  EXPECT_THAT(refused.error_message(), HasSubstr("more than 3 peers"));
  for (auto& context : contexts) context->TryCancel();
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(EndOf(*streams[i]).error_code(), grpc::StatusCode::CANCELLED);
  }
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

int Connect(int fd, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
}

// Returns a frame of HTTP/2 with a payload of less than 256 bytes.
std::string Frame(char type, char flags, char stream, const std::string& payload) {
  const char head[] = {0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream};
  return std::string(head, sizeof head) + payload;
}

// Opens streams at the dispatcher whose answers it gives no room: its window has 0 bytes.
std::string StreamsWithoutAWindow(int count) {
  std::string fields;  // each is a literal that is not indexed
  for (const std::string text :
       {":method", "POST", ":scheme", "http", ":path",
        "/penstock.control.wire.Dispatcher/ClientSession", ":authority", "localhost",
        "content-type", "application/grpc", "te", "trailers"}) {
    if (text.front() == ':' || text == "content-type" || text == "te") fields += '\0';
    fields += static_cast<char>(text.size());
    fields += text;
  }
  std::string sent = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  sent += Frame(4, 0, 0, std::string("\0\4\0\0\0\0", 6));  // SETTINGS_INITIAL_WINDOW_SIZE = 0
  for (int i = 0; i < count; ++i) {
    sent += Frame(1, 4, static_cast<char>(2 * i + 1), fields);  // HEADERS, the end of them
  }
  return sent;
}

TEST_F(PortTest, UnauthenticatedStreamsThatNobodyReadsHaveTheBoundsOfStrangers) {
  const std::string auth = absl::StrCat(testing::TempDir(), "/port-auth-", getpid(), ".toml");
  std::ofstream(auth) << "[admin]\nrole = \"operator\"\ncertificates = [\"admin\"]\n";
  Start({.unidentified = 3, .hello_timeout = absl::Milliseconds(500)}, auth);
  const auto refused = [](const char* reason) { return RefusedSoFar("dispatcher", reason); };
  const int64_t strangers = refused("unauthenticated");
  const int64_t many = refused("too_many");
  const int64_t late = refused("too_late");
  EXPECT_EQ(Register("some", 10).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(refused("unauthenticated"), strangers + 1);

  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(Connect(fd, listener_->port()), 0);
  const std::string streams = StreamsWithoutAWindow(5);
  ASSERT_EQ(write(fd, streams.data(), streams.size()), static_cast<ssize_t>(streams.size()));
  for (int i = 0; i < 1000 && refused("too_late") < late + 3; ++i) {
    absl::SleepFor(absl::Milliseconds(20));
    if (refused("unauthenticated") == strangers + 6) listener_->Sweep();
  }
  EXPECT_EQ(refused("unauthenticated"), strangers + 6);
  EXPECT_EQ(refused("too_many"), many + 2);
  EXPECT_EQ(refused("too_late"), late + 3);
  close(fd);
  std::remove(auth.c_str());
}

// gRPC's own listener never accepts again after this.
TEST_F(PortTest, WithoutADescriptorItWaitsForOneAndSleeps) {
  Start({});
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  {
    const NoDescriptorsLeft none;
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
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = dup(STDERR_FILENO);
  close(lowest);
  const rlimit fewer{static_cast<rlim_t>(lowest) + 40, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
  for (int fd : fds) EXPECT_EQ(Connect(fd, listener_->port()), 0);
  char byte;
  EXPECT_LE(recv(fds.back(), &byte, 1, 0), 0);  // closed
  const int ours = dup(STDERR_FILENO);
  EXPECT_GE(ours, 0);
  close(ours);
  setrlimit(RLIMIT_NOFILE, &before);
  for (int fd : fds) close(fd);
  stub_ = wire::Dispatcher::NewStub(NewChannel());
  EXPECT_TRUE(Register("some", 10).ok());
}

}  // namespace
}  // namespace penstock::control
