// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/collective/frame_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

using transfer::tcp::BrokenBy;
using transfer::tcp::Socket;
using Clock = SteadyClock;

constexpr std::chrono::milliseconds kBeat(200);
constexpr std::chrono::seconds kFarewell(1);
constexpr size_t kPrefixBytes = 4;

std::string Framed(std::string_view frame) {
  const auto bytes = static_cast<uint32_t>(frame.size());
  std::string framed(kPrefixBytes, '\0');
  for (size_t i = 0; i < kPrefixBytes; ++i) framed[i] = static_cast<char>(bytes >> (8 * i));
  return framed.append(frame);
}

uint32_t LengthOf(const char* prefix) {
  uint32_t bytes = 0;
  for (size_t i = 0; i < kPrefixBytes; ++i)
    bytes |= static_cast<uint32_t>(static_cast<unsigned char>(prefix[i])) << (8 * i);
  return bytes;
}

bool Later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 1 << 30));
}

absl::Status TooLong(uint32_t bytes, uint32_t most) {
  return absl::DataLossError(absl::StrCat("a frame has ", bytes, " bytes, but the limit is ", most,
                                          "; the peer is not a rank of this release"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FrameLoop>> FrameLoop::Start(std::vector<Socket> peers,
                                                            std::chrono::milliseconds silence,
                                                            Events events) {
  std::unique_ptr<FrameLoop> loop(new FrameLoop(std::move(peers), silence, std::move(events)));
  loop->wake_ = Socket(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!loop->wake_) return BrokenBy("eventfd", errno);
  ASSIGN_OR_RETURN(loop->thread_,
                   StartThread("the connections of ranks", [l = loop.get()] { l->Run(); }));
  return loop;
}

FrameLoop::FrameLoop(std::vector<Socket> peers, std::chrono::milliseconds silence, Events events)
    : silence_(silence), events_(std::move(events)) {
  for (Socket& socket : peers) {
    Peer& peer = peers_.emplace_back();
    peer.socket = std::move(socket);
    peer.heard = Clock::now();
  }
}

void FrameLoop::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  ::eventfd_write(wake_.fd(), 1);
  thread_.join();
  for (Peer& peer : peers_)
    if (peer.socket) peer.socket.HangUp();
}

void FrameLoop::Send(size_t peer, std::string_view frame) {
  {
    MutexLock lock(mu_);
    if (!peers_[peer].socket) return;
    peers_[peer].out.append(Framed(frame));
  }
  ::eventfd_write(wake_.fd(), 1);
}

void FrameLoop::Run() {
  Clock::time_point next_beat = Clock::now();
  Clock::time_point end = Clock::time_point::max();
  std::vector<pollfd> polled;
  while (true) {
    const Clock::time_point now = Clock::now();
    if (now >= next_beat) {
      // Time during which this process did not run does not count as its peers' silence.
      if (const auto late = now - next_beat; late > kBeat)
        for (Peer& peer : peers_) peer.heard += late;
      Beat();
      next_beat = now + kBeat;
    }
    polled.assign(1, {wake_.fd(), POLLIN, 0});
    {
      MutexLock lock(mu_);
      if (stop_ && end == Clock::time_point::max()) end = now + kFarewell;
      for (const Peer& peer : peers_) {
        const bool more = peer.sent < peer.out.size();
        polled.push_back({peer.socket.fd(), static_cast<short>(POLLIN | (more ? POLLOUT : 0)), 0});
      }
    }
    if (end != Clock::time_point::max() && (now >= end || AllSent())) return;
    ::poll(polled.data(), polled.size(), MillisecondsUntil(std::min(next_beat, end)));
    if (polled[0].revents != 0) {
      eventfd_t count;
      ::eventfd_read(wake_.fd(), &count);
    }
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (!peers_[i].socket) continue;
      absl::Status status = Flush(peers_[i]);
      if ((polled[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) status.Update(Receive(i));
      if (!status.ok()) Drop(i, status);
    }
  }
}

bool FrameLoop::AllSent() {
  MutexLock lock(mu_);
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return !peer.socket || peer.sent == peer.out.size(); });
}

void FrameLoop::Beat() {
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].socket) continue;
    if (now - peers_[i].heard > silence_) {
      Drop(i, absl::UnavailableError(
                  absl::StrCat("nothing was received from it for ", silence_.count(), " ms")));
      continue;
    }
    MutexLock lock(mu_);
    if (peers_[i].sent == peers_[i].out.size()) peers_[i].out.append(Framed(""));
  }
}

