// SPDX-License-Identifier: Apache-2.0
// A program that uses the names from before 0.9 (docs/compatibility.md). It is not run. It must
// compile until release 0.10 removes these names.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "penstock/penstock.h"

namespace penstock {

Dataset OldSources(const Spec& columns) {
  Dataset data = Dataset::ListFiles("*.tfrecord").Interleave(TFRecordDataset);
  for (const Dataset& other :
       {TextLineDataset("a"), FixedLengthRecordDataset("a", 4), TarShards("a", {"jpg"}),
        TokenShards("a", 3), NpyDataset("a", columns), Parquet("a", columns), ImageDirectory("a")})
    data = data.Concatenate(other);
  return data.FlatMap(RangeOf).FlatMap(TensorSlicesOf).FlatMap(TensorsOf);
}

DistributeOptions OldOptions() {
  return {.keep = Keep::kCommitted,
          .order = MergeOrder::kFair,
          .consumer_index = 0,
          .num_consumers = 2,
          .rests = Rests::kDrop,
          .on_error = RoundErrors::kStop,
          .consumer_group = {2, 1}};
}

absl::StatusOr<ReplicaGroup> OldGroup(absl::Span<const State> states) {
  static_cast<void>(OfAllRanks(states));
  absl::StatusOr<ReplicaGroup> group = ReplicaGroup::Of({.launch = "first"});
  if (!group.ok() || group->launch() != "first") return group;
  return group->EveryNth(2);
}

bool OldReading(Iterator& local, DistributedIterator& iterator, const DistributedValues& values) {
  if (!local.Next(int64_t{0}).ok() || !iterator.Next(int64_t{0}).ok()) return false;
  for (const DeviceLandingStats& stats : iterator.LandingStats()) static_cast<void>(stats);
  return values.landed(0) && values.CheckLanded(true, "this program").ok();
}

}  // namespace penstock
