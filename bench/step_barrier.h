// SPDX-License-Identifier: Apache-2.0
// Trainers of one host that wait for each other behind each step, as those that train
// one model do; and how far apart they got their elements, and what these cost them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

// Of one thread. All trainers of a case open the same one, in the folder of the case.
class StepBarrier {
 public:
  // ResourceExhausted, naming the file, if it cannot be made; InvalidArgument for more
  // trainers than it holds, 64.
  static absl::StatusOr<std::unique_ptr<StepBarrier>> Open(const Setup& setup);
  ~StepBarrier();
  StepBarrier(const StepBarrier&) = delete;
  StepBarrier& operator=(const StepBarrier&) = delete;

  // This trainer has its element of the step, on which it will compute for `step_s` seconds.
  void Received(double step_s);
  // Waits for all others to end the step. Whether a further one follows, which trainer
  // 0 says for all. Aborted if one does not come for two minutes.
  absl::StatusOr<bool> Wait(bool more);
  // Of the steps since the last call; none from other trainers than 0, which measures for all.
  std::optional<InStep> Take();

 private:
  struct Shared;
  StepBarrier(Shared& shared, int trainer, int trainers)
      : shared_(shared), trainer_(trainer), trainers_(trainers) {}

  Shared& shared_;
  const int trainer_;
  const int trainers_;
  uint32_t step_ = 0;
  std::vector<float> skews_us_, spreads_;  // a step each
};

}  // namespace penstock::bench
