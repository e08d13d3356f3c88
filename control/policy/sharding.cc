// SPDX-License-Identifier: Apache-2.0
#include "control/policy/sharding.h"

#include "absl/strings/str_cat.h"

namespace penstock::control {
namespace {

// Returns the error if FILE cannot divide the dataset into `count` shards; OK if it can.
absl::Status CheckFiles(const DatasetSummary& dataset, int64_t count) {
  if (dataset.plan.empty()) {
    return absl::NotFoundError(
        "mode FILE found no source of files that it could divide; use DATA or OFF");
  }
  for (const SplitProvider& provider : dataset.plan) {
    if (!provider.by_file || provider.count < 0) {
      return absl::NotFoundError(absl::StrCat(
          "mode FILE found an unshardable source, ", provider.node,
          ": it does not read files one by one; use DATA, OFF, or FILE_OR_DATA, which falls "
          "back to DATA"));
    }
  }
  for (const SplitProvider& provider : dataset.plan) {
    if (provider.count > 0 && provider.count < count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Could not apply FILE based sharding: ", provider.node, " has only ", provider.count,
          " file(s), which is not enough for the ", count,
          " shards (workers); use fewer workers, DATA, or FILE_OR_DATA, which falls back to DATA"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToText(ShardingPolicy mode) {
  switch (mode) {
    case ShardingPolicy::kOff:
      return "OFF";
    case ShardingPolicy::kDynamic:
      return "DYNAMIC";
    case ShardingPolicy::kFile:
      return "FILE";
    case ShardingPolicy::kData:
      return "DATA";
    case ShardingPolicy::kFileOrData:
      return "FILE_OR_DATA";
    case ShardingPolicy::kHint:
      return "HINT";
  }
  return absl::StrCat(static_cast<int>(mode));
}

bool IsStatic(ShardingPolicy mode) {
  return mode != ShardingPolicy::kOff && mode != ShardingPolicy::kDynamic;
}

absl::StatusOr<ShardingPolicy> ResolveMode(const DatasetSummary& dataset, ShardingPolicy mode,
                                           int64_t count) {
  if (mode == ShardingPolicy::kData || mode == ShardingPolicy::kHint) return mode;
  if (count == 1) return ShardingPolicy::kData;  // the only shard is the whole dataset
  absl::Status files = CheckFiles(dataset, count);
  if (files.ok()) return ShardingPolicy::kFile;
  if (mode == ShardingPolicy::kFileOrData) return ShardingPolicy::kData;
  return files;
}

int64_t SplitsOfShard(int64_t splits, const ShardOf& shard) {
  return splits / shard.count + (splits % shard.count > shard.index ? 1 : 0);
}

}  // namespace penstock::control
