// SPDX-License-Identifier: Apache-2.0
// One case of the bench: its pairs and their summary.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

// A window of a side and the window of its limit right after it.
struct Pair {
  Window side, limit;
  bool clean() const;  // others used less than kForeignCores in both
};

struct Row {
  Setup setup;
  std::string system = "penstock";
  std::string version;
  std::string variant;   // distinguishes set-ups of one system
  std::string settings;  // JSON object of another system; else empty
  Basis basis = Basis::kElementsPerSecond;
  double step_s = 0;            // a trainer's computing time for an element
  bool cached = false;          // Workload::cached(): the rate is of one trainer
  std::string limit;            // name of the limit; empty: none
  std::set<std::string> lanes;  // as Side::lanes()
  double line_gb_per_s = 0;     // rate of the wire; 0: unknown
  std::vector<Pair> pairs;
  absl::Status status;  // why it did not run, or failed before its end
};

// Medians over the clean pairs, or over all pairs if none is clean. CPU is in seconds for each GB
// at the reader. A value below 0 was not measured.
struct Summary {
  size_t pairs = 0, clean = 0;
  double ratio = -1, worst_ratio = -1;
  double elements_per_s = -1, gb_per_s = -1;
  double limit_elements_per_s = -1, limit_gb_per_s = -1;
  double line_share = -1;   // of the wire's rate
  double utilization = -1;  // share of time in which trainers compute
  double p50_us = -1, p99_us = -1;
  double cpu_s_per_gb = -1, trainer_cpu_s_per_gb = -1, limit_cpu_s_per_gb = -1;
  double cpu_ratio = -1;          // CPU per GB: ours divided by the limit's
  std::optional<InStep> in_step;  // none if trainers do not step together
  double copied = -1;             // CopiedOf()
  double share = -1;              // ShareOf()
  double foreign_cores = 0;
};

// Returns ours divided by the limit's, in the row's basis; below 0 without a limit.
double RatioOf(const Row& row, const Pair& pair);
// Returns MLPerf's AU, the share of the time in which trainers compute; below 0 if they compute
// nothing.
double UtilizationOf(const Row& row, const Window& window);
// Returns the largest of the window's shares divided by the smallest; below 0 without shares.
double ShareOf(const Window& window);
// Returns the share of the elements in shared memory that the worker copied there; below 0 without
// such elements.
double CopiedOf(const Window& window);
// Returns the CPU seconds of all processes for each GB; below 0 if some are on another host, or if
// none outlives the window.
double CpuPerGb(const Row& row, const Window& window);
// Returns the CPU seconds of the trainers for each GB; below 0 if their processes also contain the
// servers.
double TrainerCpuPerGb(const Row& row, const Window& window);
Summary Summarize(const Row& row);

// Returns a note for readers of the row: why it did not run, or why its figures are doubtful. Empty
// if the row needs no note.
std::string NoteOn(const Row& row);

}  // namespace penstock::bench
