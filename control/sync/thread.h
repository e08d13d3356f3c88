// SPDX-License-Identifier: Apache-2.0
// Starts, identifies and delays threads. All threads of the service start here. In a simulation,
// they are fibers (simulation.h).
#pragma once

#include <cstdint>
#include <new>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock {

// Identifies a thread that runs. A default-constructed id belongs to no thread.
struct ThreadId {
  uint64_t number = 0;
  friend bool operator==(ThreadId, ThreadId) = default;
};

// Returns the calling thread.
ThreadId CurrentThread();

// A running thread, or none. Like std::thread: join() or detach() a thread before its Thread is
// destroyed or replaced.
class Thread {
 public:
  using Run = absl::AnyInvocable<void() &&>;

  // Returns NoThread() if the process gets no thread.
  static absl::StatusOr<Thread> Start(std::string_view name, Run run);

  Thread() = default;
  Thread(Thread&& other) noexcept { *this = std::move(other); }
  Thread& operator=(Thread&& other) noexcept {
    thread_ = std::move(other.thread_);
    fiber_ = std::exchange(other.fiber_, 0);
    return *this;
  }

  bool joinable() const { return thread_.joinable() || fiber_ != 0; }
  void join();
  void detach();
  ThreadId get_id();
  // REQUIRES: joinable(), and no simulation.
  std::thread::native_handle_type native_handle() { return thread_.native_handle(); }

 private:
  std::thread thread_;
  uint64_t fiber_ = 0;  // in a simulation, in place of thread_
};

// Returns ResourceExhausted with a message that begins with `name` and contains `why` and a remedy.
absl::Status NoThread(std::string_view name, std::string_view why);

// Starts a thread that runs `run`, or returns NoThread(). `name`: the thread's task, for the error.
template <class Run>
absl::StatusOr<Thread> StartThread(std::string_view name, Run&& run) {
  try {
    return Thread::Start(name, Thread::Run(std::forward<Run>(run)));
  } catch (const std::bad_alloc& error) {
    return NoThread(name, error.what());
  }
}

// Returns the number of threads that the machine can run at once, at least 1.
int Cores();

// Return after `time`. The second function also returns when a stop is requested.
void Sleep(absl::Duration time);
void Sleep(absl::Duration time, std::stop_token stop);

}  // namespace penstock
