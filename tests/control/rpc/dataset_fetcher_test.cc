// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/dataset_fetcher.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

constexpr size_t kLarge = 3 * kDatasetPieceBytes + 5;

// A dispatcher with some datasets. Counts the bytes of the pieces that it gives.
class PieceSource {
 public:
  void Add(const std::string& id, std::string definition, const std::string& spec_text) {
    wire::DatasetSummary summary;
    summary.set_spec_text(spec_text);
    contents_[id] = {std::move(definition), summary.SerializeAsString()};
  }
  absl::StatusOr<wire::GetDatasetAnswer> Answer(const wire::DatasetRequest& request) {
    const auto& parts = contents_.at(request.dataset_id());
    wire::GetDatasetAnswer answer;
    answer.set_dataset_id(request.dataset_id());
    if (!request.has_piece() || request.piece().part() == 0) {
      for (const std::string& content : parts) {
        wire::DatasetPart* part = answer.add_parts();
        part->set_bytes(content.size());
        part->set_sha256(ContentDigest(content));
      }
      return answer;
    }
    answer.set_piece(
        parts.at(request.piece().part() - 1).substr(request.piece().offset(), kDatasetPieceBytes));
    bytes_ += answer.piece().size();
    if (alter_ != nullptr) alter_(answer);
    return answer;
  }
  // `alter` changes each further answer with a piece.
  void Alter(std::function<void(wire::GetDatasetAnswer&)> alter) { alter_ = std::move(alter); }
  size_t TakeBytes() { return std::exchange(bytes_, 0); }

 private:
  std::map<std::string, std::vector<std::string>> contents_;
  std::function<void(wire::GetDatasetAnswer&)> alter_;
  size_t bytes_ = 0;
};

absl::StatusOr<GetDatasetAnswer> FetchFrom(PieceSource& source, DatasetFetcher& fetcher,
                                           const std::string& id) {
  return fetcher.Fetch(id, 1,
                       [&](const wire::DatasetRequest& request) { return source.Answer(request); });
}

TEST(DatasetFetcher, PutsThePiecesTogether) {
  PieceSource source;
  source.Add("images", std::string(kLarge, 'd'), "spec");
  DatasetFetcher fetcher;
  const auto fetched = FetchFrom(source, fetcher, "images");
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->dataset_id, "images");
  EXPECT_TRUE(fetched->definition == std::string(kLarge, 'd'));
  EXPECT_EQ(fetched->summary.spec_text, "spec");
}

TEST(DatasetFetcher, APartThatIsHereIsNotFetchedAgain) {
  PieceSource source;
  const std::string list(kLarge, 'f');
  source.Add("images", std::string(kLarge, 'd'), list);
  source.Add("more images", std::string(kLarge, 'd'), list + "f");
  DatasetFetcher fetcher;
  ASSERT_TRUE(FetchFrom(source, fetcher, "images").ok());
  EXPECT_GT(source.TakeBytes(), 2 * kLarge);
  ASSERT_TRUE(FetchFrom(source, fetcher, "images").ok());
  EXPECT_EQ(source.TakeBytes(), 0u);
  const auto other = FetchFrom(source, fetcher, "more images");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->summary.spec_text.size(), kLarge + 1);
  EXPECT_LT(source.TakeBytes(), kLarge + 20) << "only the summary differs";
}

TEST(DatasetFetcher, KeepsTheNewestParts) {
  PieceSource source;
  source.Add("a", std::string(kLarge, 'a'), "");
  source.Add("b", std::string(kLarge, 'b'), "");
  DatasetFetcher fetcher(/*kept_bytes=*/kLarge + 100);
  ASSERT_TRUE(FetchFrom(source, fetcher, "a").ok());
  ASSERT_TRUE(FetchFrom(source, fetcher, "b").ok());
  source.TakeBytes();
  ASSERT_TRUE(FetchFrom(source, fetcher, "b").ok());
  EXPECT_EQ(source.TakeBytes(), 0u);
  ASSERT_TRUE(FetchFrom(source, fetcher, "a").ok());
  EXPECT_EQ(source.TakeBytes(), kLarge);
}

TEST(DatasetFetcher, RefusesAPartWithAnotherContent) {
  PieceSource source;
  source.Add("images", std::string(kLarge, 'd'), "spec");
  source.Alter([](wire::GetDatasetAnswer& answer) { (*answer.mutable_piece())[0] ^= 1; });
  DatasetFetcher fetcher;
  const absl::Status refused = FetchFrom(source, fetcher, "images").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(refused.message(), HasSubstr("the definition of dataset images"));
  source.Alter(nullptr);
  EXPECT_TRUE(FetchFrom(source, fetcher, "images").ok()) << "what was wrong is not kept";
}

TEST(DatasetFetcher, RefusesAPartOfAnotherSize) {
  for (const int more : {-1, 1}) {
    PieceSource source;
    source.Add("images", std::string(kLarge, 'd'), "spec");
    source.Alter([&](wire::GetDatasetAnswer& answer) {
      answer.mutable_piece()->resize(more < 0 ? 0 : 2 * kLarge);
    });
    DatasetFetcher fetcher;
    EXPECT_EQ(FetchFrom(source, fetcher, "images").status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(DatasetFetcher, TakesTheWholeAnswerOfAnOlderDispatcher) {
  DatasetFetcher fetcher;
  const auto fetched = fetcher.Fetch("images", 1, [](const wire::DatasetRequest& request) {
    wire::GetDatasetAnswer answer;
    answer.set_dataset_id(request.dataset_id());
    answer.set_definition("all of it");
    answer.mutable_summary()->set_fingerprint(7);
    return answer;
  });
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->definition, "all of it");
  EXPECT_EQ(fetched->summary.fingerprint, 7u);
}

}  // namespace
}  // namespace penstock::control
