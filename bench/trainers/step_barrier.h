// SPDX-License-Identifier: Apache-2.0
// A barrier for trainers of one host that wait for each other after each step, like trainers of one
// model. Measures how far apart in time they get their elements, and their computing times.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

// Used by one thread. All trainers of a case open the same barrier, in the folder of the case.
class StepBarrier {
 public:
  // Opens the barrier of the case. ResourceExhausted, naming the file, if it cannot be made;
  // InvalidArgument for more than 64 trainers.
  static absl::StatusOr<std::unique_ptr<StepBarrier>> Open(const Setup& setup);
  ~StepBarrier();
  StepBarrier(const StepBarrier&) = delete;
  StepBarrier& operator=(const StepBarrier&) = delete;

  // This trainer has received its element of the step, and will compute on it for `step_s` seconds.
  void Received(double step_s);
  // Waits for all others to end the step. Returns whether there is a next step, which trainer 0
  // decides for all. Aborted if another trainer does not reach the barrier within two minutes.
  absl::StatusOr<bool> Wait(bool more);
  // Returns the figures of all trainers over the steps since the last call. Only trainer 0 has
  // them.
  std::optional<InStep> Take();

 private:
  struct Shared;
  StepBarrier(Shared& shared, int trainer, int trainers)
      : shared_(shared), trainer_(trainer), trainers_(trainers) {}

  Shared& shared_;
  const int trainer_;
  const int trainers_;
  uint32_t step_ = 0;
  std::vector<float> skews_us_, spreads_;  // one value a step
};

}  // namespace penstock::bench
