// SPDX-License-Identifier: Apache-2.0
// No reader waits for a slot while others wait for that reader's slot. Tests every such circle that
// could exist, over each transport, with the smallest windows allowed.
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "penstock/register.h"
#include "tests/cluster/cluster.h"
#include "tools/soak/numbers.h"

namespace penstock {
namespace {

using soak::IsWhole;
using soak::NumberOf;

// Stops the first call with the number `at` until the gate is opened or destroyed.
class Gate {
 public:
  explicit Gate(int64_t at) {
    std::lock_guard lock(mu_);
    at_ = at;
    taken_ = false;
  }
  ~Gate() { Open(); }
  static void Open() {
    {
      std::lock_guard lock(mu_);
      at_ = kNowhere;
    }
    opened_.notify_all();
  }
  static void Pass(int64_t number) {
    std::unique_lock lock(mu_);
    if (number != at_ || std::exchange(taken_, true)) return;
    opened_.wait(lock, [] { return at_ == kNowhere; });
  }

 private:
  static constexpr int64_t kNowhere = -1;
  static std::mutex mu_;
  static std::condition_variable opened_;
  static int64_t at_;
  static bool taken_;
};
std::mutex Gate::mu_;
std::condition_variable Gate::opened_;
int64_t Gate::at_ = kNowhere;
bool Gate::taken_ = false;

absl::Status PassGate(CallContext& call) {
  const int64_t number = call.inputs()[0].scalar<int64_t>();
  Gate::Pass(number);
  absl::StatusOr<absl::Span<int64_t>> out = call.OutputAs<int64_t>(0, {});
  if (out.ok()) (*out)[0] = number;
  return out.status();
}
PENSTOCK_REGISTER_MAP("waits.pass_gate", 1, Scalar(kInt64), PassGate);

// Like soak::Numbers(), but through the gate.
Dataset NumbersThroughGate(int64_t count, int64_t words) {
  return Dataset::Range(count).Map([words](auto n) {
    const Expr number = Call("waits.pass_gate", n);
    return Tuple({number, OneHot(number, words, kInt64) * int64_t{7} + number});
  });
}

class Waits : public testing::TestWithParam<std::string> {
 protected:
  DistributeOptions Options(const Cluster& cluster, ShardingPolicy mode, int64_t window) const {
    DistributeOptions options = cluster.Options(mode);
    options.max_outstanding_requests = window;
    options.data_transfer_protocol = GetParam();
    return options;
  }

