// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/counters.h"

#include "control/observe/metrics.h"
#include "control/policy/sharding.h"

namespace penstock::control {

void CountHeartbeat() {
  static Counter& heartbeats = ProcessMetrics().GetCounter("penstock_dispatcher_heartbeats_total",
                                                           "Heartbeats of workers and clients.");
  heartbeats.Add();
}

void CountLink(const std::string& protocol, int64_t elements, int64_t bytes) {
  const Labels labels = {{"protocol", protocol}};
  ProcessMetrics()
      .GetCounter("penstock_link_elements_total",
                  "Elements that clients received over their links, as reported in heartbeats.",
                  labels)
      .Add(elements);
  ProcessMetrics()
      .GetCounter("penstock_link_bytes_total", "Bytes of those elements.", labels)
      .Add(bytes);
}

void CountRecord(size_t bytes) {
  static Counter& records = ProcessMetrics().GetCounter("penstock_journal_records_total",
                                                        "Records passed to the journal.");
  static Counter& written =
      ProcessMetrics().GetCounter("penstock_journal_bytes_total", "Bytes of those records.");
  records.Add();
  written.Add(static_cast<int64_t>(bytes));
}

void CountJob(const JobTerms& terms) {
  ProcessMetrics()
      .GetCounter("penstock_dispatcher_jobs_created_total", "Jobs created, by processing mode.",
                  {{"mode", ToText(terms.mode)}})
      .Add();
}

void CountIterator(const JobTerms& terms) {
  const char* target = terms.target_workers == TargetWorkers::kLocal ? "local"
                       : terms.target_workers == TargetWorkers::kAny ? "any"
                                                                     : "auto";
  ProcessMetrics()
      .GetCounter("penstock_dispatcher_iterators_total",
                  "Clients that began to read an iteration, by what they read.",
                  {{"mode", ToText(terms.mode)},
                   {"target_workers", target},
                   {"coordinated", terms.coordinated() ? "yes" : "no"}})
      .Add();
}

void SetWantedWorkers(int64_t workers) {
  static Gauge& wanted = ProcessMetrics().GetGauge(
      "penstock_dispatcher_wanted_workers",
      "Estimated number of workers that keep the trainers of all jobs fed; 0: no estimate.");
  wanted.Set(workers);
}

void SetLostConsumers(int64_t suspected, int64_t dead) {
  const auto set = [](const char* state, int64_t consumers) {
    ProcessMetrics()
        .GetGauge("penstock_dispatcher_lost_consumers",
                  "Consumers of coordinated reads that others wait for and that are silent.",
                  {{"state", state}})
        .Set(consumers);
  };
  set("suspected", suspected);
  set("dead", dead);
}

void CountStepsCompared(int64_t steps) {
  static Counter& compared = ProcessMetrics().GetCounter(
      "penstock_dispatcher_steps_compared_total",
      "Steps of coordinated reads for which two consumers reported the same row.");
  compared.Add(steps);
}

void CountEvent(const std::string& name) {
  ProcessMetrics()
      .GetCounter("penstock_dispatcher_events_total", "Logged events, by name.", {{"event", name}})
      .Add();
}

}  // namespace penstock::control
