// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "bench/interrupt.h"
#include "bench/limits/limits.h"
#include "bench/measure.h"
#include "bench/process.h"
#include "control/protocol/host_port.h"
#include "dataplane/transfer/tcp/socket.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr uint64_t kSocketSlots = 4;
constexpr int kConnectMs = 60'000;

namespace tcp = transfer::tcp;

absl::Status SetCongestion(int fd, const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), name.size()) == 0)
    return absl::OkStatus();
  return absl::ErrnoToStatus(
      errno, absl::StrCat("the socket limit cannot use ", name, " as congestion control"));
}

class SocketLimit final : public Side {
 public:
  SocketLimit(const Load& load, std::string name, tcp::Socket socket,
              std::unique_ptr<Process> producer)
      : load_(load),
        name_(std::move(name)),
        socket_(std::move(socket)),
        producer_(std::move(producer)),
        roles_{{"limit", {::getpid()}}} {
    if (!load.hosts.two()) roles_["limit"].push_back(producer_->pid());
    for (auto& slot : slots_) slot.resize(load.element_bytes);
  }

  std::string name() const override { return name_; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    const double start = Now();
    double now = start;
    const uint64_t first = number_;
    while (!Interrupted() && now < start + seconds) {
      std::vector<std::byte>& slot = slots_[number_ % kSocketSlots];
      for (size_t at = 0; at < slot.size();) {
        const ssize_t got = ::read(socket_.fd(), slot.data() + at, slot.size() - at);
        if (got <= 0) return absl::ErrnoToStatus(errno, "the socket limit cannot read");
        at += static_cast<size_t>(got);
      }
      sum_ += SumOf(slot, load_.touch);
      if (!IsStamped(slot, number_)) {
        return absl::DataLossError("the socket limit read an unexpected element");
      }
      ++number_;
      now = Now();
    }
    const uint64_t elements = number_ - first;
    return Done{.seconds = now - start,
                .elements = static_cast<double>(elements),
                .bytes = static_cast<int64_t>(elements) * load_.element_bytes};
  }

 private:
  const Load load_;
  const std::string name_;
  tcp::Socket socket_;
  std::unique_ptr<Process> producer_;
  Roles roles_;
  uint64_t number_ = 0;
  uint64_t sum_ = 0;
  std::vector<std::byte> slots_[kSocketSlots];
};

// Connects a blocking socket, unlike transfer/tcp.
absl::StatusOr<tcp::Socket> Connect(const tcp::HostAndPort& where, const std::string& congestion) {
  ASSIGN_OR_RETURN(const std::vector<tcp::Endpoint> endpoints,
                   tcp::LookUp(where, /*numeric=*/false));
  int error = 0;
  for (const tcp::Endpoint& endpoint : endpoints) {
    tcp::Socket socket(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    RETURN_IF_ERROR(SetCongestion(socket.fd(), congestion));
    const auto* const address = reinterpret_cast<const sockaddr*>(&endpoint.address);
    if (::connect(socket.fd(), address, endpoint.bytes) == 0) return socket;
    error = errno;
  }
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot connect to ", control::JoinHostPort(where.host, where.port)));
}

// Returns the command line of the writing process.
std::vector<std::string> ProducerWords(const Load& load, const std::string& host, int port,
                                       const std::string& congestion) {
  std::vector<std::string> words =
      load.hosts.two() ? load.hosts.run_there : std::vector<std::string>{""};
  for (std::string word : {std::string("bench-socket"), host, absl::StrCat(port),
                           absl::StrCat(load.element_bytes), absl::StrCat(load.source_bytes)}) {
    words.push_back(std::move(word));
  }
  if (!congestion.empty()) words.push_back(congestion);
  return words;
}

}  // namespace

absl::Status ProduceForSocket(const std::string& host, int port, const Load& load,
                              const std::string& congestion) {
  ASSIGN_OR_RETURN(const tcp::Socket socket, Connect({.host = host, .port = port}, congestion));
  const auto bytes = static_cast<size_t>(load.element_bytes);
  Source source(load.source_bytes);
  std::vector<std::vector<std::byte>> slots(kSocketSlots, std::vector<std::byte>(bytes));
  for (uint64_t number = 0;; ++number) {
    std::vector<std::byte>& slot = slots[number % kSocketSlots];
    source.Fill(slot, number);
    for (size_t at = 0; at < bytes;) {
      const ssize_t put = ::write(socket.fd(), slot.data() + at, bytes - at);
      if (put <= 0) return absl::OkStatus();  // the reader has closed
      at += static_cast<size_t>(put);
    }
  }
}

absl::StatusOr<std::unique_ptr<Side>> MakeSocketLimit(const Load& load,
                                                      const std::string& congestion) {
  const std::string here = load.hosts.two() ? load.hosts.here : "127.0.0.1";
  ASSIGN_OR_RETURN(const tcp::Bound listener, tcp::ListenAt({.host = here, .port = 0}));
  RETURN_IF_ERROR(SetCongestion(listener.socket.fd(), congestion));
  ASSIGN_OR_RETURN(
      std::unique_ptr<Process> producer,
      Process::Start(ProducerWords(load, here, listener.port, congestion), Process::Ends::kBySignal,
                     absl::StrCat(load.scratch, "/socket.log")));
  pollfd ready{.fd = listener.socket.fd(), .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, kConnectMs) <= 0) {
    return producer->ReadLine(absl::Seconds(1)).status();  // why it ended or did not connect
  }
  tcp::Socket socket(::accept4(listener.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));  // blocking
  if (!socket) return absl::ErrnoToStatus(errno, "the socket limit cannot accept");
  return std::make_unique<SocketLimit>(
      load, congestion.empty() ? "socket" : absl::StrCat("socket ", congestion), std::move(socket),
      std::move(producer));
}

absl::StatusOr<std::unique_ptr<Side>> MakeTransferLimit(const Load& load,
                                                        const std::string& protocol) {
  if (!load.hosts.two() && (protocol == "local" || protocol == "shm")) return MakeFillLimit(load);
  // Like tcp, uses cubic only within a host.
  return MakeSocketLimit(load, protocol == "tcp" && !load.hosts.two() ? "cubic" : "");
}

}  // namespace penstock::bench
