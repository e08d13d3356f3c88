// SPDX-License-Identifier: Apache-2.0
// The modes in which a partition is a shard that is known in advance: FILE, DATA, FILE_OR_DATA and
// HINT. The tests count the records themselves.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kPerFile = 40;

// Files of kPerFile numbers each; each file goes on where the one before ended.
class StaticSharding : public ::testing::Test {
 protected:
  StaticSharding() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~StaticSharding() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Files(int count) {
    std::vector<std::string> names;
    for (int f = 0; f < count; ++f) {
      names.push_back(absl::StrCat(folder_, "/", f, ".txt"));
      std::ofstream file(names.back());
      for (int64_t i = 0; i < kPerFile; ++i) file << f * kPerFile + i << "\n";
    }
    return names;
  }
  // Their numbers, read as a trainer would.
  Dataset Numbers(int files, ListFilesOptions options = {}) {
    Files(files);
    return Dataset::ListFiles(folder_ + "/*.txt", options)
        .Interleave([](Expr name) { return Dataset::TextLine(name); }, {.cycle_length = 3})
        .Map([](Expr line) { return StringToNumber(line, kInt64); });
  }

  std::string folder_;
};

// Returns the elements of each partition, in its order.
std::map<uint64_t, std::vector<int64_t>> ByPartition(const Dataset& dataset) {
  std::map<uint64_t, std::vector<int64_t>> values;
  absl::StatusOr<Iterator> it = dataset.MakeIterator();
  EXPECT_TRUE(it.ok()) << it.status();
  while (it.ok()) {
    absl::StatusOr<std::optional<Element>> element = it->Next();
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok() || !element->has_value()) break;
    values[(*element)->identity().partition.value()].push_back(
        (*element)->tensor(0).scalar<int64_t>());
  }
  return values;
}

TEST_F(StaticSharding, FileGivesEachWorkerItsFiles) {
  Cluster cluster(2);
  const auto shards = ByPartition(Numbers(5).Distribute(cluster.Options(ShardingPolicy::kFile)));
  ASSERT_EQ(shards.size(), 2);
  size_t records = 0;
  for (const auto& [partition, values] : shards) {
    for (int64_t value : values)
      EXPECT_EQ(value / kPerFile % 2, static_cast<int64_t>(partition - 1)) << value;
    records += values.size();
  }
  EXPECT_EQ(records, 5 * kPerFile);
  EXPECT_EQ(Sorted(ReadAll(Numbers(5).Distribute(cluster.Options(ShardingPolicy::kFile)))),
            UpTo(5 * kPerFile));
}

TEST_F(StaticSharding, FileKeepsShuffledShardsApartInEveryEpoch) {
  Cluster cluster(3);
  const Dataset files = Numbers(7, {.shuffle = true, .seed = 3}).Repeat(2);
  const auto shards = ByPartition(files.Distribute(cluster.Options(ShardingPolicy::kFile)));
  ASSERT_EQ(shards.size(), 3);
  std::vector<int64_t> all;
  for (const auto& [partition, values] : shards) {
    for (int64_t value : values)
      EXPECT_EQ(value / kPerFile % 3, static_cast<int64_t>(partition - 1)) << value;
    all.insert(all.end(), values.begin(), values.end());
  }
  std::vector<int64_t> twice = UpTo(7 * kPerFile);
  twice.insert(twice.end(), twice.begin(), twice.end());
  EXPECT_EQ(Sorted(all), Sorted(twice));
}

// Below are names in memory, Zip, Batch, Shuffle and Options: all inputs are divided alike.
TEST_F(StaticSharding, FileFindsTheFilesBelowOtherNodes) {
  Cluster cluster(2);
  const std::vector<std::string> names = Files(4);
  auto numbers = [](Expr line) { return StringToNumber(line, kInt64); };
  const Dataset zipped =
      Dataset::Zip({Dataset::TextLine(names).Map(numbers), Dataset::TextLine(names).Map(numbers)})
          .Filter([](Expr pair) { return pair[0] == pair[1]; })
          .Map([](Expr pair) { return pair[0]; })
          .Shuffle(16, {.seed = 1})
          .Batch(8)
          .Unbatch()
          .Prefetch(2);
  EXPECT_EQ(Sorted(ReadAll(zipped.Distribute(cluster.Options(ShardingPolicy::kFile)))),
            UpTo(4 * kPerFile));
  const Dataset slices = Dataset::FromTensorSlices(names)
                             .FlatMap([](Expr name) { return Dataset::TextLine(name); })
                             .Map(numbers);
  EXPECT_EQ(Sorted(ReadAll(slices.Distribute(cluster.Options(ShardingPolicy::kFile)))),
            UpTo(4 * kPerFile));
}

TEST_F(StaticSharding, FileRefusesDatasetsWithoutEnoughFiles) {
  Cluster cluster(3);
  absl::Status status =
      FirstError(Dataset::Range(10).Distribute(cluster.Options(ShardingPolicy::kFile)));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("unshardable source, Range#0"));
  status = FirstError(Numbers(2).Distribute(cluster.Options(ShardingPolicy::kFile)));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("only 2 file(s)"));
}

