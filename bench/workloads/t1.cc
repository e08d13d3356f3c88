// SPDX-License-Identifier: Apache-2.0
// T1: buffers from a cold source, every byte summed at the reader. T1-0: the
// buffer is made once and the reader touches each page, so that what is left is
// latency and our own CPU.
#include "bench/workloads/buffers.h"

namespace penstock::bench {

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

}  // namespace penstock::bench
