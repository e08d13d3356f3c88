// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <vector>

#include "bench/limits.h"
#include "bench/measure.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

constexpr uint64_t kSlots = 4;

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

// Fills and writes until the reader closes.
[[noreturn]] void Produce(int listener, const Load& load) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int fd = ::accept(listener, nullptr, nullptr);
  const auto bytes = static_cast<size_t>(load.element_bytes);
  Source source(load.source_bytes);
  std::vector<std::vector<std::byte>> slots(kSlots, std::vector<std::byte>(bytes));
  for (uint64_t number = 0;; ++number) {
    std::vector<std::byte>& slot = slots[number % kSlots];
    source.Fill(slot, number);
    for (size_t at = 0; at < bytes;) {
      const ssize_t put = ::write(fd, slot.data() + at, bytes - at);
      if (put <= 0) ::_exit(0);
      at += static_cast<size_t>(put);
    }
  }
}

class SocketLimit final : public Side {
 public:
  SocketLimit(const Load& load, std::string name, int fd, pid_t producer)
      : load_(load),
        name_(std::move(name)),
        fd_(fd),
        producer_(producer),
        roles_{{"limit", {::getpid(), producer}}} {
    for (auto& slot : slots_) slot.resize(load.element_bytes);
  }
  ~SocketLimit() override {
    ::kill(producer_, SIGKILL);
    ::waitpid(producer_, nullptr, 0);
  }

  std::string name() const override { return name_; }
  const Roles& roles() const override { return roles_; }

  absl::StatusOr<Done> Read(double seconds) override {
    const double start = Now();
    double now = start;
    const uint64_t first = number_;
    while (now < start + seconds) {
      std::vector<std::byte>& slot = slots_[number_ % kSlots];
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
  pid_t producer_;
  Roles roles_;
  uint64_t number_ = 0;
  uint64_t sum_ = 0;
  std::vector<std::byte> slots_[kSlots];
};

}  // namespace

absl::StatusOr<std::unique_ptr<Side>> MakeSocketLimit(const Load& load,
                                                      const std::string& congestion) {
  const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  PENSTOCK_RETURN_IF_ERROR(SetCongestion(listener.fd(), congestion));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.fd(), any, length) != 0 || ::listen(listener.fd(), 1) != 0 ||
      ::getsockname(listener.fd(), any, &length) != 0) {
    return absl::ErrnoToStatus(errno, "the socket limit cannot listen");
  }
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const pid_t producer = fd < 0 ? -1 : ::fork();
  if (producer == 0) Produce(listener.fd(), load);
  if (producer < 0) return absl::ErrnoToStatus(errno, "the socket limit cannot start");
  auto limit = std::make_unique<SocketLimit>(
      load, congestion.empty() ? "socket" : absl::StrCat("socket ", congestion), fd, producer);
  PENSTOCK_RETURN_IF_ERROR(SetCongestion(fd, congestion));
  if (::connect(fd, any, length) != 0) {
    return absl::ErrnoToStatus(errno, "the socket limit cannot connect");
  }
  return limit;
}

absl::StatusOr<std::unique_ptr<Side>> MakeTransferLimit(const Load& load,
                                                        const std::string& protocol) {
  if (protocol == "local" || protocol == "shm") return MakeFillLimit(load);
  return MakeSocketLimit(load, protocol == "tcp" ? "cubic" : "");
}

}  // namespace penstock::bench
