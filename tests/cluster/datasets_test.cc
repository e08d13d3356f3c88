// SPDX-License-Identifier: Apache-2.0
// Nodes whose partitions share nothing but their splits, through a dispatcher and workers. Each
// element comes as often as it should.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

// Returns how often each number comes.
std::map<int64_t, int> TimesOfEach(const Dataset& dataset, const DistributeOptions& options) {
  std::map<int64_t, int> times;
  for (absl::StatusOr<Element>& element : dataset.Distribute(options).Elements()) {
    EXPECT_TRUE(element.ok()) << element.status();
    if (element.ok()) ++times[element->tensor(0).scalar<int64_t>()];
  }
  return times;
}

void ExpectEach(const std::map<int64_t, int>& times, size_t numbers, int often) {
  EXPECT_EQ(times.size(), numbers);
  for (const auto& [number, count] : times) EXPECT_EQ(count, often) << number;
}

TEST(Datasets, ChosenFromSeveralAreTogetherWhole) {
  Cluster cluster(2);
  const Dataset dataset =
      Dataset::ChooseFromDatasets({Dataset::Range(500), Dataset::Range(500, 1500)},
                                  Dataset::Range(2).Repeat(), {.stop_on_empty_dataset = false});
  ExpectEach(TimesOfEach(dataset, cluster.Options(ShardingPolicy::kDynamic)), 1500, 1);
}

TEST(Datasets, SampledFromSeveralAreTogetherWhole) {
  Cluster cluster(2);
  const Dataset dataset = Dataset::SampleFromDatasets(
      {Dataset::Range(500), Dataset::Range(500, 1500)}, {.weights = {0.9, 0.1}});
  ExpectEach(TimesOfEach(dataset.Repeat(2), cluster.Options(ShardingPolicy::kDynamic)), 1500, 2);
}

TEST(Datasets, CachedByPartitionComeOnceInEachRepetition) {
  Cluster cluster(2);
  const Dataset dataset = Dataset::Range(1000).Shuffle(100).Cache().Shuffle(50).Repeat(3);
  ExpectEach(TimesOfEach(dataset, cluster.Options(ShardingPolicy::kDynamic)), 1000, 3);
}

TEST(Datasets, CachedOnDiskComeOnceWhateverTheFilesHold) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/datasets-", getpid());
  std::filesystem::create_directories(folder);
  Cluster cluster(2);
  const Dataset dataset = Dataset::Range(1000).Shuffle(100).Cache(folder + "/cached").Repeat(2);
  for (const uint64_t seed : {1, 1, 2}) {  // splits are given on demand, in another order each time
    DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic);
    options.seed = seed;
    ExpectEach(TimesOfEach(dataset, options), 1000, 2);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock
