// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map_step.h"

#include <chrono>

#include "dataplane/dataset/transforms/element_tensors.h"
#include "dataplane/dataset/transforms/thread_pool.h"
#include "penstock/status.h"

namespace penstock {

absl::StatusOr<std::unique_ptr<MapStep>> MapStep::Create(const BuildSite& site) {
  auto step = std::unique_ptr<MapStep>(new MapStep(site));
  ASSIGN_OR_RETURN(step->function_,
                   site.Bind(site.attr<std::shared_ptr<const FunctionDef>>("function")));
  const int64_t calls = site.attr<int64_t>("num_parallel_calls");
  step->parallelism_ = Parallelism(calls, site.threads());
  step->autotune_ = calls == kAutotune;
  return step;
}

absl::Status MapStep::Run(const Element& input, int64_t number, ResultSink& sink) {
  constexpr int64_t kTimed =
      8;  // one call in so many: reading the clock costs as much as a quick call
  RandomKey random = random_;
  random.element = static_cast<uint64_t>(number);
  if (!autotune_ || number % kTimed != 0) return Call(input, random, sink);
  const auto begin = std::chrono::steady_clock::now();
  absl::Status status = Call(input, random, sink);
  const int64_t took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  const int64_t mean = mean_ns_.load(std::memory_order_relaxed);
  mean_ns_.store(mean + (took - mean) / 4, std::memory_order_relaxed);
  return status;
}

absl::Status MapStep::Call(const Element& input, const RandomKey& random, ResultSink& sink) const {
  const ElementTensors tensors(input);
  absl::Status run = function_->Run(tensors, random, sink);
  return run.ok() ? run : Annotate(run, "in ", name_, ", element ", random.element);
}

}  // namespace penstock
