// SPDX-License-Identifier: Apache-2.0
// Readers of one job with different compression of their links. Alone in its process, whose
// counters it reads.
#include "control/observe/metrics.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

int64_t Compressed(const std::string& codec) {
  return ProcessMetrics()
      .GetCounter("penstock_link_compressed_from_bytes_total", "", {{"codec", codec}})
      .value();
}

TEST(ReadersOfOneJob, NeedNotAgreeOnCompression) {
  constexpr int64_t kElements = 300, kValues = 4096;
  Cluster cluster(1);
  const Dataset runs = Dataset::Range(kElements).Map(
      [](const Expr& number) { return BroadcastTo(number, {kValues}); });
  std::vector<Iterator> readers;
  for (LinkCompression compression :
       {LinkCompression::kNone, LinkCompression::kSnappy, LinkCompression::kLz4}) {
    DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "runs");
    options.data_transfer_protocol = "tcp";
    options.compression = compression;
    options.max_outstanding_requests = 4;  // the first two must leave elements for the third
    absl::StatusOr<Iterator> it = runs.Distribute(options).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    readers.push_back(*std::move(it));
  }
  std::vector<int64_t> numbers;
  while (!readers.empty()) {
    for (auto it = readers.begin(); it != readers.end();) {
      absl::StatusOr<std::optional<Element>> element = it->Next();
      ASSERT_TRUE(element.ok()) << element.status();
      if (!element->has_value()) {
        it = readers.erase(it);
        continue;
      }
      const Tensor run = (*element)->tensor(0);
      const absl::Span<const int64_t> values = run.data<int64_t>();
      ASSERT_EQ(values.size(), static_cast<size_t>(kValues));
      EXPECT_EQ(std::count(values.begin(), values.end(), values[0]), kValues);
      numbers.push_back(values[0]);
      ++it;
    }
  }
  std::vector<int64_t> all;
  for (int64_t number = 0; number < kElements; ++number) all.push_back(number);
  EXPECT_EQ(Sorted(numbers), all);
  EXPECT_GT(Compressed("snappy"), 0);
  EXPECT_GT(Compressed("lz4"), 0);
  EXPECT_LT(Compressed("snappy") + Compressed("lz4"),
            kElements * kValues * static_cast<int64_t>(sizeof(int64_t)));
}

}  // namespace
}  // namespace penstock
