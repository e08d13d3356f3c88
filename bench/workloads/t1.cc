// SPDX-License-Identifier: Apache-2.0
// T1: buffers from a cold source; the reader sums every byte. T1-0: the buffer is made once and the
// reader touches each page, so that only latency and our own CPU time remain. T1-1: T1-0 with only
// one element on its way at a time. T1-z: T1 with compressible numbers over links that may
// compress, compared with links that may not.
#include "bench/service.h"
#include "bench/workloads/buffers.h"

namespace penstock::bench {
namespace {

class Compressible final : public Buffers {
 public:
  Compressible()
      : Buffers(
            "T1-z",
            "T1 of small numbers over links that may compress, compared with links that may not",
            Touch::kEveryByte, /*cold=*/true, Words::kSmall) {}

  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    Setup plain = setup;
    plain.compress = false;
    return StartService(plain, "no compression");
  }
};

class OneAtATime final : public Buffers {
 public:
  OneAtATime()
      : Buffers("T1-1", "T1-0 with one element on its way: from its request to its receipt",
                Touch::kEveryPage, /*cold=*/false) {}
  int64_t max_outstanding_requests() const override { return 1; }
};

}  // namespace

const Workload& T1() {
  static const Buffers& t1 = *new Buffers("T1", "buffers from a cold source, every byte read",
                                          Touch::kEveryByte, /*cold=*/true);
  return t1;
}

const Workload& T1Zero() {
  static const Buffers& t1_zero = *new Buffers(
      "T1-0", "buffers made once, a byte of each page read: latency and CPU", Touch::kEveryPage,
      /*cold=*/false);
  return t1_zero;
}

const Workload& T1OneAtATime() {
  static const OneAtATime& one_at_a_time = *new OneAtATime;
  return one_at_a_time;
}

const Workload& T1Compressible() {
  static const Compressible& compressible = *new Compressible;
  return compressible;
}

}  // namespace penstock::bench
