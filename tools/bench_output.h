// SPDX-License-Identifier: Apache-2.0
// Where rows of the bench go: a table for people, JSON lines, a page.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/gpu_figures.h"
#include "bench/hosts.h"
#include "bench/machine.h"
#include "bench/row.h"

namespace CLI {
class App;
}

namespace penstock::tools {

// Flags that all benches have.
struct BenchFlags {
  int pairs = 7;
  double window_s = 2;
  std::vector<std::string> protocols;  // none: all
  std::vector<int64_t> sizes;          // none: each bench's own
  std::string json, html;              // files, "-" for standard output; empty: none
  std::string gpu_figures;             // a file with gpu_bench's output; empty: none
  std::vector<std::string> hosts;      // none, or this one and others
  std::string remote_shell = "ssh", remote_program;
};

void AddBenchFlags(CLI::App& command, BenchFlags& flags);
// The first four alone: what is measured.
void AddCaseFlags(CLI::App& command, BenchFlags& flags);

// The pair of flags.hosts[0] and the other host.
absl::StatusOr<bench::Hosts> PairOf(const BenchFlags& flags, const std::string& there);

class BenchOutput {
 public:
  // Unavailable, or the system's code, for a file that cannot be written or read; InvalidArgument
  // for figures that are none.
  static absl::StatusOr<BenchOutput> Open(const BenchFlags& flags);

  // All machines come before the first row. The host's name where there are several.
  void Add(const bench::Machine& machine, const std::string& host = "");
  void Add(bench::Row row);
  // The table and the page. DataLoss if an element was not what was due: what cannot
  // run is a row, what reads wrong a fault.
  absl::Status Finish();

 private:
  using File = std::unique_ptr<std::FILE, void (*)(std::FILE*)>;
  static absl::StatusOr<File> OpenFile(const std::string& name);
  BenchOutput(File json, File html, std::FILE* people, std::optional<bench::GpuFigures> gpu)
      : json_(std::move(json)), html_(std::move(html)), people_(people), gpu_(std::move(gpu)) {}

  File json_, html_;
  std::FILE* people_;
  std::optional<bench::GpuFigures> gpu_;
  std::vector<std::string> machines_;
  std::vector<bench::Row> rows_;
};

}  // namespace penstock::tools
