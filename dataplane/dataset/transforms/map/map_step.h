// SPDX-License-Identifier: Apache-2.0
// The work of a Map on one element, independent of where its result goes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/expr/function.h"
#include "penstock/tensor.h"

namespace penstock {

// Thread-safe.
class MapStep {
 public:
  // `site` is the site of a Map.
  static absl::StatusOr<std::unique_ptr<MapStep>> Create(const BuildSite& site);

  // Applies the function to the leaves of element `number`. The error names the node.
  absl::Status Run(absl::Span<const Tensor> input, int64_t number, ResultSink& sink);

  // The number of calls at a time. With 1, calls run on the caller's thread. If the dataset leaves
  // it open, it exceeds the number of cores once calls are found to wait for something other than a
  // core.
  int parallelism() const { return parallelism_.load(std::memory_order_relaxed); }
  // Returns whether the dataset leaves the number open.
  bool autotune() const { return autotune_; }
  // Returns whether `calls` calls are so short that another thread would cost more than it gains.
  // False if the dataset asks for threads.
  bool QuickerAlone(int64_t calls) const {
    return autotune_ && calls * mean_ns_.load(std::memory_order_relaxed) < kWorthHandingOverNs;
  }

  // Returns how many calls, at their mean duration so far, are worth a hand-over to another thread.
  int64_t WorthACall() const {
    return kWorthACallNs / std::max<int64_t>(1, mean_ns_.load(std::memory_order_relaxed));
  }

 private:
  static constexpr int64_t kWorthACallNs = 200'000;
  static constexpr int64_t kWorthHandingOverNs = 10'000;  // some thread wake-ups

  explicit MapStep(const BuildSite& site)
      : name_(site.name()), random_(site.Random()), profile_(site.profile()) {}
  absl::Status Call(absl::Span<const Tensor> input, const RandomKey& random,
                    ResultSink& sink) const;
  absl::Status TimedCall(absl::Span<const Tensor> input, const RandomKey& random, ResultSink& sink);
  // Sets the parallelism so that about `cores_` calls compute while others wait.
  void MakeUpForWaiting(double share_waited);

  const std::string name_;
  const RandomKey random_;
  std::shared_ptr<const BoundFunction> function_;
  NodeProfile* const profile_;
  std::atomic<int> parallelism_{1};
  int cores_ = 1;  // parallelism of calls that never wait
  int most_ = 1;   // limit for calls that wait
  bool autotune_ = false;
  bool grows_ = false;
  std::atomic<double> share_waited_{0};  // of a call's time, weighted to recent calls
  std::atomic<int64_t> mean_ns_{0};      // of a call, weighted to recent calls
};

}  // namespace penstock
