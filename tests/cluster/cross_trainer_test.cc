// SPDX-License-Identifier: Apache-2.0
// Trainers of one job that read the same elements through the workers' windows.
#include <atomic>
#include <string>

#include "dataplane/memory/copied.h"
#include "penstock/expr.h"
#include "penstock/register.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kEndless = int64_t{1} << 40;

std::atomic<int64_t>& Prepared() {
  static std::atomic<int64_t> prepared{0};
  return prepared;
}
absl::Status CountPrepared(CallContext& call) {
  ++Prepared();
  absl::StatusOr<absl::Span<int64_t>> out = call.OutputAs<int64_t>(0, {});
  if (!out.ok()) return out.status();
  (*out)[0] = call.inputs()[0].scalar<int64_t>();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("count_prepared", 1, Scalar(kInt64), CountPrepared);

Dataset EndlessNumbers() {
  return Dataset::Range(kEndless)  // makes one call at a time; a Map that reads ahead prepares more
      .Map([](Expr x) { return Call("count_prepared", x); }, {.num_parallel_calls = 1})
      .Repeat();
}

DistributeOptions As(const Cluster& cluster, const std::string& trainer) {
  DistributeOptions options = cluster.Options(ShardingPolicy::kOff, "sweep");
  options.max_outstanding_requests = 4;
  options.delivery = CrossTrainerCache{trainer};
  return options;
}

Iterator TrainerOf(const Dataset& dataset, const DistributeOptions& options) {
  return IteratorOf(dataset.Distribute(options));
}

std::vector<int64_t> Take(Iterator& it, int count) {
  std::vector<int64_t> values;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<std::optional<Element>> element = it.Next();
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok() || !element->has_value()) break;
    values.push_back((*element)->tensor(0).scalar<int64_t>());
  }
  return values;
}

