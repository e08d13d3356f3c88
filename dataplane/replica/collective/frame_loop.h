// SPDX-License-Identifier: Apache-2.0
// Sends and receives frames over TCP to and from other processes, all on one thread. A frame is a
// 4-byte length, little endian, followed by that number of bytes. An empty frame reports only that
// its sender is alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::replica {

inline constexpr uint32_t kMostFrameBytes = 1u << 30;

class FrameLoop {
 public:
  // Called on the loop's thread. After on_gone(), a peer has no more events.
  struct Events {
    std::function<void(size_t peer, std::string_view frame)> on_frame;
    std::function<void(size_t peer, const absl::Status& why)> on_gone;
  };

  // Peers are numbered by their index in `peers`. A peer that sends no byte for `silence` is gone.
  static absl::StatusOr<std::unique_ptr<FrameLoop>> Start(std::vector<transfer::tcp::Socket> peers,
                                                          std::chrono::milliseconds silence,
                                                          Events events);
  ~FrameLoop() { Stop(); }
  // Spends at most a second on sending the remaining bytes, then closes the connections. No event
  // is called after Stop() has returned. Must not be called on the loop's thread.
  void Stop();

  // Any thread. Frames to a peer that is gone are dropped. REQUIRES: 0 < size ≤ kMostFrameBytes.
  void Send(size_t peer, std::string_view frame);

 private:
  using Clock = SteadyClock;
  struct Peer {
    transfer::tcp::Socket socket;  // none if the peer is gone
    std::string in;
    std::string out;  // guarded by mu_
    size_t sent = 0;  // bytes of `out` that were sent; guarded by mu_
    Clock::time_point heard;
  };

  FrameLoop(std::vector<transfer::tcp::Socket> peers, std::chrono::milliseconds silence,
            Events events);
  void Run();
  void Beat();
  absl::Status Receive(size_t number);
  absl::Status Flush(Peer& peer);
  void Drop(size_t number, const absl::Status& why);
  bool AllSent();

  Mutex mu_;
  std::vector<Peer> peers_;
  const std::chrono::milliseconds silence_;
  const Events events_;
  bool stop_ GUARDED_BY(mu_) = false;
  transfer::tcp::Socket wake_;
  Thread thread_;
};

// Send or receive one frame before the loop exists. DeadlineExceeded after `deadline`.
absl::Status SendFrame(const transfer::tcp::Socket& socket, std::string_view frame,
                       SteadyClock::time_point deadline);
absl::StatusOr<std::string> ReceiveFrame(const transfer::tcp::Socket& socket, uint32_t most_bytes,
                                         SteadyClock::time_point deadline);
// Waits until the socket can be read or written, as `events` asks. Returns false if that is still
// impossible at `deadline`.
bool WaitFor(const transfer::tcp::Socket& socket, short events, SteadyClock::time_point deadline);

}  // namespace penstock::replica
