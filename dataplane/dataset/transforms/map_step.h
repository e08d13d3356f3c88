// SPDX-License-Identifier: Apache-2.0
// What a Map does to one element, wherever its result goes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/function.h"
#include "penstock/tensor.h"

namespace penstock {

// Thread-safe.
class MapStep {
 public:
  // `site` is that of a Map.
  static absl::StatusOr<std::unique_ptr<MapStep>> Create(const BuildSite& site);

  // Applies the function to the leaves of element number `number`. The error names the node.
  absl::Status Run(absl::Span<const Tensor> input, int64_t number, ResultSink& sink);

  // Calls at a time; 1: on the caller's thread. Where the dataset leaves it open, more
  // than cores once calls are seen to wait for something else than a core.
  int parallelism() const { return parallelism_.load(std::memory_order_relaxed); }
  // Whether the dataset leaves that open.
  bool autotune() const { return autotune_; }
  // Whether `calls` of them are so quick that giving them to another thread
  // costs more than it gains. False where the dataset asks for threads.
  bool QuickerAlone(int64_t calls) const {
    return autotune_ && calls * mean_ns_.load(std::memory_order_relaxed) < kWorthHandingOverNs;
  }

  // How many of them, as they took so far, are worth being given to another thread at once.
  int64_t WorthACall() const {
    return kWorthACallNs / std::max<int64_t>(1, mean_ns_.load(std::memory_order_relaxed));
  }

 private:
  static constexpr int64_t kWorthACallNs = 200'000;
  static constexpr int64_t kWorthHandingOverNs = 10'000;  // some wake-ups of a thread

  explicit MapStep(const BuildSite& site)
      : name_(site.name()), random_(site.Random()), profile_(site.profile()) {}
  absl::Status Call(absl::Span<const Tensor> input, const RandomKey& random,
                    ResultSink& sink) const;
  absl::Status TimedCall(absl::Span<const Tensor> input, const RandomKey& random, ResultSink& sink);
  // Lets so many calls run at once that as many as before compute.
  void MakeUpForWaiting(double share_waited);

  const std::string name_;
  const RandomKey random_;
  std::shared_ptr<const BoundFunction> function_;
  NodeProfile* const profile_;
  std::atomic<int> parallelism_{1};
  int cores_ = 1;  // parallelism of calls that never wait
  int most_ = 1;   // of those that do
  bool autotune_ = false;
  bool grows_ = false;
  std::atomic<double> share_waited_{0};  // of a call's time, weighed towards the latest
  std::atomic<int64_t> mean_ns_{0};      // of a call, weighed towards the latest
};

}  // namespace penstock
