// SPDX-License-Identifier: Apache-2.0
// The n-th element is in the block that was lent for the n-th: nodes that read ahead name the
// element that they make, not the one that is requested.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/expr.h"

namespace penstock {
namespace {

constexpr int64_t kElements = 48;

// Lends from the heap, and records for which element each block was lent.
class PlacesPool : public Pool {
 public:
  absl::StatusOr<Loan> Lend(size_t bytes) override { return heap_->Lend(bytes); }
  absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) override {
    return LendBlockAt(kNoPlace, head_bytes, body_bytes);
  }
  int64_t PlaceOf(int64_t ahead) const override {
    EXPECT_EQ(std::this_thread::get_id(), reader_) << "another thread than the one that is asked";
    return given_ + ahead;
  }
  absl::StatusOr<Loan> LendBlockAt(int64_t place, size_t head_bytes, size_t body_bytes) override {
    absl::StatusOr<Loan> loan = heap_->Lend(head_bytes + body_bytes);
    if (!loan.ok()) return loan;
    MutexLock lock(mu_);
    places_[loan->bytes().data()] = place == kNoPlace ? PlaceOf(0) : place;
    return loan;
  }
  PoolCounters counters() const override { return heap_->counters(); }

  void Gives(int64_t given) { given_ = given; }
  // Returns the number for which the element's block was lent; -1 if it is in another block.
  int64_t Of(const Element& element) const {
    MutexLock lock(mu_);
    const auto found = places_.find(element.block().data());
    return found == places_.end() ? -1 : found->second;
  }

 private:
  const std::shared_ptr<Pool> heap_ = Pool::Create();
  const std::thread::id reader_ = std::this_thread::get_id();
  int64_t given_ = 0;  // used by the reader's thread only
  mutable Mutex mu_;
  std::map<const std::byte*, int64_t> places_ GUARDED_BY(mu_);
};

struct PlacedPipeline {
  const char* name;
  Dataset (*make)();
};
void PrintTo(const PlacedPipeline& pipeline, std::ostream* out) {
  *out << pipeline.name;
}

constexpr MapOptions kFourCalls{.num_parallel_calls = 4};
Dataset Numbers(int64_t count) {
  return Dataset::Range(count);
}
Expr Next(const Expr& x) {
  return x + 1;
}
// Returns a leaf whose size is only known once it is made.
Expr Text(const Expr& x) {
  return AsString(x);
}
Expr TwoTexts(const Expr& x) {
  return Tuple({AsString(x), AsString(x + 1)});
}

class OutputPlaces : public testing::TestWithParam<PlacedPipeline> {};

TEST_P(OutputPlaces, EachElementLiesInTheBlockThatWasLentForIt) {
  const Dataset dataset = GetParam().make();
  std::vector<std::string> states;
  const auto read = [&](int64_t first) {
    PlacesPool pool;
    RunContext context;
    context.output = &pool;
    context.sent_ahead = true;
    context.threads = 4;
    std::vector<Element> elements;  // so that no block is lent twice
    std::unique_ptr<NodeIterator> iterator = BuildIterator(dataset, context).value();
    if (first > 0) {
      const std::string& state = states[static_cast<size_t>(first)];
      EXPECT_TRUE(RestoreIterator(*iterator, dataset, state).ok());
    }
    for (int64_t number = first;; ++number) {
      if (first == 0) states.push_back(SaveIterator(*iterator, dataset, 0).value());
      pool.Gives(number);
      absl::StatusOr<std::optional<Element>> element = iterator->Next();
      EXPECT_TRUE(element.ok()) << element.status();
      if (!element.ok() || !element->has_value()) break;
      elements.push_back(**std::move(element));
    }
    for (size_t i = 0; i < elements.size(); ++i)
      EXPECT_EQ(pool.Of(elements[i]), first + static_cast<int64_t>(i)) << "restored at " << first;
    return static_cast<int64_t>(elements.size());
  };
  const int64_t all = read(0);
  EXPECT_EQ(all, kElements);
  for (int64_t first = 1; first <= all; ++first) EXPECT_EQ(read(first), all - first);
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, OutputPlaces,
    testing::Values(
        PlacedPipeline{"Map", [] { return Numbers(kElements).Map(Next, kFourCalls); }},
        PlacedPipeline{"MapOfOneText", [] { return Numbers(kElements).Map(Text, kFourCalls); }},
        PlacedPipeline{"MapOfTwoTexts",
                       [] { return Numbers(kElements).Map(TwoTexts, kFourCalls); }},
        PlacedPipeline{"MapAlone", [] { return Numbers(kElements).Map(Next); }},
        PlacedPipeline{"Batch", [] { return Numbers(kElements * 3).Batch(3); }},
        PlacedPipeline{"MapBatch",
                       [] { return Numbers(kElements * 3).Map(Next, kFourCalls).Batch(3); }},
        PlacedPipeline{"MapBatchOfTexts",
                       [] { return Numbers(kElements * 3 - 1).Map(Text, kFourCalls).Batch(3); }},
        PlacedPipeline{
            "BehindShuffle",
            [] { return Numbers(kElements).Shuffle(16, {.seed = 3}).Map(Next, kFourCalls); }},
        PlacedPipeline{"Prefetch",
                       [] { return Numbers(kElements).Map(Next, kFourCalls).Prefetch(2); }},
        PlacedPipeline{"TakeWhile",
                       [] {
                         return Numbers(2 * kElements).Map(Next, kFourCalls).TakeWhile([](Expr x) {
                           return x <= kElements;
                         });
                       }},
        PlacedPipeline{"Concatenate",
                       [] {
                         const Dataset half = Numbers(kElements / 2).Map(Next, kFourCalls);
                         return half.Concatenate(half);
                       }},
        PlacedPipeline{"FlatMap",
                       [] {
                         return Numbers(4).FlatMap(
                             [](Expr) { return Numbers(kElements / 4).Map(Next, kFourCalls); });
                       }},
        PlacedPipeline{"Interleave",
                       [] {
                         return Numbers(6).Interleave(
                             [](Expr) { return Numbers(kElements / 6).Map(Next, kFourCalls); },
                             {.cycle_length = 3, .block_length = 2});
                       }},
        PlacedPipeline{"Repeat",
                       [] { return Numbers(kElements / 2).Map(Next, kFourCalls).Repeat(2); }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace penstock
