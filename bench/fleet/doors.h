// SPDX-License-Identifier: Apache-2.0
// Listening sockets of workers that serve nobody. A dispatcher whose stream from a worker has
// broken connects to the worker's address: a refused connection shows that the worker is dead.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "control/env/descriptor.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::bench {

// Each worker has a loopback address of its own, 127.1.x.y, and all have the same port, so that
// thousands of them use up no ports. Any thread may call any method.
class Doors {
 public:
  static absl::StatusOr<std::unique_ptr<Doors>> Start();
  ~Doors();
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;

  // Returns the "host:port" of this worker, which accepts connections and closes them.
  // `worker`: from 1 to 65,535, and not open yet. The system's error if there is no socket.
  absl::StatusOr<std::string> Open(uint64_t worker);
  // From now on, connections to the worker's address are refused.
  void Close(uint64_t worker);

 private:
  Doors(Descriptor events, Descriptor end) : events_(std::move(events)), end_(std::move(end)) {}
  void Run();

  const Descriptor events_;  // epoll
  const Descriptor end_;     // readable once the thread must end
  Mutex mu_;
  uint16_t port_ GUARDED_BY(mu_) = 0;  // 0: none yet
  std::map<uint64_t, Descriptor> open_ GUARDED_BY(mu_);
  Thread thread_;
};

}  // namespace penstock::bench