std::vector<int64_t> From(int64_t first, int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

class CrossTrainer : public testing::TestWithParam<const char*> {};

TEST_P(CrossTrainer, EachReadsAllAndItIsPreparedOnce) {
  Cluster cluster(1);
  const int64_t before = Prepared();
  std::vector<Iterator> trainers;
  for (const char* id : {"a", "b", "c"}) {
    DistributeOptions options = As(cluster, id);
    options.data_transfer_protocol = GetParam();
    trainers.push_back(TrainerOf(EndlessNumbers(), options));
    EXPECT_EQ(Take(trainers.back(), 200), From(0, 200)) << id;
  }
  // The elements that the first may have requested in advance, and one that is ready to be sent.
  EXPECT_LE(Prepared() - before, 200 + 4 + 1);
}

INSTANTIATE_TEST_SUITE_P(Over, CrossTrainer, testing::Values("local", "shm", "tcp", "grpc"));

// --- Over shared memory ----------------------------------------------------------------

constexpr int64_t kLargeValues = 40'000;  // in an element; more than fits in frames

// Element i is kLargeValues times the value i. The last node makes it.
Dataset EndlessLarge() {
  return Dataset::Range(kEndless).Repeat().Map([](Expr x) { return Call("fill_large", x); },
                                               {.num_parallel_calls = 1});
}
absl::Status FillLarge(CallContext& call) {
  ++Prepared();
  const int64_t dims[] = {kLargeValues};
  absl::StatusOr<absl::Span<int64_t>> out = call.OutputAs<int64_t>(0, dims);
  if (!out.ok()) return out.status();
  std::fill(out->begin(), out->end(), call.inputs()[0].scalar<int64_t>());
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("fill_large", 1, Dense(kInt64, {kLargeValues}), FillLarge);

DistributeOptions OverShm(const Cluster& cluster, const std::string& trainer) {
  DistributeOptions options = As(cluster, trainer);
  options.data_transfer_protocol = "shm";
  return options;
}

Element TakeOne(Iterator& it) {
  absl::StatusOr<std::optional<Element>> element = it.Next();
  EXPECT_TRUE(element.ok()) << element.status();
  return element.ok() && element->has_value() ? **std::move(element) : Element();
}

bool IsLarge(const Element& element, int64_t value) {
  const absl::Span<const int64_t> values = element.tensor(0).data<int64_t>();
  return values.size() == size_t{kLargeValues} &&
         std::all_of(values.begin(), values.end(), [=](int64_t its) { return its == value; });
}

TEST(CrossTrainerOverShm, AllReadOneElementWhereItWasMade) {
  Cluster cluster(1);
  std::vector<Iterator> trainers;
  for (const char* id : {"a", "b", "c"})
    trainers.push_back(TrainerOf(EndlessLarge(), OverShm(cluster, id)));
  std::vector<Element> first;
  for (Iterator& it : trainers) first.push_back(TakeOne(it));
  const int64_t copied = BytesCopied(), prepared = Prepared();
  for (int64_t i = 1; i < 100; ++i) {
    for (Iterator& it : trainers) {
      const Element element = TakeOne(it);
      ASSERT_TRUE(IsLarge(element, i));
    }
  }
  EXPECT_EQ(BytesCopied(), copied);
  EXPECT_LE(Prepared() - prepared, 100 + 4 + 1);
  for (const Element& element : first) EXPECT_TRUE(IsLarge(element, 0));  // lent the whole time
}

TEST(CrossTrainerOverShm, ElementsMadeElsewhereAreCopiedOnceForAll) {
  Cluster cluster(1);
  const Dataset repeated = EndlessLarge().Repeat();  // not made by the last node
  std::vector<Iterator> trainers;
  for (const char* id : {"a", "b", "c"})
    trainers.push_back(TrainerOf(repeated, OverShm(cluster, id)));
  for (Iterator& it : trainers) TakeOne(it);
  const int64_t copied = BytesCopied();
  for (int64_t i = 1; i < 50; ++i) {
    for (Iterator& it : trainers) ASSERT_TRUE(IsLarge(TakeOne(it), i));
  }
  EXPECT_LT(BytesCopied() - copied, 60 * (kLargeValues * int64_t{sizeof(int64_t)} + 4096));
}

TEST(CrossTrainerOverShm, ATrainerThatHoldsElementsStallsNobody) {
  Cluster cluster(0);
  cluster.AddWorker({.cross_trainer_cache_size_bytes = 8 << 20});
  Iterator keeps = TrainerOf(EndlessLarge(), OverShm(cluster, "keeps"));
  Iterator reads = TrainerOf(EndlessLarge(), OverShm(cluster, "reads"));
  std::vector<Element> kept;
  for (int64_t i = 0; i < 10; ++i) kept.push_back(TakeOne(keeps));
  int64_t before = -1;
  for (int i = 0; i < 500; ++i) {
    const Element element = TakeOne(reads);
    const int64_t value = element.tensor(0).data<int64_t>()[0];
    EXPECT_GT(value, before);
    ASSERT_TRUE(IsLarge(element, value));
    before = value;
  }
  for (int64_t i = 0; i < 10; ++i) EXPECT_TRUE(IsLarge(kept[i], i));
}

TEST(CrossTrainerOverShm, LoansOfAReaderAreBoundedAndTheRestAreCopies) {
  Cluster cluster(0);
  cluster.AddWorker({.max_loan_bytes = 1});  // one at a time
  Iterator it = TrainerOf(EndlessLarge(), OverShm(cluster, "keeps"));
  const int64_t copied = BytesCopied();
  std::vector<Element> kept;
  for (int64_t i = 0; i < 5; ++i) kept.push_back(TakeOne(it));
  for (int64_t i = 0; i < 5; ++i) EXPECT_TRUE(IsLarge(kept[i], i));
  EXPECT_GE(BytesCopied() - copied, 4 * kLargeValues * int64_t{sizeof(int64_t)});
}

TEST(CrossTrainerOverShm, ASettingBoundsTheWorkersSharedMemory) {
  Cluster cluster(0);
  cluster.AddWorker({.shared_pool_bytes = 1});  // no room for an element
  std::vector<Iterator> trainers;
  for (const char* id : {"a", "b"})
    trainers.push_back(TrainerOf(EndlessLarge(), OverShm(cluster, id)));
  const int64_t copied = BytesCopied();
  for (int64_t i = 0; i < 10; ++i) {
    for (Iterator& it : trainers) ASSERT_TRUE(IsLarge(TakeOne(it), i));
  }
  EXPECT_GE(BytesCopied() - copied, 20 * kLargeValues * int64_t{sizeof(int64_t)});
}

TEST(CrossTrainerOverShm, AReturningTrainerKeepsItsLentElements) {
  Cluster cluster(1);
  Iterator stays = TrainerOf(EndlessLarge(), OverShm(cluster, "stays"));
  Element kept;
  {
    Iterator leaves = TrainerOf(EndlessLarge(), OverShm(cluster, "leaves"));
    kept = TakeOne(leaves);
  }
  for (int64_t i = 0; i < 200; ++i) ASSERT_TRUE(IsLarge(TakeOne(stays), i));
  Iterator again = TrainerOf(EndlessLarge(), OverShm(cluster, "leaves"));
  const Element next = TakeOne(again);
  EXPECT_TRUE(IsLarge(next, next.tensor(0).data<int64_t>()[0]));
  EXPECT_TRUE(IsLarge(kept, 0));
}

TEST(CrossTrainerOverShm, LentElementsOutliveTheWorker) {
  std::vector<Element> kept;
  {
    Cluster cluster(1);
    Iterator it = TrainerOf(EndlessLarge(), OverShm(cluster, "a"));
    for (int64_t i = 0; i < 3; ++i) kept.push_back(TakeOne(it));
  }
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(IsLarge(kept[i], i));
}

TEST(CrossTrainerOverShm, ATrainerOverTcpReadsTheSame) {
  Cluster cluster(1);
  Iterator here = TrainerOf(EndlessLarge(), OverShm(cluster, "here"));
  DistributeOptions options = As(cluster, "there");
  options.data_transfer_protocol = "tcp";
  Iterator there = TrainerOf(EndlessLarge(), options);
  for (int64_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(IsLarge(TakeOne(here), i));
    ASSERT_TRUE(IsLarge(TakeOne(there), i));
  }
}

TEST(CrossTrainerJobs, ReadersOfOneTrainerHaveEachElementOnce) {
  Cluster cluster(1);
  Iterator a = TrainerOf(EndlessNumbers(), As(cluster, "same"));
  Iterator b = TrainerOf(EndlessNumbers(), As(cluster, "same"));
  std::vector<int64_t> values;
  for (int i = 0; i < 100; ++i) {
    for (Iterator* it : {&a, &b}) {
      for (int64_t value : Take(*it, 1)) values.push_back(value);
    }
  }
  values = Sorted(values);
  EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
  EXPECT_LT(values.back(), 200 + 2 * 4);  // shared, not read twice
}

TEST(CrossTrainerJobs, ASlowOneSkipsAndTheFastOneIsNotHeldUp) {
  Cluster cluster(0);
  cluster.AddWorker({.cross_trainer_cache_size_bytes = 16 << 10});
  Iterator slow = TrainerOf(EndlessNumbers(), As(cluster, "slow")),
           fast = TrainerOf(EndlessNumbers(), As(cluster, "fast"));
  EXPECT_EQ(Take(slow, 1), From(0, 1));
  const std::vector<int64_t> all = Take(fast, 2000);
  EXPECT_EQ(all, From(all[0], 2000));
  const std::vector<int64_t> some = Take(slow, 50);
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
  EXPECT_GT(some.back(), 1000);
}

TEST(CrossTrainerJobs, ALeavingTrainerMovesNothing) {
  Cluster cluster(1);
  Iterator stays = TrainerOf(EndlessNumbers(), As(cluster, "stays"));
  {
    Iterator leaves = TrainerOf(EndlessNumbers(), As(cluster, "leaves"));
    EXPECT_EQ(Take(leaves, 10), From(0, 10));
    EXPECT_EQ(Take(stays, 100), From(0, 100));
  }
  EXPECT_EQ(Take(stays, 100), From(100, 100));
}

TEST(CrossTrainerJobs, AWorkersDeathEndsNobodysReading) {
  Cluster cluster(2);
  Iterator a = TrainerOf(EndlessNumbers(), As(cluster, "a")),
           b = TrainerOf(EndlessNumbers(), As(cluster, "b"));
  EXPECT_EQ(Take(a, 100).size(), 100u);
  EXPECT_EQ(Take(b, 10).size(), 10u);
  cluster.RemoveWorker(0);
  EXPECT_EQ(Take(a, 500).size(), 500u);
  EXPECT_EQ(Take(b, 500).size(), 500u);
}

absl::Status ErrorOfPass(const Dataset& dataset, const DistributeOptions& options) {
  Iterator it = TrainerOf(dataset, options);
  while (true) {
    absl::StatusOr<std::optional<Element>> element = it.Next();
    if (!element.ok()) return element.status();
    if (!element->has_value()) return absl::OkStatus();
  }
}

TEST(CrossTrainerJobs, AreRefusedForADatasetThatEnds) {
  Cluster cluster(1);
  const absl::Status known = Dataset::Range(10).Distribute(As(cluster, "a")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(known)) << known;
  EXPECT_THAT(std::string(known.message()), HasSubstr("cardinality 10"));
  const Dataset unknown = Dataset::Range(10).Filter([](Expr x) { return x < 5; });
  const absl::Status found = ErrorOfPass(unknown, As(cluster, "a"));
  EXPECT_TRUE(absl::IsInvalidArgument(found)) << found;
  EXPECT_THAT(std::string(found.message()), HasSubstr("requires an infinite dataset"));
}

TEST(CrossTrainerJobs, WithAndWithoutACacheAreTwo) {
  Cluster cluster(1);
  Iterator with = TrainerOf(EndlessNumbers(), As(cluster, "a"));
  EXPECT_EQ(Take(with, 1).size(), 1u);
  DistributeOptions without = As(cluster, "");
  without.delivery = FirstComeFirstServed();
  const absl::Status refused = ErrorOfPass(EndlessNumbers(), without);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cross-trainer cache"));
}

}  // namespace
}  // namespace penstock
