// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/dataset_parts.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/rpc/dataset_fetcher.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

const absl::Time kFirstPiece = absl::UnixEpoch();

// Returns a dataset whose serialized summary has between 1,000 and 2,000 bytes.
std::shared_ptr<const DatasetRecord> DatasetWithSummary(const std::string& id) {
  DatasetRecord dataset = {.id = id, .definition = absl::StrCat("definition of ", id)};
  dataset.summary.plan = {{.node = "Files#0", .count = 1, .files = {std::string(1000, 'f')}}};
  return std::make_shared<const DatasetRecord>(std::move(dataset));
}

TEST(KeptDatasetParts, HaveTheDigestsOfTheirContent) {
  KeptDatasetParts kept;
  const auto dataset = DatasetWithSummary("a");
  const auto parts = kept.Of(dataset, kFirstPiece);
  EXPECT_EQ(parts->Content(1), dataset->definition);
  EXPECT_EQ(parts->bytes(), dataset->definition.size() + parts->summary.size());
  ASSERT_EQ(parts->list.parts_size(), 2);
  for (uint32_t part : {1, 2}) {
    EXPECT_EQ(parts->list.parts(part - 1).bytes(), parts->Content(part).size());
    EXPECT_EQ(parts->list.parts(part - 1).sha256(), ContentDigest(parts->Content(part)));
  }
  wire::GetDatasetAnswer whole;
  whole.set_dataset_id("a");
  ASSERT_TRUE(whole.mutable_summary()->ParseFromString(parts->summary));
  EXPECT_TRUE(FromWire(whole)->summary == dataset->summary);
}

TEST(KeptDatasetParts, ThoseThatAreFetchedAtOnceAreMadeOnce) {
  KeptDatasetParts kept(/*bytes=*/1500);  // room for one
  const auto a = DatasetWithSummary("a"), b = DatasetWithSummary("b"), c = DatasetWithSummary("c");
  const auto of_a = kept.Of(a, kFirstPiece), of_b = kept.Of(b, kFirstPiece),
             of_c = kept.Of(c, kFirstPiece);
  EXPECT_NE(of_a, of_b);
  for (int piece = 1; piece < 100; ++piece) {
    const absl::Time now = kFirstPiece + piece * KeptDatasetParts::kInUse / 2;
    EXPECT_EQ(kept.Of(a, now), of_a);
    EXPECT_EQ(kept.Of(b, now), of_b);
    EXPECT_EQ(kept.Of(c, now), of_c);
  }
}

TEST(KeptDatasetParts, TheOldestThatAreNotInUseMakeRoom) {
  KeptDatasetParts kept(/*bytes=*/3000);  // room for two
  const auto a = DatasetWithSummary("a"), b = DatasetWithSummary("b");
  const std::weak_ptr<const DatasetParts> of_a = kept.Of(a, kFirstPiece);
  const absl::Time later = kFirstPiece + KeptDatasetParts::kInUse;
  const std::weak_ptr<const DatasetParts> of_b = kept.Of(b, later);
  EXPECT_FALSE(of_a.expired());
  const std::weak_ptr<const DatasetParts> of_c = kept.Of(DatasetWithSummary("c"), later);
  EXPECT_TRUE(of_a.expired());
  EXPECT_FALSE(of_b.expired() || of_c.expired());
  kept.Clear();
  EXPECT_TRUE(of_b.expired() && of_c.expired());
}

}  // namespace
}  // namespace penstock::control
