// SPDX-License-Identifier: Apache-2.0
// What the machine can do without us: the other half of each pair.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "bench/source.h"

namespace bench {

inline constexpr int kSlots = 4;

// A blocking loopback socket from a process that fills slots from a cold source,
// read straight into 4 slots and summed. `congestion` is that of the side it
// stands beside; "": the machine's.
class SocketLimit {
 public:
  SocketLimit(size_t element_bytes, const std::string& congestion) : bytes_(element_bytes) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    SetCongestion(listener, congestion);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::listen(listener, 1) != 0) {
      std::perror("socket limit");
      std::exit(1);
    }
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    child_ = ::fork();
    if (child_ == 0) Produce(listener);
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    SetCongestion(fd_, congestion);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), length) != 0) {
      std::perror("socket limit");
      std::exit(1);
    }
    ::close(listener);
    for (auto& slot : slots_) slot.resize(bytes_);
  }
  ~SocketLimit() {
    ::close(fd_);
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  pid_t child() const { return child_; }

  // Bytes read and summed in about `seconds`.
  double Read(double seconds) {
    const double end = Now() + seconds;
    double read = 0;
    while (Now() < end) {
      std::vector<std::byte>& slot = slots_[number_ % kSlots];
      for (size_t at = 0; at < bytes_;) {
        const ssize_t got = ::read(fd_, slot.data() + at, bytes_ - at);
        if (got <= 0) {
          std::perror("socket limit: read");
          std::exit(1);
        }
        at += got;
      }
      sum_ += SumOf(slot);
      if (!IsStamped(slot, number_)) {
        std::fprintf(stderr, "socket limit: element %llu is wrong\n", (unsigned long long)number_);
        std::exit(1);
      }
      ++number_;
      read += static_cast<double>(bytes_);
    }
    return read;
  }

 private:
  static void SetCongestion(int fd, const std::string& name) {
    if (name.empty()) return;
    if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), name.size()) != 0) {
      std::perror("socket limit: congestion control");
      std::exit(1);
    }
  }

  [[noreturn]] void Produce(int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    ColdSource source;
    std::vector<std::vector<std::byte>> slots(kSlots, std::vector<std::byte>(bytes_));
    for (uint64_t number = 0;; ++number) {
      std::vector<std::byte>& slot = slots[number % kSlots];
      source.Fill(slot, number);
      for (size_t at = 0; at < bytes_;) {
        const ssize_t put = ::write(fd, slot.data() + at, bytes_ - at);
        if (put <= 0) ::_exit(0);
        at += put;
      }
    }
  }

  size_t bytes_;
  pid_t child_ = 0;
  int fd_ = -1;
  uint64_t number_ = 0;
  uint64_t sum_ = 0;
  std::vector<std::byte> slots_[kSlots];
};

// fill1: one thread copies from a cold source into 4 slots, a second sums them.
class FillLimit {
 public:
  explicit FillLimit(size_t element_bytes) : bytes_(element_bytes) {
    for (auto& slot : slots_) slot.resize(bytes_);
  }

  double Read(double seconds) {
    std::atomic<uint64_t> filled{number_}, summed{number_};
    std::atomic<bool> stop{false};
    const uint64_t first = number_;
    std::thread filler([&] {
      for (uint64_t n = first; !stop; ++n) {
        while (n - summed.load(std::memory_order_acquire) >= kSlots && !stop)
          std::this_thread::yield();
        source_.Fill(slots_[n % kSlots], n);
        filled.store(n + 1, std::memory_order_release);
      }
    });
    const double end = Now() + seconds;
    while (Now() < end) {
      while (filled.load(std::memory_order_acquire) <= number_) std::this_thread::yield();
      sum_ += SumOf(slots_[number_ % kSlots]);
      summed.store(++number_, std::memory_order_release);
    }
    stop = true;
    filler.join();
    return static_cast<double>((number_ - first) * bytes_);
  }

 private:
  size_t bytes_;
  ColdSource source_;
  uint64_t number_ = 0;
  uint64_t sum_ = 0;
  std::vector<std::byte> slots_[kSlots];
};

}  // namespace bench
