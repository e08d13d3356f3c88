// SPDX-License-Identifier: Apache-2.0
// Which elements of a service count as delivered, whatever nodes follow Distribute: those of which
// something was returned, and those that were dropped before it.
#include "dataplane/dataset/engine/pending_deliveries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "include/status_macros.h"
#include "penstock/dataset.h"
#include "penstock/expr.h"
#include "penstock/iterator.h"

namespace penstock {
namespace {

using Values = std::multiset<int64_t>;

// A service that gives 0, 1, 2, … and records which are delivered.
class Service final : public GivesElements {
 public:
  static Service& Instance() {
    static Service& service = *new Service;
    return service;
  }
  absl::Status OnDelivered(absl::Span<const PendingDelivery> deliveries) override {
    std::lock_guard lock(mu_);
    for (const PendingDelivery& delivery : deliveries) delivered_.insert(delivery.position);
    return refuses;
  }
  Values delivered() {
    std::lock_guard lock(mu_);
    return delivered_;
  }
  void Begin() {
    std::lock_guard lock(mu_);
    delivered_.clear();
    refuses = absl::OkStatus();
  }
  absl::Status refuses;

 private:
  std::mutex mu_;
  Values delivered_;
};

class Given final : public NodeIterator {
 public:
  explicit Given(const BuildSite& site) : site_(site), count_(site.attr<int64_t>("count")) {}
  absl::StatusOr<std::optional<Element>> Next() override {
    if (given_ == count_) return std::nullopt;
    const PendingDelivery delivery{&Service::Instance(), PartitionId(1), given_};
    if (PendingDeliveries* pending = PendingDeliveries::Current()) {
      pending->Add(delivery);
    } else {
      RETURN_IF_ERROR(Service::Instance().OnDelivered({&delivery, 1}));
    }
    const int64_t value = given_++;
    ASSIGN_OR_RETURN(Element element,
                     MakeElement(site_.pool(), {Tensor(kInt64, {}, &value)}, site_.spec()));
    return std::optional<Element>(std::move(element));
  }
  absl::Status Save(StateWriter&) override { return absl::OkStatus(); }
  absl::Status Restore(StateReader&) override { return absl::OkStatus(); }

