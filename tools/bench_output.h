// SPDX-License-Identifier: Apache-2.0
// The bench's rows as a table for people, as JSON lines and as an HTML page.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/hosts.h"
#include "bench/machine.h"
#include "bench/page.h"
#include "bench/row.h"

namespace CLI {
class App;
}

namespace penstock::tools {

// The flags that all benches have.
struct BenchFlags {
  int pairs = 7;
  double window_s = 2;
  std::vector<std::string> protocols;  // empty: all
  std::vector<int64_t> sizes;          // empty: each bench's own
  std::string json, html;              // files, "-" for standard output; empty: not written
  std::string gpu_figures;             // file with gpu_bench's output; empty: none
  std::vector<std::string> hosts;      // empty, or this host and others
  std::string remote_shell = "ssh", remote_program;
};

void AddBenchFlags(CLI::App& command, BenchFlags& flags);
// Adds only the first four flags, which choose what is measured.
void AddCaseFlags(CLI::App& command, BenchFlags& flags);

// Returns the pair of flags.hosts[0] and the other host.
absl::StatusOr<bench::Hosts> PairOf(const BenchFlags& flags, const std::string& there);

class BenchOutput {
 public:
  // Opens the files. Unavailable, or the system's code, if a file cannot be written. It is also an
  // error if this machine cannot make the page (PageMaker::Find()), unless the records are written
  // to a file too.
  static absl::StatusOr<BenchOutput> Open(const BenchFlags& flags);

  // Adds a machine. All machines must be added before the first row. `host` names the machine if
  // there are several.
  void Add(const bench::Machine& machine, const std::string& host = "");
  void Add(bench::Row row);
  // Writes the table and the page. DataLoss if a row read an unexpected element. A case that cannot
  // run only adds a row with the reason.
  absl::Status Finish();

 private:
  using File = std::unique_ptr<std::FILE, void (*)(std::FILE*)>;
  static absl::StatusOr<File> OpenFile(const std::string& name);
  BenchOutput(File json, File html, std::FILE* people)
      : json_(std::move(json)), html_(std::move(html)), people_(people) {}
  void Record(const std::string& lines);

  File json_, html_;
  std::FILE* people_;
  std::optional<bench::PageMaker> page_;  // none: a page is not wanted or not possible
  std::string no_page_;                   // the reason if a page is wanted but not possible
  std::string records_;
  std::vector<bench::Row> rows_;
};

}  // namespace penstock::tools
