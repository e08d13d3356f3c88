// SPDX-License-Identifier: Apache-2.0
// How many calls of a parallel node run at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "dataplane/dataset/engine/profile.h"

namespace penstock {

// Thread-safe.
class Parallelism {
 public:
  // `calls` is the number that the dataset asks for (kAutotune: as many as allowed), and `threads`
  // is the run's number of threads (0: one per core). `most` is the limit on the number of calls at
  // a time if calls wait for something other than a core. `profile` may be null.
  Parallelism(int64_t calls, int threads, std::optional<int> most, NodeProfile* profile);

  // The number of calls at a time. With 1, calls run on the caller's thread. If the dataset leaves
  // the number open, the number rises above that of the cores once calls are found to wait for
  // something other than a core.
  int calls() const { return calls_.load(std::memory_order_relaxed); }
  // Returns whether the dataset leaves the number open.
  bool autotune() const { return autotune_; }
  // Returns whether `calls` calls are so short that another thread would cost more than it gains.
  // False if the dataset sets the number of calls at a time.
  bool QuickerAlone(int64_t calls) const {
    return autotune_ && calls * mean_ns_.load(std::memory_order_relaxed) < kWorthHandingOverNs;
  }
  // Returns the number of calls that, at their mean duration so far, are together worth a hand-over
  // to another thread.
  int64_t WorthACall() const {
    return kWorthACallNs / std::max<int64_t>(1, mean_ns_.load(std::memory_order_relaxed));
  }

  // Makes a call, and learns from it how long calls take and how long they wait.
  absl::Status Timed(absl::FunctionRef<absl::Status()> call);

 private:
  static constexpr int64_t kWorthACallNs = 200'000;
  static constexpr int64_t kWorthHandingOverNs = 10'000;  // the time of a few thread wake-ups

  // Sets the number so that about `cores_` calls compute while others wait.
  void MakeUpForWaiting(double share_waited);

  const int cores_;  // calls at a time if no call waits
  const int most_;   // limit on calls at a time if calls wait
  const bool autotune_;
  const bool grows_;
  NodeProfile* const profile_;
  std::atomic<int> calls_;
  std::atomic<double> share_waited_{0};  // of a call's time, weighted towards recent calls
  std::atomic<int64_t> mean_ns_{0};      // of a call, weighted towards recent calls
};

}  // namespace penstock
