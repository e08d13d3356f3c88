// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/shards.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace penstock::simulator {

std::vector<std::string> CheckShards(const Histories& histories, int64_t partitions,
                                     const ExpectedElements& expected,
                                     const std::function<int64_t(int64_t)>& part_of) {
  struct Place {
    int64_t number;  // of the element in the dataset
    int64_t shard;
    Index index;
  };
  std::map<int64_t, Place> places;  // by value
  std::vector<Index> sizes(static_cast<size_t>(partitions));
  for (int64_t i = 0; i < expected.count; ++i) {
    const int64_t shard = part_of(i) % partitions;
    places[expected.value(i)] = {i, shard, sizes[static_cast<size_t>(shard)]++};
  }
  std::map<PartitionId, int64_t> shards;  // the number of the shard of each partition
  for (const History& history : histories) {
    for (const Got& got : history.got) {
      const auto found = places.find(got.value);
      if (found == places.end()) continue;  // CheckExactlyOnce() reports it
      const Place& place = found->second;
      const auto [at, is_new] = shards.emplace(got.key.partition, place.shard);
      if (place.shard == at->second && place.index == got.key.index) continue;
      return {absl::StrCat("wrong shard: ", ToString(got.key.partition), " of ", partitions,
                           ", index ", got.key.index, " is element ", place.number,
                           " of the dataset, but the partition has shard ", at->second)};
    }
  }
  return {};
}

}  // namespace penstock::simulator
