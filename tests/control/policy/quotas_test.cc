// SPDX-License-Identifier: Apache-2.0
#include "control/policy/quotas.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const absl::Status& status, const std::string& words) {
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(Quotas, WithoutLimitsEverythingIsAllowed) {
  const Quotas none;
  constexpr int64_t kMany = int64_t{1} << 40;
  EXPECT_TRUE(none.CheckJobs("x", kMany).ok());
  EXPECT_TRUE(none.CheckDatasetBytes("x", kMany, kMany).ok());
  EXPECT_TRUE(none.CheckClients("x", kMany).ok());
  EXPECT_TRUE(none.CheckTerms("x", {.deterministic = true, .partitions = 4096}).ok());
  EXPECT_EQ(none.MostPartitions("x", 8), std::nullopt);
  EXPECT_FALSE(none.LimitPartitions());
}

TEST(Quotas, ALimitIsTheLastThatIsAllowed) {
  const Quotas quotas({.jobs = 2, .dataset_bytes = 100, .partitions = 3, .clients = 4});
  EXPECT_TRUE(quotas.CheckJobs("x", 1).ok());
  EXPECT_TRUE(quotas.CheckDatasetBytes("x", 60, 40).ok());
  EXPECT_TRUE(quotas.CheckClients("x", 3).ok());
  EXPECT_TRUE(quotas.CheckTerms("x", {.deterministic = true, .partitions = 3}).ok());
  EXPECT_EQ(quotas.MostPartitions("x", 8), 3);
  ExpectRefused(quotas.CheckJobs("x", 2), "namespace x has 2 of 2 jobs (max_jobs_per_namespace)");
  ExpectRefused(quotas.CheckDatasetBytes("x", 60, 41),
                "namespace x has 60 of 100 bytes of datasets, and this one has 41 "
                "(max_dataset_bytes_per_namespace)");
  ExpectRefused(quotas.CheckClients("x", 4),
                "namespace x has 4 of 4 clients (max_clients_per_namespace)");
  ExpectRefused(quotas.CheckTerms("x", {.deterministic = true, .partitions = 4}),
                "needs 4 partitions at once, but namespace x may have 3 "
                "(max_partitions_per_namespace)");
  EXPECT_EQ(quotas.WhyPartitionsWait("x", 3, 8),
            "namespace x has 3 of 3 partitions (max_partitions_per_namespace)");
}

TEST(Quotas, AShareOfTheWorkersIsRoundedDownButNotToZero) {
  const Quotas quotas({.worker_percent = 25});
  EXPECT_TRUE(quotas.LimitPartitions());
  EXPECT_EQ(quotas.MostPartitions("x", 8), 2);
  EXPECT_EQ(quotas.MostPartitions("x", 7), 1);
  EXPECT_EQ(quotas.MostPartitions("x", 0), 1);
  EXPECT_EQ(quotas.WhyPartitionsWait("x", 2, 8),
            "namespace x has 2 of 2 partitions, 25 % of 8 permits "
            "(max_worker_percent_per_namespace)");
  // More workers may come.
  EXPECT_TRUE(quotas.CheckTerms("x", {.deterministic = true, .partitions = 9}).ok());
}

TEST(Quotas, TheLowerOfTwoLimitsOfPartitionsCounts) {
  const Quotas quotas({.partitions = 3, .worker_percent = 50});
  EXPECT_EQ(quotas.MostPartitions("x", 4), 2);
  EXPECT_EQ(quotas.MostPartitions("x", 100), 3);
  EXPECT_THAT(quotas.WhyPartitionsWait("x", 2, 4), HasSubstr("50 % of 4 permits"));
  EXPECT_THAT(quotas.WhyPartitionsWait("x", 3, 100), HasSubstr("3 of 3 partitions (max_part"));
}

TEST(Quotas, ANamedNamespaceHasOnlyItsOwnLimits) {
  const Quotas quotas({.jobs = 1, .partitions = 1}, {{"v", {.jobs = 2}}});
  ExpectRefused(quotas.CheckJobs("v", 5),
                "namespace v has 5 of 2 jobs (max_jobs in [namespaces.v])");
  EXPECT_EQ(quotas.MostPartitions("v", 8), std::nullopt);
  EXPECT_EQ(quotas.MostPartitions("w", 8), 1);
  EXPECT_TRUE(quotas.LimitPartitions());
  EXPECT_TRUE(Quotas({}, {{"v", {.partitions = 1}}}).LimitPartitions());
}

}  // namespace
}  // namespace penstock::control
