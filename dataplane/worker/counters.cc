// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/counters.h"

#include "control/observe/metrics.h"

namespace penstock::worker {

void CountSent(int64_t bytes) {
  static Counter& sent = ProcessMetrics().GetCounter("penstock_worker_elements_sent_total",
                                                     "Elements handed to links to clients.");
  static Counter& sent_bytes = ProcessMetrics().GetCounter(
      "penstock_worker_sent_bytes_total", "Bytes of the elements handed to links to clients.");
  sent.Add();
  sent_bytes.Add(bytes);
}

void CountReceived(int64_t elements) {
  static Counter& received = ProcessMetrics().GetCounter(
      "penstock_worker_elements_landed_total", "Elements that clients confirmed on their links.");
  received.Add(elements);
}

void CountCacheQuery(bool hit) {
  constexpr char kName[] = "penstock_worker_cross_trainer_cache_queries_total";
  constexpr char kHelp[] = "Elements sent from windows that trainers share.";
  static Counter& hits = ProcessMetrics().GetCounter(kName, kHelp, {{"hit", "true"}});
  static Counter& misses = ProcessMetrics().GetCounter(kName, kHelp, {{"hit", "false"}});
  (hit ? hits : misses).Add();
}

void CountSkipped(int64_t elements) {
  static Counter& skipped =
      ProcessMetrics().GetCounter("penstock_worker_cross_trainer_cache_skipped_total",
                                  "Elements that slow trainers of shared windows missed.");
  skipped.Add(elements);
}

void CountCached(int64_t bytes) {
  static Gauge& cached = ProcessMetrics().GetGauge("penstock_worker_cross_trainer_cache_bytes",
                                                   "Bytes in windows that trainers share.");
  cached.Add(bytes);
}

}  // namespace penstock::worker