 private:
  const BuildSite site_;
  const int64_t count_;
  int64_t given_ = 0;
};

Dataset FromService(int64_t count) {
  RegisterNodeKind(
      {.op = "TestService",
       .attrs = {{"count", AttrType::kInt}},
       .min_inputs = 0,
       .max_inputs = 0,
       .elsewhere = true,
       .infer = [](const Attrs& attrs, absl::Span<const NodePtr>) -> absl::StatusOr<Inferred> {
         return Inferred{Scalar(kInt64), Get<int64_t>(attrs, "count")};
       },
       .build = [](const BuildSite& site) -> absl::StatusOr<std::unique_ptr<NodeIterator>> {
         return std::make_unique<Given>(site);
       }});
  return DatasetOf(MakeNode("TestService", {{"count", count}}, {}));
}

constexpr int64_t kCount = 100;

struct Behind {
  std::string name;
  std::function<Dataset(const Dataset&)> nodes;  // their results consist of the numbers themselves
  std::set<int64_t> dropped = {};                // numbers that the nodes drop
};

void PrintTo(const Behind& behind, std::ostream* out) {
  *out << behind.name;
}

std::set<int64_t> From(int64_t first) {
  std::set<int64_t> numbers;
  for (int64_t n = first; n < kCount; ++n) numbers.insert(n);
  return numbers;
}
std::set<int64_t> Odd() {
  std::set<int64_t> numbers;
  for (int64_t n = 1; n < kCount; n += 2) numbers.insert(n);
  return numbers;
}
Expr Twice(const Expr& x) {
  return x + x - x;
}
Expr IsEven(const Expr& x) {
  return x % int64_t{2} == int64_t{0};
}

std::vector<Behind> All() {
  return {
      {"Prefetch", [](const Dataset& d) { return d.Prefetch(16); }},
      {"Shuffle", [](const Dataset& d) { return d.Shuffle(16); }},
      {"ShuffleOfAll", [](const Dataset& d) { return d.Shuffle(2 * kCount); }},
      {"Map", [](const Dataset& d) { return d.Map(Twice); }},
      {"MapInParallel", [](const Dataset& d) { return d.Map(Twice, {.num_parallel_calls = 4}); }},
      {"MapBatch",
       [](const Dataset& d) { return d.Map(Twice, {.num_parallel_calls = 4}).Batch(8); }},
      {"MapBatchWithoutTheRest",
       [](const Dataset& d) {
         return d.Map(Twice, {.num_parallel_calls = 4}).Batch(8, {.drop_remainder = true});
       },
       From(96)},
      {"Batch", [](const Dataset& d) { return d.Batch(8).Prefetch(3); }},
      {"BatchWithoutTheRest",
       [](const Dataset& d) { return d.Batch(8, {.drop_remainder = true}).Prefetch(3); }, From(96)},
      {"Filter", [](const Dataset& d) { return d.Filter(IsEven).Prefetch(4); }, Odd()},
      {"FilterShuffleBatchPrefetch",
       [](const Dataset& d) { return d.Filter(IsEven).Shuffle(8).Batch(4).Prefetch(2); }, Odd()},
      {"ShuffleShuffle", [](const Dataset& d) { return d.Shuffle(16).Shuffle(16); }},
      {"Take", [](const Dataset& d) { return d.Prefetch(4).Take(kCount); }},
      {"Unbatch", [](const Dataset& d) { return d.Batch(1).Prefetch(4).Unbatch(); }},
      {"GroupByWindow",
       [](const Dataset& d) {
         return d.GroupByWindow([](const Expr& x) { return x % int64_t{3}; }, 5).Batch();
       }},
      {"Zip",
       [](const Dataset& d) {
         return Dataset::Zip({d.Shuffle(8), Dataset::Range(kCount)});
       }},
      {"Concatenate",
       [](const Dataset& d) { return d.Shuffle(8).Concatenate(Dataset::Range(1000, 1003)); }},
  };
}

// Returns the numbers of the service in an element's first leaf.
Values NumbersOf(const Element& element) {
  Values numbers;
  for (int64_t n : element.tensor(0).data<int64_t>())
    if (n < kCount) numbers.insert(n);
  return numbers;
}

class DeliveredBehind : public testing::TestWithParam<Behind> {
 protected:
  DeliveredBehind() { Service::Instance().Begin(); }
  Dataset Nodes() const { return GetParam().nodes(FromService(kCount)); }
  // Returns the delivered numbers that are neither in `returned` nor dropped.
  Values Beyond(const Values& delivered, const Values& returned) const {
    Values beyond;
    for (int64_t n : delivered)
      if (!returned.contains(n) && !GetParam().dropped.contains(n)) beyond.insert(n);
    return beyond;
  }
};

TEST_P(DeliveredBehind, IsWhatWasReturned) {
  Iterator iterator = Nodes().MakeIterator({.seed = 7}).value();
  Values returned;
  for (int i = 0; i < 9; ++i) {
    absl::StatusOr<std::optional<Element>> next = iterator.Next();
    ASSERT_TRUE(next.ok() && next->has_value()) << next.status();
    returned.merge(NumbersOf(**next));
    const Values delivered = Service::Instance().delivered();
    EXPECT_TRUE(
        std::includes(delivered.begin(), delivered.end(), returned.begin(), returned.end()));
    EXPECT_THAT(Beyond(delivered, returned), testing::IsEmpty());
  }
}

TEST_P(DeliveredBehind, IsEachOnceAtTheEnd) {
  Iterator iterator = Nodes().MakeIterator({.seed = 7}).value();
  while (true) {
    absl::StatusOr<std::optional<Element>> next = iterator.Next();
    ASSERT_TRUE(next.ok()) << next.status();
    if (!next->has_value()) break;
  }
  const std::set<int64_t> all = From(0);
  EXPECT_EQ(Service::Instance().delivered(), Values(all.begin(), all.end()));
}

TEST_P(DeliveredBehind, IsNothingMoreOnceTheIteratorIsGone) {
  Values returned;
  {
    Iterator iterator = Nodes().MakeIterator({.seed = 7}).value();
    returned = NumbersOf(**iterator.Next());
  }
  EXPECT_THAT(Beyond(Service::Instance().delivered(), returned), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Nodes, DeliveredBehind, testing::ValuesIn(All()),
                         [](const testing::TestParamInfo<Behind>& info) {
                           return info.param.name;
                         });

TEST(PendingDeliveries, RefusedDeliveriesAreNotReturned) {
  Service::Instance().Begin();
  Iterator iterator = FromService(10).Prefetch(2).MakeIterator().value();
  EXPECT_TRUE(iterator.Next().ok());
  Service::Instance().refuses = absl::FailedPreconditionError("declared dead");
  EXPECT_EQ(iterator.Next().status(), absl::FailedPreconditionError("declared dead"));
}

}  // namespace
}  // namespace penstock
