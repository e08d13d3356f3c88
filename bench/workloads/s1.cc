// SPDX-License-Identifier: Apache-2.0
// S1: one named job shared by several trainers, and one trainer fed by several workers, compared
// with one worker and one trainer with a job of their own. Measures the total cost of sharing, and
// how evenly elements are shared. S1-cached: the worker's cost of one more trainer on a shared
// cache.
#include "bench/service.h"
#include "bench/workloads/buffers.h"

namespace penstock::bench {
namespace {

class Sharing final : public Buffers {
 public:
  Sharing()
      : Buffers("S1", "T1 by k trainers of one job, or by one from 8 workers", Touch::kEveryByte,
                /*cold=*/true) {}

  std::vector<int64_t> sizes() const override { return {1 << 20}; }
  std::vector<Shape> shapes() const override {
    return {{.consumers = 2}, {.consumers = 4}, {.consumers = 8}, {.workers = 8}};
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    Setup pair = setup;
    pair.workers = pair.consumers = 1;
    return StartService(pair, "single pair");
  }
};

// Trainers step together, so that no trainer misses elements that another one reads.
class Cached final : public Buffers {
 public:
  Cached()
      : Buffers("S1-cached", "T1 prepared once for k trainers that share a cache; worker's CPU",
                Touch::kEveryByte, /*cold=*/true) {}

  std::vector<int64_t> sizes() const override { return {1 << 20}; }
  std::vector<Shape> shapes() const override {
    return {{.consumers = 1}, {.consumers = 2}, {.consumers = 4}, {.consumers = 8}};
  }
  bool cached() const override { return true; }
  double step_s() const override { return 0.01; }
  Basis basis() const override { return Basis::kElementsPerWorkerCpuSecond; }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    Setup one = setup;
    one.consumers = 1;
    return StartService(one, "one trainer");
  }
};

}  // namespace

const Workload& S1() {
  static const Sharing& s1 = *new Sharing;
  return s1;
}

const Workload& S1Cached() {
  static const Cached& cached = *new Cached;
  return cached;
}

}  // namespace penstock::bench
