// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/counters.h"

#include "control/observe/metrics.h"

namespace penstock::client {

void NoteHeld(int64_t elements) {
  static Gauge& most = ProcessMetrics().GetGauge(
      "penstock_client_elements_held_most",
      "Maximum number of received but undelivered elements in one session.");
  most.Raise(elements);
}

void NoteLostConsumers(const std::string& job, int64_t consumers) {
  ProcessMetrics()
      .GetGauge("penstock_client_lost_consumers",
                "Other consumers of a coordinated read that are suspected or dead.", {{"job", job}})
      .Set(consumers);
}

void CountLinkError(const std::string& protocol, const absl::Status& error) {
  ProcessMetrics()
      .GetCounter("penstock_client_link_errors_total",
                  "Links that broke or could not be opened, by protocol and code.",
                  {{"protocol", protocol.empty() ? "none" : protocol},
                   {"code", absl::StatusCodeToString(error.code())}})
      .Add();
}

}  // namespace penstock::client
