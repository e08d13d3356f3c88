// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/run_levels.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/scratch.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

// A level during its measurement.
struct Running {
  const Level* level = nullptr;
  std::unique_ptr<Side> side;                  // null after a failure
  absl::Status status;                         // reason of the failure
  std::set<std::string> lanes;                 // lanes of the side
  std::vector<std::optional<Window>> windows;  // by round
};

absl::StatusOr<std::unique_ptr<Side>> Start(const Level& level, int64_t bytes,
                                            const std::string& scratch, size_t number) {
  ASSIGN_OR_RETURN(const std::string folder, MakeFolderIn(scratch, number));
  return level.start(bytes, folder);
}

void TakeTurn(Running& running, double seconds) {
  running.windows.emplace_back();
  if (running.side == nullptr) return;
  absl::StatusOr<Window> window = Measure(*running.side, seconds);
  if (window.ok()) {
    running.windows.back() = *std::move(window);
    return;
  }
  running.status = window.status();
  running.side.reset();
}

Row RowOf(const LevelOptions& options, const Level& level, int64_t bytes) {
  Row row;
  row.setup.workload = options.workload;
  row.setup.protocol = level.protocol;
  row.setup.element_bytes = bytes;
  row.setup.hosts = options.hosts;
  row.system = level.system;
  row.variant = level.variant;
  row.line_gb_per_s = level.line_gb_per_s;
  if (row.system == "penstock") row.version = Version();
  return row;
}

// Returns a row of the level's windows, alone or in pairs with those of `limit`.
Row Beside(const LevelOptions& options, const Running& running, const Running* limit,
           int64_t bytes) {
  Row row = RowOf(options, *running.level, bytes);
  row.status = running.status;
  row.lanes = running.lanes;
  if (limit != nullptr) row.limit = limit->level->name();
  for (size_t round = 0; round < running.windows.size(); ++round) {
    const std::optional<Window>& ours = running.windows[round];
    if (!ours || (limit != nullptr && !limit->windows[round])) continue;
    row.pairs.push_back(
        {.side = *ours, .limit = limit != nullptr ? *limit->windows[round] : Window()});
  }
  return row;
}

bool HasWindows(const Running& running) {
  for (const std::optional<Window>& window : running.windows) {
    if (window) return true;
  }
  return false;
}

void AddRows(const LevelOptions& options, const std::vector<Running>& all, int64_t bytes,
             std::vector<Row>& rows) {
  std::map<std::string, const Running*> limits;
  for (const Running& running : all) {
    if (HasWindows(running)) limits[running.level->name()] = &running;
  }
  for (const Running& running : all) {
    bool alone = true;
    for (const std::string& name : running.level->beside) {
      const auto limit = limits.find(name);
      if (limit == limits.end() || !HasWindows(running)) continue;
      rows.push_back(Beside(options, running, limit->second, bytes));
      alone = false;
    }
    if (alone) rows.push_back(Beside(options, running, nullptr, bytes));
  }
}

}  // namespace

std::vector<Row> RunLevels(const LevelOptions& options, const std::vector<Level>& levels) {
  std::vector<Row> rows;
  for (const Level& level : levels) {
    if (level.left_out.ok()) continue;
    rows.push_back(RowOf(options, level, /*bytes=*/0));
    rows.back().status = level.left_out;
  }
  for (const int64_t bytes : options.sizes) {
    const absl::StatusOr<Scratch> scratch = Scratch::Make();
    std::vector<Running> all;
    for (const Level& level : levels) {
      if (!level.left_out.ok() || Interrupted()) continue;
      absl::StatusOr<std::unique_ptr<Side>> side =
          scratch.ok() ? Start(level, bytes, scratch->path(), all.size()) : scratch.status();
      all.push_back({.level = &level, .status = side.status()});
      if (!side.ok()) continue;
      all.back().lanes = (*side)->lanes();
      all.back().side = *std::move(side);
    }
    for (int round = 0; round < options.rounds; ++round) {
      for (Running& running : all) TakeTurn(running, options.window_s);
    }
    AddRows(options, all, bytes, rows);
  }
  return rows;
}

}  // namespace penstock::bench
