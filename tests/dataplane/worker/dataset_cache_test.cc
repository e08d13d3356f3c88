// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/dataset_cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "control/proto/dataset.pb.h"
#include "dataplane/dataset/graph/definition.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

using ::testing::HasSubstr;

control::GetDatasetAnswer AnswerFor(const Dataset& dataset) {
  control::GetDatasetAnswer answer;
  answer.definition = *Serialize(dataset);
  answer.summary.fingerprint = dataset.fingerprint();
  control::SplitProvider provider;
  provider.node = "Range#0";
  provider.count = 3;
  provider.shuffled = true;
  provider.seed = 9;
  answer.summary.plan = {provider};
  return answer;
}

TEST(DatasetCache, AsksOnceForADefinition) {
  const Dataset dataset = Dataset::Range(5);
  int asked = 0;
  DatasetCache cache([&](std::string_view, uint64_t) {
    ++asked;
    return AnswerFor(dataset);
  });
  auto first = *cache.Get("numbers", 1);
  auto second = *cache.Get("numbers", 1);
  EXPECT_EQ(first, second);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(first->dataset.fingerprint(), dataset.fingerprint());
  ASSERT_EQ(first->plan.providers.size(), 1u);
  EXPECT_EQ(first->plan.providers[0].count, 3);
  EXPECT_EQ(first->plan.providers[0].seed, 9u);
}

TEST(DatasetCache, PartitionsThatComeTogetherShareOneDefinition) {
  const Dataset dataset = Dataset::Range(5);
  std::atomic<int> asked = 0, came = 0;
  DatasetCache cache([&](std::string_view, uint64_t) {
    ++asked;
    while (came < 4) std::this_thread::yield();
    return AnswerFor(dataset);
  });
  std::vector<std::shared_ptr<const Definition>> got(4);
  {
    std::vector<std::jthread> partitions;
    for (auto& one : got) {
      partitions.emplace_back([&] {
        ++came;
        one = *cache.Get("numbers", 1);
      });
    }
  }
  EXPECT_EQ(asked, 1);
  for (const auto& one : got) EXPECT_EQ(one, got[0]);
}

// Four partitions come while the first of them fetches. Returns how many fetches fail then.
int FetchesThatFail() {
  std::atomic<int> asked = 0, came = 0;
  DatasetCache cache([&](std::string_view, uint64_t) -> absl::StatusOr<control::GetDatasetAnswer> {
    ++asked;
    while (came < 4) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return absl::UnavailableError("out of reach");
  });
  {
    std::vector<std::jthread> partitions;
    for (int i = 0; i < 4; ++i) {
      partitions.emplace_back([&] {
        ++came;
        EXPECT_EQ(cache.Get("numbers", 1).status().message(), "out of reach");
      });
    }
  }
  return asked;
}

TEST(DatasetCache, PartitionsThatComeTogetherShareOneFailure) {
  bool shared = false;  // on a busy machine, a partition may come only after the failure
  for (int i = 0; i < 50 && !shared; ++i) shared = FetchesThatFail() == 1;
  EXPECT_TRUE(shared);
}

// The large one comes first in the order of editions.
TEST(DatasetCache, ALargeDefinitionDoesNotDropTheSmallOnes) {
  const std::vector<double> values((17 << 20) / 8);
  DatasetCache cache([&](std::string_view, uint64_t edition) {
    return AnswerFor(edition == 0 ? Dataset::FromTensorSlices<double>(values) : Dataset::Range(5));
  });
  std::vector<std::weak_ptr<const Definition>> all;
  for (uint64_t edition : {1, 2, 0, 3}) all.push_back(*cache.Get("any", edition));
  EXPECT_FALSE(all[0].expired());
  EXPECT_FALSE(all[1].expired());
  EXPECT_TRUE(all[2].expired());
  EXPECT_FALSE(all[3].expired());
}

TEST(DatasetCache, DropsLargeDefinitionsThatNobodyUses) {
  const std::vector<double> values((9 << 20) / 8);
  DatasetCache cache([&](std::string_view, uint64_t) {
    return AnswerFor(Dataset::FromTensorSlices<double>(values));
  });
  std::vector<std::weak_ptr<const Definition>> all;
  for (uint64_t edition = 1; edition < 6; ++edition) all.push_back(*cache.Get("large", edition));
  // The newest, and one of 9 MiB.
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](auto& one) { return !one.expired(); }), 2);
}

// When files are added and the dataset is registered again, its fingerprint is the same.
TEST(DatasetCache, TellsEditionsOfOneIdApart) {
  DatasetCache cache([](std::string_view, uint64_t edition) {
    control::GetDatasetAnswer answer = AnswerFor(Dataset::Range(5));
    answer.summary.plan[0].files.assign(edition, "file");
    return answer;
  });
  auto of_two = *cache.Get("files", 2);
  EXPECT_EQ((*cache.Get("files", 3))->plan.providers[0].files.size(), 3u);
  EXPECT_EQ((*cache.Get("files", 2))->plan.providers[0].files.size(), 2u);
  EXPECT_EQ(of_two, *cache.Get("files", 2));
}

TEST(DatasetCache, RefusesDatasetsThatThisProgramReadsDifferently) {
  DatasetCache cache([](std::string_view, uint64_t) {
    control::GetDatasetAnswer answer = AnswerFor(Dataset::Range(5));
    ++answer.summary.fingerprint;
    return answer;
  });
  const absl::Status status = cache.Get("numbers", 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("dataset numbers has fingerprint"));
  EXPECT_TRUE(RefusesDataset(status));
}

TEST(DatasetCache, RefusesDatasetsOfOtherVersionsOfOperations) {
  dataset::wire::Dataset definition;
  ASSERT_TRUE(definition.ParseFromString(*Serialize(Dataset::Range(5))));
  definition.mutable_nodes(0)->set_version(7);
  DatasetCache cache([&](std::string_view, uint64_t) {
    control::GetDatasetAnswer answer = AnswerFor(Dataset::Range(5));
    answer.definition = definition.SerializeAsString();
    return answer;
  });
  const absl::Status status = cache.Get("numbers", 1).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 7 of the operation"));
  EXPECT_TRUE(RefusesDataset(status));
}

TEST(DatasetCache, NamesTheDatasetWhoseDefinitionIsDamaged) {
  DatasetCache cache([](std::string_view, uint64_t) {
    control::GetDatasetAnswer answer = AnswerFor(Dataset::Range(5));
    answer.definition.resize(answer.definition.size() / 2);
    return answer;
  });
  const absl::Status status = cache.Get("numbers", 1).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("numbers"));
  EXPECT_FALSE(RefusesDataset(status)) << "no worker can read it";
}

TEST(DatasetCache, AFailureIsNotRemembered) {
  const Dataset dataset = Dataset::Range(5);
  bool fails = true;
  DatasetCache cache([&](std::string_view, uint64_t) -> absl::StatusOr<control::GetDatasetAnswer> {
    if (std::exchange(fails, false)) return absl::UnavailableError("out of reach");
    return AnswerFor(dataset);
  });
  EXPECT_EQ(cache.Get("numbers", 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(cache.Get("numbers", 1).ok());
}

}  // namespace
}  // namespace penstock::worker
