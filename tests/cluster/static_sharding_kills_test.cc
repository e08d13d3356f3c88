// SPDX-License-Identifier: Apache-2.0
// Workers in processes of their own, killed with kill −9 while they read a shard. Each record comes
// once.
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/cluster/worker_elsewhere.h"

namespace penstock {
namespace {

class KilledShards : public ::testing::TestWithParam<ShardingPolicy> {
 protected:
  static constexpr int64_t kFiles = 9;
  static constexpr int64_t kPerFile = 200;

  KilledShards() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    for (int64_t f = 0; f < kFiles; ++f) {
      std::ofstream file(absl::StrCat(folder_, "/", f, ".txt"));
      for (int64_t i = 0; i < kPerFile; ++i) file << f * kPerFile + i << "\n";
    }
  }
  ~KilledShards() override { std::filesystem::remove_all(folder_); }

  Dataset Numbers() const {
    Dataset numbers = Dataset::ListFiles(folder_ + "/*.txt", {.shuffle = true})
                          .Interleave([](Expr name) { return Dataset::TextLine(name); })
                          .Map([](Expr line) { return StringToNumber(line, kInt64); })
                          .Shuffle(64);
    return GetParam() == ShardingPolicy::kHint ? numbers.Shard(kShardHint, 0) : numbers;
  }

  std::string folder_;
};

TEST_P(KilledShards, LoseAndDoubleNothing) {
  Cluster cluster(0);
  WorkerElsewhere first(cluster), second(cluster), third(cluster);
  DistributeOptions options = cluster.Options(GetParam());
  options.max_outstanding_requests = 16;
  absl::StatusOr<Iterator> it = Numbers().Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int> seen(kFiles * kPerFile, 0);
  int64_t delivered = 0;
  while (true) {
    absl::StatusOr<std::optional<Element>> element = it->Next();
    ASSERT_TRUE(element.ok()) << element.status();
    if (!element->has_value()) break;
    ++seen.at((*element)->tensor(0).scalar<int64_t>());
    ++delivered;
    if (delivered == kFiles * kPerFile / 4) second.Kill();
    if (delivered == kFiles * kPerFile / 2) first.Kill();
  }
  EXPECT_EQ(delivered, kFiles * kPerFile);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 0) << "lost";
  EXPECT_EQ(std::count_if(seen.begin(), seen.end(), [](int times) { return times > 1; }), 0)
      << "doubled";
}

INSTANTIATE_TEST_SUITE_P(Modes, KilledShards,
                         ::testing::Values(ShardingPolicy::kFile, ShardingPolicy::kData,
                                           ShardingPolicy::kFileOrData, ShardingPolicy::kHint));

}  // namespace
}  // namespace penstock
