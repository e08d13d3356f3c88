// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/shards.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace penstock::simulator {

std::vector<std::string> CheckShards(const Histories& histories, int64_t partitions,
                                     const ExpectedElements& expected) {
  std::map<int64_t, int64_t> numbers;  // of the elements, by value
  for (int64_t i = 0; i < expected.count; ++i) numbers[expected.value(i)] = i;
  std::map<PartitionId, int64_t> shards;  // the number of the shard of each partition
  for (const History& history : histories) {
    for (const Got& got : history.got) {
      const auto found = numbers.find(got.value);
      if (found == numbers.end()) continue;  // CheckExactlyOnce() reports it
      const int64_t number = found->second;
      const auto [at, is_new] = shards.emplace(got.key.partition, number % partitions);
      if (number % partitions == at->second && number / partitions == got.key.index) continue;
      return {absl::StrCat("wrong shard: ", ToString(got.key.partition), " of ", partitions,
                           ", index ", got.key.index, " is element ", number,
                           " of the dataset, but the partition has shard ", at->second)};
    }
  }
  return {};
}

}  // namespace penstock::simulator
