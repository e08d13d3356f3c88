// SPDX-License-Identifier: Apache-2.0
// A dispatcher's core with a gRPC port, and a caller that sends HTTP/2 and reads nothing.
#pragma once

#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/server/listener.h"
#include "control/journal/journal.h"
#include "control/proto/dispatcher.grpc.pb.h"
#include "control/proto/messages_proto.h"
#include "control/sync/clock.h"
#include "control/sync/random.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/fixed_tokens.h"

namespace penstock::control {

class PortTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<wire::ClientUp, wire::ClientDown>;

  void Start(const PortLimits& limits, const std::string& auth_file = "") {
    Bind(limits, auth_file);
    Serve();
  }
  void Bind(const PortLimits& limits, const std::string& auth_file = "") {
    CoreOptions options;
    options.now = BootTime;
    options.random = RandomNumber;
    options.job_tokens = FixedTokens;
    options.port_refuses = [](const std::string&) { return false; };
    options.events = StderrEventLog();
    core_ = Core::Open(std::move(options), OpenMemoryJournal()).value();
    DispatcherConfig config = {.host = "127.0.0.1"};
    config.auth_file = auth_file;
    auto listener = Listener::Bind(config, limits);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  void Serve() {
    ASSERT_TRUE(listener_->Serve(core_.get()).ok());
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
  grpc::Status Register(const RegisterDatasetRequest& dataset) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    wire::RegisterDatasetRequest request;
    ToWire(dataset, &request);
    wire::RegisterDatasetAnswer answer;
    return stub_->GetOrRegisterDataset(&context, request, &answer);
  }
  // Registers a dataset whose definition has this many bytes.
  grpc::Status Register(const std::string& id, size_t bytes) {
    return Register({.dataset_id = id, .definition = std::string(bytes, 'x')});
  }
  grpc::Status Get(const std::string& id) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    wire::DatasetRequest request;
    request.set_dataset_id(id);
    wire::GetDatasetAnswer answer;
    return stub_->GetDataset(&context, request, &answer);
  }
  // Waits for the end of a stream without a hello.
  static std::future<grpc::Status> AwaitEnd(Stream& stream) {
    return std::async(std::launch::async, [&stream] {
      wire::ClientDown message;
      while (stream.Read(&message)) {
      }
      return stream.Finish();
    });
  }
  static bool IsThere(const std::future<grpc::Status>& end) {
    return end.wait_for(std::chrono::milliseconds(5)) == std::future_status::ready;
  }
  // Returns how a stream without a hello ends. Sweeps meanwhile.
  grpc::Status EndOf(Stream& stream) {
    auto end = AwaitEnd(stream);
    while (!IsThere(end)) listener_->Sweep();
    return end.get();
  }

  std::unique_ptr<Core> core_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<wire::Dispatcher::Stub> stub_;
};

inline int Connect(int fd, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
}

// Returns a frame of HTTP/2 with a payload of less than 256 bytes.
inline std::string Frame(char type, char flags, char stream, const std::string& payload) {
  const char head[] = {0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream};
  return std::string(head, sizeof head) + payload;
}

// Returns the beginning of a connection that gives answers no room: its window has 0 bytes.
inline std::string WithoutAWindow() {
  // SETTINGS_INITIAL_WINDOW_SIZE = 0
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, std::string("\0\4\0\0\0\0", 6));
}

// Returns the heads of calls of that method. Each has `request`, unless it is empty.
inline std::string Calls(const std::string& method, int count, const std::string& request = "") {
  std::string fields;  // each is a literal that is not indexed
  for (const std::string& text :
       {std::string(":method"), std::string("POST"), std::string(":scheme"), std::string("http"),
        std::string(":path"), "/penstock.control.wire.Dispatcher/" + method,
        std::string(":authority"), std::string("localhost"), std::string("content-type"),
        std::string("application/grpc"), std::string("te"), std::string("trailers")}) {
    if (text.front() == ':' || text == "content-type" || text == "te") fields += '\0';
    fields += static_cast<char>(text.size());
    fields += text;
  }
  std::string sent;
  for (int i = 0; i < count; ++i) {
    const char stream = static_cast<char>(2 * i + 1);
    sent += Frame(1, 4, stream, fields);  // HEADERS, the end of them
    if (request.empty()) continue;
    const std::string head = {0, 0, 0, 0, static_cast<char>(request.size())};
    sent += Frame(0, 1, stream, head + request);  // DATA, the end of the stream
  }
  return sent;
}

// A client that sends these bytes and never reads.
class DeafCaller {
 public:
  DeafCaller(int port, const std::string& bytes) {
    EXPECT_EQ(Connect(fd_, port), 0);
    EXPECT_EQ(write(fd_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  ~DeafCaller() { close(fd_); }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM, 0);
};

}  // namespace penstock::control