absl::Status FrameLoop::Flush(Peer& peer) {
  MutexLock lock(mu_);
  while (peer.sent < peer.out.size()) {
    const ssize_t sent = ::send(peer.socket.fd(), peer.out.data() + peer.sent,
                                peer.out.size() - peer.sent, MSG_NOSIGNAL);
    if (sent < 0) return Later(errno) ? absl::OkStatus() : BrokenBy("its connection", errno);
    peer.sent += static_cast<size_t>(sent);
  }
  peer.out.clear();
  peer.sent = 0;
  return absl::OkStatus();
}

absl::Status FrameLoop::Receive(size_t number) {
  Peer& peer = peers_[number];
  absl::Status status;
  char bytes[64 << 10];
  while (status.ok()) {
    const ssize_t got = ::recv(peer.socket.fd(), bytes, sizeof(bytes), 0);
    if (got > 0) {
      peer.heard = Clock::now();  // a slow frame is not silence
      peer.in.append(bytes, static_cast<size_t>(got));
    } else if (got == 0)
      status = absl::UnavailableError("its connection was closed");
    else if (Later(errno))
      break;
    else
      status = BrokenBy("its connection", errno);
  }
  // Frames that arrived before the end are still delivered.
  size_t at = 0;
  while (peer.in.size() - at >= kPrefixBytes) {
    const uint32_t length = LengthOf(peer.in.data() + at);
    if (length > kMostFrameBytes) return TooLong(length, kMostFrameBytes);
    if (peer.in.size() - at - kPrefixBytes < length) break;
    if (length > 0)
      events_.on_frame(number, std::string_view(peer.in).substr(at + kPrefixBytes, length));
    at += kPrefixBytes + length;
  }
  peer.in.erase(0, at);
  return status;
}

void FrameLoop::Drop(size_t number, const absl::Status& why) {
  {
    MutexLock lock(mu_);
    peers_[number].socket.HangUp();
    peers_[number].out.clear();
    peers_[number].sent = 0;
  }
  events_.on_gone(number, why);
}

bool WaitFor(const Socket& socket, short events, Clock::time_point deadline) {
  pollfd polled{socket.fd(), events, 0};
  while (true) {
    const int ready = ::poll(&polled, 1, MillisecondsUntil(deadline));
    if (ready > 0) return true;
    if (Clock::now() >= deadline) return false;
  }
}

absl::Status SendFrame(const Socket& socket, std::string_view frame, Clock::time_point deadline) {
  const std::string framed = Framed(frame);
  size_t sent = 0;
  while (sent < framed.size()) {
    if (!WaitFor(socket, POLLOUT, deadline))
      return absl::DeadlineExceededError("the peer reads nothing");
    const ssize_t more =
        ::send(socket.fd(), framed.data() + sent, framed.size() - sent, MSG_NOSIGNAL);
    if (more >= 0)
      sent += static_cast<size_t>(more);
    else if (!Later(errno))
      return BrokenBy("its connection", errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveFrame(const Socket& socket, uint32_t most_bytes,
                                         Clock::time_point deadline) {
  std::string in;
  size_t wanted = kPrefixBytes;
  while (in.size() < wanted) {
    if (!WaitFor(socket, POLLIN, deadline))
      return absl::DeadlineExceededError("the peer sends nothing");
    char bytes[4096];
    // Does not read beyond the frame, because the bytes that follow are for the loop.
    const ssize_t got = ::recv(socket.fd(), bytes, std::min(sizeof(bytes), wanted - in.size()), 0);
    if (got == 0) return absl::UnavailableError("its connection was closed");
    if (got < 0 && !Later(errno)) return BrokenBy("its connection", errno);
    if (got > 0) in.append(bytes, static_cast<size_t>(got));
    if (in.size() == kPrefixBytes && wanted == kPrefixBytes) {
      const uint32_t length = LengthOf(in.data());
      if (length > most_bytes) return TooLong(length, most_bytes);
      wanted += length;
    }
  }
  return in.substr(kPrefixBytes);
}

}  // namespace penstock::replica
