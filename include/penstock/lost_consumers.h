// SPDX-License-Identifier: Apache-2.0
// Which other consumers of a coordinated read are lost, told while the trainer's own threads wait
// elsewhere: a rank that dies leaves the others in a collective that never ends, and they do not
// call Next() then.
//
//   ASSIGN_OR_RETURN(auto on_lost, ps::OnLostConsumer::Start([&](const ps::LostConsumer& lost) {
//     if (lost.state == ps::LostConsumer::State::kEnded) ncclCommAbort(communicator);
//   }));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock {

// One change, as the dispatcher sees it.
struct LostConsumer {
  enum class State {
    kSilent,  // not heard for 7/4 of a heartbeat and 1.75 s at least, or this process does not hear
              // the dispatcher; it may only be late
    kEnded,   // its connection ended: its process did, as a rule, or its network broke
    kDead,    // declared dead after `client_timeout`; Next() is Unavailable
    kBack,    // heard again: it, or another process with its number
  };
  std::string job;
  int64_t consumer = 0;
  State state = State::kSilent;
  absl::Time heard;  // last, by the dispatcher
  std::string why;   // "its connection to the dispatcher ended"
  friend bool operator==(const LostConsumer&, const LostConsumer&) = default;
};
std::string_view LostConsumerStateName(LostConsumer::State state);  // "silent", "ended", …

// Changes in all jobs that this process reads while the watch lives, in their order. That a
// consumer was lost before this process joined the job is none, as it may be on its way back; that
// it then dies or is back is one. Where the process is several consumers of a job, each of them
// hears of the others by itself. Any thread.
class LostConsumerWatch {
 public:
  LostConsumerWatch();
  ~LostConsumerWatch();
  LostConsumerWatch(const LostConsumerWatch&) = delete;
  LostConsumerWatch& operator=(const LostConsumerWatch&) = delete;

  // The next change; nullopt when there is none by `deadline`, and ever after once Stop() was
  // called.
  std::optional<LostConsumer> Next(absl::Time deadline = absl::InfiniteFuture());
  void Stop();

  class Changes;

 private:
  const std::shared_ptr<Changes> changes_;
};

// Calls a function for each change, one after the other, in a thread of its own, in which it may
// wait. Destroying it waits for the call under way.
class OnLostConsumer {
 public:
  // ResourceExhausted where the process gets no thread.
  static absl::StatusOr<std::unique_ptr<OnLostConsumer>> Start(
      std::function<void(const LostConsumer&)> call);
  ~OnLostConsumer();
  OnLostConsumer(const OnLostConsumer&) = delete;
  OnLostConsumer& operator=(const OnLostConsumer&) = delete;

 private:
  OnLostConsumer() = default;

  LostConsumerWatch watch_;
  std::thread thread_;
};

}  // namespace penstock