  // Returns the next element; an empty one at the end. If none comes, the test fails and it is
  // empty too.
  static Element Next(Iterator& it) {
    absl::StatusOr<std::optional<Element>> element = it.Next(absl::Now() + absl::Minutes(1));
    EXPECT_TRUE(element.ok()) << element.status();
    return element.ok() && element->has_value() ? **std::move(element) : Element();
  }
  // Reads up to `most` numbers and checks each element.
  static std::vector<int64_t> Read(Iterator& it, int64_t words, size_t most = SIZE_MAX) {
    std::vector<int64_t> numbers;
    while (numbers.size() < most) {
      const Element element = Next(it);
      if (!element) break;
      EXPECT_TRUE(IsWhole(element, words)) << NumberOf(element);
      numbers.push_back(NumberOf(element));
    }
    return numbers;
  }
};

// A partition that stops takes neither the order nor the last credit from the other.
TEST_P(Waits, AStoppedPartitionHoldsUpNoOther) {
  constexpr int64_t kCount = 100;
  for (const bool fair : {false, true}) {
    for (const int64_t window : {1, 2, 3}) {
      for (const int64_t stands_at : {0, 5}) {
        SCOPED_TRACE(
            absl::StrCat("order ", fair ? "fair" : "any", " window ", window, " at ", stands_at));
        Cluster cluster(2);
        Gate gate(stands_at);
        DistributeOptions options = Options(cluster, ShardingPolicy::kOff, window);
        options.delivery = FirstComeFirstServed{.fair = fair};
        absl::StatusOr<Iterator> it =
            NumbersThroughGate(kCount, 10).Distribute(options).MakeIterator();
        ASSERT_TRUE(it.ok()) << it.status();
        // All of the other partition, and the elements before the gate.
        std::vector<int64_t> numbers = Read(*it, 10, kCount + stands_at);
        ASSERT_EQ(numbers.size(), kCount + stands_at);
        Gate::Open();
        for (int64_t number : Read(*it, 10)) numbers.push_back(number);
        std::vector<int64_t> twice = UpTo(kCount);
        for (int64_t number : UpTo(kCount)) twice.push_back(number);
        EXPECT_EQ(Sorted(numbers), Sorted(twice));
      }
    }
  }
}

TEST_P(Waits, AHalfFullFrameComesToAReaderThatWaits) {
  Cluster cluster(1);
  Gate gate(3);
  absl::StatusOr<Iterator> it = NumbersThroughGate(10, 1)
                                    .Distribute(Options(cluster, ShardingPolicy::kOff, 1000))
                                    .MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  EXPECT_EQ(Read(*it, 1, 3), UpTo(3));
  Gate::Open();
  EXPECT_EQ(Read(*it, 1).size(), 7u);
}

TEST_P(Waits, FewerSlotsThanWorkersAreEnough) {
  for (const int64_t window : {1, 3}) {
    for (const int64_t words : {1, 2000, 20000}) {
      SCOPED_TRACE(absl::StrCat("window ", window, " words ", words));
      Cluster cluster(4);
      absl::StatusOr<Iterator> it =
          NumbersThroughGate(200, words)
              .Distribute(Options(cluster, ShardingPolicy::kDynamic, window))
              .MakeIterator();
      ASSERT_TRUE(it.ok()) << it.status();
      EXPECT_EQ(Sorted(Read(*it, words)), UpTo(200));
    }
  }
}

TEST_P(Waits, AWindowSmallerThanAnElementLetsOneThrough) {
  Cluster cluster(3);
  DistributeOptions options = Options(cluster, ShardingPolicy::kDynamic, 0);
  options.max_outstanding_bytes = 1000;
  absl::StatusOr<Iterator> it = NumbersThroughGate(200, 20000).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  EXPECT_EQ(Sorted(Read(*it, 20000)), UpTo(200));
}

// Elements that are copied out, in a frame, and in slots of their own.
TEST_P(Waits, HeldElementsHoldUpNoOthers) {
  for (const int64_t words : {1, 300, 2000, 20000}) {
    SCOPED_TRACE(absl::StrCat("words ", words));
    Cluster cluster(2);
    absl::StatusOr<Iterator> it = NumbersThroughGate(400, words)
                                      .Distribute(Options(cluster, ShardingPolicy::kDynamic, 2))
                                      .MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    std::vector<Element> kept;
    while (Element element = Next(*it)) kept.push_back(std::move(element));
    std::vector<int64_t> numbers;
    for (const Element& element : kept) {
      EXPECT_TRUE(IsWhole(element, words)) << NumberOf(element);
      numbers.push_back(NumberOf(element));
    }
    EXPECT_EQ(Sorted(numbers), UpTo(400));
  }
}

TEST_P(Waits, ABufferAfterDistributeMayBeLargerThanTheWindow) {
  for (const int64_t words : {1, 2000, 20000}) {
    SCOPED_TRACE(absl::StrCat("words ", words));
    Cluster cluster(2);
    const Dataset job =
        NumbersThroughGate(300, words).Distribute(Options(cluster, ShardingPolicy::kDynamic, 2));
    for (const Dataset& buffered : {job.Shuffle(200), job.Prefetch(50)}) {
      absl::StatusOr<Iterator> it = buffered.MakeIterator();
      ASSERT_TRUE(it.ok()) << it.status();
      EXPECT_EQ(Sorted(Read(*it, words)), UpTo(300));
    }
    absl::StatusOr<Iterator> it = job.Batch(50).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    std::vector<int64_t> numbers;
    while (Element batch = Next(*it)) {
      for (int64_t number : batch.tensor(0).data<int64_t>()) numbers.push_back(number);
    }
    EXPECT_EQ(Sorted(numbers), UpTo(300));
  }
}

TEST_P(Waits, TwoJobsAreReadInStepWithOneSlotEach) {
  Cluster cluster(2);
  const DistributeOptions options = Options(cluster, ShardingPolicy::kDynamic, 1);
  absl::StatusOr<Iterator> it = Dataset::Zip({NumbersThroughGate(200, 1).Distribute(options),
                                              NumbersThroughGate(200, 20000).Distribute(options)})
                                    .MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> first;
  std::vector<int64_t> second;
  while (Element pair = Next(*it)) {
    first.push_back(pair.tensor(0).scalar<int64_t>());
    second.push_back(pair.tensor(2).scalar<int64_t>());
  }
  EXPECT_EQ(Sorted(first), UpTo(200));
  EXPECT_EQ(Sorted(second), UpTo(200));
}

TEST_P(Waits, AReaderThatReadsNothingHoldsUpNoMoreThanItsWindow) {
  constexpr int64_t kCount = 500;
  constexpr int64_t kWindow = 4;
  for (const int64_t words : {1, 20000}) {
    SCOPED_TRACE(absl::StrCat("words ", words));
    Cluster cluster(2);
    DistributeOptions options = Options(cluster, ShardingPolicy::kDynamic, kWindow);
    options.job_name = "shared";
    // A dataset for each, as in separate processes: iterators of one dataset read one pass after
    // the other.
    const auto job = [&] { return NumbersThroughGate(kCount, words).Distribute(options); };
    absl::StatusOr<Iterator> idle = job().MakeIterator();
    absl::StatusOr<Iterator> busy = job().MakeIterator();
    ASSERT_TRUE(idle.ok() && busy.ok()) << idle.status() << busy.status();
    std::vector<int64_t> numbers = Read(*idle, words, 1);
    for (int64_t number : Read(*busy, words, kCount - 1 - kWindow)) numbers.push_back(number);
    ASSERT_EQ(numbers.size(), kCount - kWindow);
    std::vector<int64_t> of_idle;
    std::thread wakes([&] { of_idle = Read(*idle, words); });
    for (int64_t number : Read(*busy, words)) numbers.push_back(number);
    wakes.join();
    numbers.insert(numbers.end(), of_idle.begin(), of_idle.end());
    EXPECT_EQ(Sorted(numbers), UpTo(kCount));
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Waits, testing::Values("local", "shm", "tcp", "grpc"),
                         [](const auto& its) { return its.param; });

}  // namespace
}  // namespace penstock
