// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/advice.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/env/launchers.h"
#include "dataplane/dataset/graph/graph.h"

namespace penstock::client {
namespace {

// Returns, for example, "WORLD_SIZE=8"; empty if no launcher started several processes.
std::string RanksOfLaunch() {
  for (const Launcher& launcher : kLaunchers) {
    const char* world = std::getenv(launcher.world);
    int ranks = 0;
    if (std::getenv(launcher.rank) == nullptr || world == nullptr) continue;
    if (absl::SimpleAtoi(world, &ranks) && ranks > 1)
      return absl::StrCat(launcher.world, "=", ranks);
  }
  return "";
}

// Returns true if the user shards the dataset, or workers read shards of their own.
bool IsSharded(const Dataset& distributed, const DistributeOptions& options) {
  const bool by_elements = options.processing_mode == ShardingPolicy::kOff ||
                           options.processing_mode == ShardingPolicy::kDynamic;
  bool sharded = !by_elements || options.target_workers == TargetWorkers::kLocal;
  VisitNodes(*NodeOf(distributed),
             [&](const Dataset::Node& node, int) { sharded |= node.op == "Shard"; });
  return sharded;
}

}  // namespace

void AdviseIfEachRankReadsAll(const Dataset& distributed, const DistributeOptions& options,
                              EventLog& events) {
  if (!options.job_name.empty() || IsSharded(distributed, options)) return;
  static const std::string& ranks = *new std::string(RanksOfLaunch());
  if (ranks.empty()) return;
  static const bool said = [&] {
    events.Write({"each_rank_reads_all",
                  {{"ranks", ranks},
                   {"why", "Distribute has no job_name, so each rank has a job of its own"},
                   {"instead",
                    "give all ranks one job_name, and each element goes to one of them; or put "
                    "Shard before Distribute"}}});
    return true;
  }();
  static_cast<void>(said);
}

void AdviseOfNothingLeft(const std::string& job, int64_t repetition, int64_t elements,
                         EventLog& events) {
  events.Write({"nothing_left",
                {{"job", job},
                 {"repetition", absl::StrCat(repetition)},
                 {"why", absl::StrCat("all ", elements,
                                      " elements went to its other readers, or to an earlier run")},
                 {"instead", "use a different run_id or job_name to read them again"}}});
}

}  // namespace penstock::client
