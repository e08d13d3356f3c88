// SPDX-License-Identifier: Apache-2.0
// One case of the bench: its pairs, and what they say together.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

// A window of a side and one of its limit right behind it.
struct Pair {
  Window side, limit;
  bool clean() const;  // others used less than kForeignCores in both
};

struct Row {
  Setup setup;
  std::string system = "penstock";
  std::string version;
  std::string variant;   // tells two set-ups of one system apart
  std::string settings;  // of another system, a JSON object; empty: none
  Basis basis = Basis::kElementsPerSecond;
  double step_s = 0;            // what each trainer computes on an element
  bool cached = false;          // Workload::cached(): the rate is that of one trainer
  std::string limit;            // its name; empty: it stands alone
  std::set<std::string> lanes;  // as of a Side
  double line_gb_per_s = 0;     // of the wire that it goes over; 0: not known
  std::vector<Pair> pairs;
  absl::Status status;  // why it did not run, or not to its end
};

// Medians over the clean pairs, or over all where none is clean. CPU is in
// seconds for each GB at the reader. Below 0: not measured.
struct Summary {
  size_t pairs = 0, clean = 0;
  double ratio = -1, worst_ratio = -1;
  double elements_per_s = -1, gb_per_s = -1;
  double limit_elements_per_s = -1, limit_gb_per_s = -1;
  double line_share = -1;   // of the wire's rate
  double utilization = -1;  // of the trainers: the share of time they compute
  double p50_us = -1, p99_us = -1;
  double cpu_s_per_gb = -1, trainer_cpu_s_per_gb = -1, limit_cpu_s_per_gb = -1;
  double cpu_ratio = -1;          // of CPU per GB, ours by the limit's
  std::optional<InStep> in_step;  // none where trainers do not step together
  double copied = -1;             // share of what came through shared memory
  double share = -1;              // of the client (or worker) with most by that with least
  double foreign_cores = 0;
};

// Of the basis of the row, ours by the limit's; below 0 without a limit.
double RatioOf(const Row& row, const Pair& pair);
// MLPerf's AU: the share of time that trainers compute; below 0 where they compute nothing.
double UtilizationOf(const Row& row, const Window& window);
// The most by the least of its shares; below 0 without shares.
double ShareOf(const Window& window);
// The share of what came through shared memory that the worker copied there; below 0 where
// nothing did.
double CopiedOf(const Window& window);
// Seconds of all processes; below 0 where some are on another host or none lasts.
double CpuPerGb(const Row& row, const Window& window);
// Seconds of the trainers' processes; below 0 where they hold the servers too.
double TrainerCpuPerGb(const Row& row, const Window& window);
Summary Summarize(const Row& row);

// What a reader of the row must know: why it did not run, or why its figures
// are doubtful. Empty if all is well.
std::string NoteOn(const Row& row);

}  // namespace penstock::bench
