// SPDX-License-Identifier: Apache-2.0
// CR: rounds of 1 MiB for each of k trainers that wait for each other after every step and compute
// nothing. The limit is four times the rate of tf.data service on two such cores.
#include "absl/strings/str_cat.h"
#include "bench/limits/limits.h"
#include "bench/workloads/buffers.h"

namespace penstock::bench {
namespace {

// Rounds a second with TensorFlow 2.21 and one worker, by the number of consumers.
double TfDataRounds(int consumers) {
  return consumers <= 2 ? 503 : 241;
}

class CoordinatedBuffers final : public Buffers {
 public:
  CoordinatedBuffers()
      : Buffers("CR", "rounds of 1 MiB for k trainers that wait for each other at each step",
                Touch::kEveryPage, /*cold=*/true) {}

  std::vector<int64_t> sizes() const override { return {1 << 20}; }
  std::vector<Shape> shapes() const override {
    return {{.consumers = 2, .coordinated = true}, {.consumers = 4, .coordinated = true}};
  }
  bool in_step() const override { return true; }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    return MakeBar("4 x tf.data service", 4 * TfDataRounds(setup.consumers) * setup.consumers,
                   setup.element_bytes);
  }
};

}  // namespace

const Workload& Coordinated() {
  static const CoordinatedBuffers& coordinated = *new CoordinatedBuffers;
  return coordinated;
}

}  // namespace penstock::bench
