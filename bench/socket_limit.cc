// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "bench/interrupt.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "bench/process.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

constexpr uint64_t kSocketSlots = 4;
constexpr int kConnectMs = 60'000;

// Closed when it goes.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_;
};

absl::Status SetCongestion(int fd, const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), name.size()) == 0)
    return absl::OkStatus();
  return absl::ErrnoToStatus(
      errno, absl::StrCat("the socket limit cannot have ", name, " as congestion control"));
}

class SocketLimit final : public Side {
 public:
  SocketLimit(const Load& load, std::string name, int fd, std::unique_ptr<Process> producer)
      : load_(load),
        name_(std::move(name)),
        fd_(fd),
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
        const ssize_t got = ::read(fd_.fd(), slot.data() + at, slot.size() - at);
        if (got <= 0) return absl::ErrnoToStatus(errno, "the socket limit cannot read");
        at += static_cast<size_t>(got);
      }
      sum_ += SumOf(slot, load_.touch);
      if (!IsStamped(slot, number_)) {
        return absl::DataLossError("the socket limit read an element that was not due");
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
  Socket fd_;
  std::unique_ptr<Process> producer_;
  Roles roles_;
  uint64_t number_ = 0;
  uint64_t sum_ = 0;
  std::vector<std::byte> slots_[kSocketSlots];
};

absl::StatusOr<sockaddr_in> AddressOf(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::NotFoundError(
        absl::StrCat("no address of host ", host, ": ", ::gai_strerror(error)));
  }
  sockaddr_in address = *reinterpret_cast<sockaddr_in*>(found->ai_addr);
  ::freeaddrinfo(found);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// The words of the process that writes.
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
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  PENSTOCK_RETURN_IF_ERROR(SetCongestion(socket.fd(), congestion));
  PENSTOCK_ASSIGN_OR_RETURN(sockaddr_in address, AddressOf(host, port));
  if (::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot connect to ", host, ":", port));
  }
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
  const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  PENSTOCK_RETURN_IF_ERROR(SetCongestion(listener.fd(), congestion));
  PENSTOCK_ASSIGN_OR_RETURN(sockaddr_in address, AddressOf(here, 0));
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.fd(), any, length) != 0 || ::listen(listener.fd(), 1) != 0 ||
      ::getsockname(listener.fd(), any, &length) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("the socket limit cannot listen at ", here));
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      std::unique_ptr<Process> producer,
      Process::Start(ProducerWords(load, here, ntohs(address.sin_port), congestion),
                     Process::Ends::kBySignal, absl::StrCat(load.scratch, "/socket.log")));
  pollfd ready{.fd = listener.fd(), .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, kConnectMs) <= 0) {
    return producer->ReadLine(absl::Seconds(1)).status();  // why it ended, or that it is silent
  }
  const int fd = ::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "the socket limit cannot accept");
  return std::make_unique<SocketLimit>(
      load, congestion.empty() ? "socket" : absl::StrCat("socket ", congestion), fd,
      std::move(producer));
}

absl::StatusOr<std::unique_ptr<Side>> MakeTransferLimit(const Load& load,
                                                        const std::string& protocol) {
  if (!load.hosts.two() && (protocol == "local" || protocol == "shm")) return MakeFillLimit(load);
  // Which tcp sets within a host alone.
  return MakeSocketLimit(load, protocol == "tcp" && !load.hosts.two() ? "cubic" : "");
}

}  // namespace penstock::bench