TEST_F(StaticSharding, FileWithOneWorkerIsEverything) {
  Cluster cluster(1);
  EXPECT_THAT(ReadAll(Dataset::Range(5).Distribute(cluster.Options(ShardingPolicy::kFile))),
              ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(StaticSharding, FileOrDataFallsBackWithoutFilesAndWithTooFew) {
  Cluster cluster(3);
  const DistributeOptions options = cluster.Options(ShardingPolicy::kFileOrData);
  EXPECT_EQ(Sorted(ReadAll(Dataset::Range(100).Distribute(options))), UpTo(100));
  EXPECT_EQ(Sorted(ReadAll(Numbers(2).Distribute(options))), UpTo(2 * kPerFile));
  for (const auto& [partition, values] : ByPartition(Numbers(6).Distribute(options))) {
    for (int64_t value : values)
      EXPECT_EQ(value / kPerFile % 3, static_cast<int64_t>(partition - 1)) << value;
  }
}

TEST_F(StaticSharding, DataDealsElementsInTurn) {
  Cluster cluster(2);
  const auto shards = ByPartition(Dataset::Range(9)
                                      .Map([](auto x) { return x * 10; })
                                      .Prefetch(2)
                                      .Distribute(cluster.Options(ShardingPolicy::kData)));
  EXPECT_THAT(shards, ElementsAre(std::pair(1, std::vector<int64_t>{0, 20, 40, 60, 80}),
                                  std::pair(2, std::vector<int64_t>{10, 30, 50, 70})));
}

// All workers see one order above the cut, though no seed was given.
TEST_F(StaticSharding, DataCutsOneShuffledOrder) {
  Cluster cluster(3);
  const Dataset dataset = Numbers(4, {.shuffle = true}).Shuffle(50).Repeat(2).Batch(7).Unbatch();
  std::vector<int64_t> twice = UpTo(4 * kPerFile);
  twice.insert(twice.end(), twice.begin(), twice.end());
  EXPECT_EQ(Sorted(ReadAll(dataset.Distribute(cluster.Options(ShardingPolicy::kData)))),
            Sorted(twice));
}

TEST_F(StaticSharding, HintPutsTheShardWhereItStands) {
  Cluster cluster(2);
  const Dataset dataset =
      Dataset::Range(10).Shuffle(10).Shard(kShardHint, 7).Shuffle(4).Map([](auto x) {
        return x + 100;
      });
  const auto shards = ByPartition(dataset.Distribute(cluster.Options(ShardingPolicy::kHint)));
  ASSERT_EQ(shards.size(), 2);
  EXPECT_EQ(shards.at(1).size(), 5);
  std::vector<int64_t> all = shards.at(1);
  all.insert(all.end(), shards.at(2).begin(), shards.at(2).end());
  EXPECT_THAT(Sorted(all), ElementsAre(100, 101, 102, 103, 104, 105, 106, 107, 108, 109));
}

// Before the hint all shards draw alike; after it each draws for itself.
TEST_F(StaticSharding, AfterAHintEachShardHasAnOrderOfItsOwn) {
  Cluster cluster(2);
  const auto shards = ByPartition(Dataset::Range(200)
                                      .Shard(kShardHint, 0)
                                      .Shuffle(100)
                                      .Distribute(cluster.Options(ShardingPolicy::kHint)));
  ASSERT_EQ(shards.size(), 2);
  std::vector<std::vector<int64_t>> places;  // of the shards' elements, in their order
  for (const auto& [partition, numbers] : shards) {
    places.emplace_back();
    for (int64_t number : numbers) places.back().push_back(number / 2);
  }
  EXPECT_EQ(Sorted(places[0]), UpTo(100));
  EXPECT_EQ(Sorted(places[1]), UpTo(100));
  EXPECT_NE(places[0], places[1]);
}

TEST_F(StaticSharding, HintInsideAFunctionDividesItsDatasets) {
  Cluster cluster(2);
  Files(3);
  const Dataset dataset = Dataset::ListFiles(folder_ + "/*.txt", {.shuffle = true})
                              .FlatMap([](Expr name) {
                                return Dataset::TextLine(name).Shuffle(20).Shard(kShardHint, 0);
                              })
                              .Map([](Expr line) { return StringToNumber(line, kInt64); });
  EXPECT_EQ(Sorted(ReadAll(dataset.Distribute(cluster.Options(ShardingPolicy::kHint)))),
            UpTo(3 * kPerFile));
}

TEST_F(StaticSharding, HintWithoutAShardReadsEverythingOnEachWorker) {
  Cluster cluster(2);
  EXPECT_THAT(Sorted(ReadAll(Dataset::Range(3).Distribute(cluster.Options(ShardingPolicy::kHint)))),
              ElementsAre(0, 0, 1, 1, 2, 2));
}

TEST_F(StaticSharding, AHintNeedsItsPolicy) {
  Cluster cluster(1);
  const Dataset hinted = Dataset::Range(3).Shard(kShardHint, 0);
  for (ShardingPolicy mode : {ShardingPolicy::kOff, ShardingPolicy::kDynamic, ShardingPolicy::kFile,
                              ShardingPolicy::kData, ShardingPolicy::kFileOrData}) {
    const absl::Status status = hinted.Distribute(cluster.Options(mode)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Shard#1: num_shards is kShardHint"));
  }
  EXPECT_EQ(FirstError(hinted).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Dataset::Range(3).Shard(4, kShardHint).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(StaticSharding, NothingIsDividedIntoNothing) {
  Cluster cluster(2);
  for (ShardingPolicy mode : {ShardingPolicy::kData, ShardingPolicy::kFileOrData})
    EXPECT_THAT(ReadAll(Dataset::Range(0).Distribute(cluster.Options(mode))), IsEmpty());
}

// --- Workers that come and go ------------------------------------------------------

class StaticShardingFaults : public StaticSharding,
                             public ::testing::WithParamInterface<ShardingPolicy> {};

TEST_P(StaticShardingFaults, AWorkerThatGoesLosesAndDoublesNothing) {
  Cluster cluster(3);
  DistributeOptions options = cluster.Options(GetParam());
  options.max_outstanding_requests = 8;  // the epoch cannot be over before the worker goes
  Dataset dataset = Numbers(12);
  if (GetParam() == ShardingPolicy::kHint) dataset = dataset.Shuffle(30).Shard(kShardHint, 0);
  absl::StatusOr<Iterator> it = dataset.Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> values;
  for (int i = 0; i < 60; ++i) {
    absl::StatusOr<std::optional<Element>> element = it->Next();
    ASSERT_TRUE(element.ok() && element->has_value()) << element.status();
    values.push_back((*element)->tensor(0).scalar<int64_t>());
  }
  cluster.RemoveWorker(1);
  cluster.AddWorker();  // a worker that joins takes a shard over and makes no new one
  for (int64_t value : ReadAll(*it)) values.push_back(value);
  EXPECT_EQ(Sorted(values), UpTo(12 * kPerFile));
}

INSTANTIATE_TEST_SUITE_P(Modes, StaticShardingFaults,
                         ::testing::Values(ShardingPolicy::kFile, ShardingPolicy::kData,
                                           ShardingPolicy::kHint),
                         [](const auto& info) {
                           return std::string(info.param == ShardingPolicy::kFile   ? "File"
                                              : info.param == ShardingPolicy::kData ? "Data"
                                                                                    : "Hint");
                         });

TEST_F(StaticSharding, ARestartedDispatcherKeepsTheShards) {
  DispatcherConfig config;
  config.work_dir = folder_ + "/journal";
  Cluster cluster(2, config);
  DistributeOptions options = cluster.Options(ShardingPolicy::kData);
  options.max_outstanding_requests = 4;
  absl::StatusOr<Iterator> it = Dataset::Range(500).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> values;
  for (int i = 0; i < 20; ++i) {
    absl::StatusOr<std::optional<Element>> element = it->Next();
    ASSERT_TRUE(element.ok() && element->has_value()) << element.status();
    values.push_back((*element)->tensor(0).scalar<int64_t>());
  }
  cluster.RestartDispatcher();
  for (int64_t value : ReadAll(*it)) values.push_back(value);
  EXPECT_EQ(Sorted(values), UpTo(500));
}

// --- A list of workers -------------------------------------------------------------

TEST_F(StaticSharding, AJobWaitsForItsFirstWorkerToCountShards) {
  Cluster cluster(0);
  absl::StatusOr<Iterator> it =
      Dataset::Range(10).Distribute(cluster.Options(ShardingPolicy::kData)).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  EXPECT_EQ(it->Next(absl::Now()).status().code(), absl::StatusCode::kDeadlineExceeded);
  cluster.AddWorker();
  EXPECT_EQ(Sorted(ReadAll(*it)), UpTo(10));
}

TEST_F(StaticSharding, ShardsFollowTheListBeforeAllWorkersAreThere) {
  DispatcherConfig config;
  config.worker_addresses = {"localhost:%port%", "localhost:%port%", "localhost"};
  Cluster cluster(1, config);
  const auto shards =
      ByPartition(Dataset::Range(6).Distribute(cluster.Options(ShardingPolicy::kData)));
  EXPECT_THAT(shards, ElementsAre(std::pair(1, std::vector<int64_t>{0, 3}),
                                  std::pair(2, std::vector<int64_t>{1, 4}),
                                  std::pair(3, std::vector<int64_t>{2, 5})));
}

TEST_F(StaticSharding, AWorkerThatIsNotInTheListIsRefused) {
  DispatcherConfig config;
  config.worker_addresses = {"localhost:%port%", "elsewhere:1"};
  Cluster cluster(1, config);
  const absl::Status status =
      WorkerServer::Start({.dispatcher_address = cluster.service()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("localhost:%port%, elsewhere:1"));
  cluster.RemoveWorker(0);  // its place is free again
  cluster.AddWorker();
  EXPECT_EQ(cluster.size(), 1);
}

}  // namespace
}  // namespace penstock
