// SPDX-License-Identifier: Apache-2.0
// Reports which other consumers of a coordinated read are lost, while the trainer's own threads are
// blocked elsewhere. When a rank dies, the other ranks wait in a collective that never ends, and do
// not call Next().
//
//   PENSTOCK_ASSIGN_OR_RETURN(
//       auto on_lost, ps::OnLostConsumer::Start([&](const ps::LostConsumer& lost) {
//         if (lost.state == ps::LostConsumer::State::kEnded) ncclCommAbort(communicator);
//       }));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#pragma GCC visibility push(default)
namespace penstock {

// One change of a consumer's state, as the dispatcher sees it.
struct LostConsumer {
  enum class State {
    kSilent,  // not heard from for 7/4 of a heartbeat interval, at least 1.75 s, or this process
              // does not hear from the dispatcher; the consumer may just be late
    kEnded,   // its connection ended: usually its process ended, or its network failed
    kDead,    // declared dead after `client_timeout`; Next() returns Unavailable
    kBack,    // the consumer, or another process with its number, is heard from again
  };
  std::string job;
  int64_t consumer = 0;
  State state = State::kSilent;
  absl::Time heard;  // when the dispatcher last heard from it
  std::string why;   // "its connection to the dispatcher ended"
  friend bool operator==(const LostConsumer&, const LostConsumer&) = default;
};
std::string_view LostConsumerStateName(LostConsumer::State state);  // "silent", "ended", …

// A queue of the changes, in order, in all jobs that this process reads while the watch exists. A
// consumer that was lost before this process joined the job is not reported, because it may be
// about to return. It is reported if it is later declared dead or returns. If this process has
// several consumers of a job, each of them reports the other consumers separately. Any thread may
// call any method.
class LostConsumerWatch {
 public:
  LostConsumerWatch();
  ~LostConsumerWatch();
  LostConsumerWatch(const LostConsumerWatch&) = delete;
  LostConsumerWatch& operator=(const LostConsumerWatch&) = delete;

  // Waits for the next change. nullopt if there is none by `deadline`, and always after Stop().
  std::optional<LostConsumer> Next(absl::Time deadline = absl::InfiniteFuture());
  void Stop();

  class Changes;

 private:
  const std::shared_ptr<Changes> changes_;
};

// Calls a function for each change, one call at a time, on a thread of its own. The function may
// block. The destructor waits for a running call.
class OnLostConsumer {
 public:
  // ResourceExhausted if no thread can be started.
  static absl::StatusOr<std::unique_ptr<OnLostConsumer>> Start(
      std::function<void(const LostConsumer&)> call);
  ~OnLostConsumer();
  OnLostConsumer(const OnLostConsumer&) = delete;
  OnLostConsumer& operator=(const OnLostConsumer&) = delete;

 private:
  struct Running;
  OnLostConsumer() = default;

  LostConsumerWatch watch_;
  std::unique_ptr<Running> running_;  // set by Start()
};

}  // namespace penstock
#pragma GCC visibility pop
