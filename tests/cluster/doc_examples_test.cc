// SPDX-License-Identifier: Apache-2.0
// The examples of tf.data service's own documentation as test cases. X1 to X8 are their numbers in
// our list.

#include <future>

#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DocExamples, X1ParallelEpochsGivesEachWorkersWholeDataset) {
  Cluster cluster(2);
  Dataset dataset = Dataset::Range(10).Distribute(cluster.Options(ShardingPolicy::kOff));
  EXPECT_THAT(Sorted(ReadAll(dataset)),
              ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9));
}

TEST(DocExamples, X2DistributedEpochGivesEachElementOnce) {
  Cluster cluster(2);
  Dataset dataset = Dataset::Range(10).Distribute(cluster.Options(ShardingPolicy::kDynamic));
  EXPECT_THAT(Sorted(ReadAll(dataset)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(DocExamples, X3MapsBeforeRunOnWorkersAndMapsAfterInTheReader) {
  auto build = [](const Cluster& cluster) {
    return Dataset::Range(5)
        .Map([](auto x) { return x * x; })
        .Distribute(cluster.Options(ShardingPolicy::kOff))
        .Map([](auto x) { return x + 1; });
  };
  Cluster two(2);
  EXPECT_THAT(Sorted(ReadAll(build(two))), ElementsAre(1, 1, 2, 2, 5, 5, 10, 10, 17, 17));
  Cluster one(1);
  EXPECT_THAT(ReadAll(build(one)), ElementsAre(1, 2, 5, 10, 17));
}

TEST(DocExamples, X4SharedJobGivesEachPassOnceToBothReadersTogether) {
  Cluster cluster(1);
  auto read_three_passes = [&] {
    Dataset dataset =
        Dataset::Range(5).Distribute(cluster.Options(ShardingPolicy::kOff, "my_job_name"));
    std::vector<std::vector<int64_t>> passes;
    for (int pass = 0; pass < 3; ++pass) passes.push_back(ReadAll(dataset));
    return passes;
  };
  auto other = std::async(std::launch::async, read_three_passes);
  std::vector<std::vector<int64_t>> mine = read_three_passes();
  std::vector<std::vector<int64_t>> theirs = other.get();
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<int64_t> together = mine[pass];
    together.insert(together.end(), theirs[pass].begin(), theirs[pass].end());
    EXPECT_THAT(Sorted(together), ElementsAre(0, 1, 2, 3, 4)) << "pass " << pass;
  }
}

TEST(DocExamples, X5RepeatAfterDistributeReadsAnIterationPerRepetition) {
  Cluster cluster(1);
  Dataset dataset =
      Dataset::Range(5).Distribute(cluster.Options(ShardingPolicy::kOff, "my_job_name")).Repeat(3);
  EXPECT_THAT(ReadAll(dataset), ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4));
}

TEST(DocExamples, X6AFinishedNameGivesTheEndAtOnce) {
  Cluster cluster(1);
  auto dataset = [&](std::string run) {
    DistributeOptions options = cluster.Options(ShardingPolicy::kOff, "job");
    options.run_id = std::move(run);
    return Dataset::Range(5).Distribute(options);
  };
  EXPECT_THAT(ReadAll(dataset("")), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ReadAll(dataset("")), IsEmpty());
  EXPECT_THAT(ReadAll(dataset("again")), ElementsAre(0, 1, 2, 3, 4));
}

TEST(DocExamples, X7RegisteredDatasetIsReadById) {
  Cluster cluster(2);
  absl::StatusOr<std::string> id = RegisterDataset(cluster.service(), Dataset::Range(10));
  ASSERT_TRUE(id.ok()) << id.status();
  const auto twice = ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9);
  absl::StatusOr<Dataset> with_spec =
      FromDatasetId(*id, cluster.Options(ShardingPolicy::kOff), Spec(Scalar(kInt64)));
  ASSERT_TRUE(with_spec.ok()) << with_spec.status();
  EXPECT_THAT(Sorted(ReadAll(*with_spec)), twice);
  absl::StatusOr<Dataset> asked = FromDatasetId(*id, cluster.Options(ShardingPolicy::kOff));
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->element_spec(), Spec(Scalar(kInt64)));
  EXPECT_THAT(Sorted(ReadAll(*asked)), twice);
}

TEST(DocExamples, X8EqualDefinitionsGetOneId) {
  Cluster cluster(1);
  auto definition = [] { return Dataset::Range(10).Map([](auto x) { return x * 3; }); };
  absl::StatusOr<std::string> first = RegisterDataset(cluster.service(), definition());
  absl::StatusOr<std::string> second = RegisterDataset(cluster.service(), definition());
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(*first, *second);
  absl::StatusOr<std::string> other = RegisterDataset(cluster.service(), Dataset::Range(11));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(*first, *other);
}

TEST(DocExamples, AnotherPipelineUnderTheSameJobNameIsRefusedNamingTheNode) {
  Cluster cluster(1);
  auto job = [&](int64_t batch) {
    return Dataset::Range(100).Batch(batch).Distribute(
        cluster.Options(ShardingPolicy::kDynamic, "batches"));
  };
  absl::StatusOr<Iterator> first = job(8).MakeIterator();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(first->Next().ok());
  absl::StatusOr<Iterator> second = job(16).MakeIterator();
  absl::Status status = second.ok() ? second->Next().status() : second.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("Batch"));
}

}  // namespace
}  // namespace penstock
