// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/counters.h"

#include "control/observe/metrics.h"

namespace penstock::worker {

void CountSent(int64_t bytes) {
  static Counter& sent = ProcessMetrics().GetCounter("penstock_worker_elements_sent_total",
                                                     "Elements handed to links to clients.");
  static Counter& sent_bytes =
      ProcessMetrics().GetCounter("penstock_worker_sent_bytes_total", "Bytes of those elements.");
  sent.Add();
  sent_bytes.Add(bytes);
}

void CountLanded(int64_t elements) {
  static Counter& landed = ProcessMetrics().GetCounter(
      "penstock_worker_elements_landed_total", "Elements that clients confirmed on their links.");
  landed.Add(elements);
}

}  // namespace penstock::worker
