// SPDX-License-Identifier: Apache-2.0
// Dataset::Rounds: elements in rounds of one bucket, for coordinated reads.
//
// A position is the input's position at the oldest held element, and the numbers of the held
// elements. To restore it, the input is read again from this position, and elements that were not
// held are skipped.
#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map/scalar_function.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/dataset/transforms/window/cost_buckets.h"
#include "dataplane/dataset/transforms/window/keyed_windows.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using FunctionPtr = std::shared_ptr<const FunctionDef>;

// Computes the bucket of each element.
class Bucketing {
 public:
  static absl::StatusOr<Bucketing> Create(const BuildSite& site) {
    Bucketing bucketing(site);
    if (site.node().attrs.contains("bucket")) {
      ASSIGN_OR_RETURN(bucketing.bucket_, IntegerFunction::Create(site, "bucket"));
    } else {
      ASSIGN_OR_RETURN(bucketing.cost_, NumberFunction::Create(site, "cost"));
      bucketing.of_cost_.emplace(site.attr<double>("cost_spread"));
    }
    return bucketing;
  }

  absl::StatusOr<int64_t> Of(const Element& element, int64_t number) const {
    if (bucket_.has_value()) return bucket_->Run(element, number);
    ASSIGN_OR_RETURN(const double cost, cost_->Run(element, number));
    if (std::isfinite(cost) && cost >= 0) return of_cost_->Of(cost);
    return absl::InvalidArgumentError(absl::StrCat("cost returned ", cost,
                                                   ", but costs must be finite and 0 or more; in ",
                                                   site_.name(), ", element ", number));
  }

 private:
  explicit Bucketing(const BuildSite& site) : site_(site) {}

  BuildSite site_;
  std::optional<IntegerFunction> bucket_;
  std::optional<NumberFunction> cost_;
  std::optional<CostBuckets> of_cost_;
};

class RoundsIterator final : public NodeIterator {
 public:
  RoundsIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, Bucketing bucketing)
      : site_(site),
        size_(static_cast<size_t>(site.attr<int64_t>("num_consumers"))),
        max_age_(MaxAge(site.node().attrs)),
        input_(std::move(input), RememberEvery(max_age_)),
        bucketing_(std::move(bucketing)) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ASSIGN_OR_RETURN(std::optional<Held> held, NextHeld());
    if (!held.has_value()) return std::nullopt;
    if (!held->element.ok()) return held->element.status();
    return *std::move(held->element);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    for (int64_t passed = 0; passed < count; ++passed) {
      ASSIGN_OR_RETURN(const std::optional<Held> held, NextHeld());
      if (!held.has_value()) return passed;
    }
    return count;
  }

  absl::Status Save(StateWriter& writer) override;
  absl::Status Restore(StateReader& reader) override;

 private:
  struct Held {
    int64_t number = 0;               // index in the input
    absl::StatusOr<Element> element;  // or the error in its place
    BufferCharge charge;
  };
  using Buckets = std::map<int64_t, std::deque<Held>>;

  absl::StatusOr<std::optional<Held>> NextHeld() {
    while (round_.empty()) {
      ASSIGN_OR_RETURN(const bool more, Advance());
      if (!more) return std::nullopt;
    }
    Held held = std::move(round_.front());
    round_.pop_front();
    numbers_.erase(held.number);
    input_.Release(Oldest());
    return held;
  }

  // Makes a round or reads an element; false at the end.
  absl::StatusOr<bool> Advance() {
    if (OldestIsTooOld()) {
      TakeRound(BucketOfOldest());
      return true;
    }
    if (ended_) {
      if (numbers_.empty()) return false;
      TakeRound(buckets_.begin());
      return true;
    }
    RETURN_IF_ERROR(site_.CheckCancelled());
    absl::StatusOr<std::optional<Element>> next = input_.Next();
    if (!next.ok() && EndsReading(next.status())) return next.status();
    ended_ = next.ok() && !next->has_value();
    if (ended_) return true;
    ASSIGN_OR_RETURN(const Buckets::iterator bucket, Hold(std::move(next), input_.pulled() - 1));
    if (IsFull(bucket)) TakeRound(bucket);
    return true;
  }

  // Returns the bucket that may be full now: the bucket of the element or, for an error, the
  // fullest bucket.
  absl::StatusOr<Buckets::iterator> Hold(absl::StatusOr<std::optional<Element>> next,
                                         int64_t number);
  bool IsFull(Buckets::const_iterator bucket) const {
    return errors_.size() + (bucket == buckets_.end() ? 0 : bucket->second.size()) >= size_;
  }
  Buckets::iterator Fullest() {
    return std::max_element(buckets_.begin(), buckets_.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
  }
  // False until a whole round waits.
  bool OldestIsTooOld() const {
    return max_age_.has_value() && numbers_.size() >= size_ &&
           input_.pulled() - 1 - *numbers_.begin() > *max_age_;
  }
  Buckets::iterator BucketOfOldest();
  // Moves errors and elements of `bucket` into the round. If there are too few, adds elements of
  // the nearest buckets.
  void TakeRound(Buckets::iterator bucket);
  void Take(std::deque<Held>& from) {
    while (!from.empty() && round_.size() < size_) {
      round_.push_back(std::move(from.front()));
      from.pop_front();
    }
  }
  int64_t Oldest() const { return numbers_.empty() ? input_.pulled() : *numbers_.begin(); }

  const BuildSite site_;
  const size_t size_;
  const std::optional<int64_t> max_age_;
  PositionedInput input_;
  const Bucketing bucketing_;
  bool ended_ = false;
  Buckets buckets_;            // no bucket is empty
  std::deque<Held> errors_;    // waiting for the next round
  std::deque<Held> round_;     // to be returned
  std::set<int64_t> numbers_;  // of all elements in the three members above
};

absl::StatusOr<RoundsIterator::Buckets::iterator> RoundsIterator::Hold(
    absl::StatusOr<std::optional<Element>> next, int64_t number) {
  absl::Status error = next.status();
  int64_t key = 0;
  if (error.ok()) {
    absl::StatusOr<int64_t> bucket = bucketing_.Of(**next, number);
    error = bucket.status();
    if (EndsReading(error)) return error;
    key = bucket.value_or(0);
  }
  BufferCharge charge;
  RETURN_IF_ERROR(error.ok() ? charge.Add(site_, **next) : charge.Add(site_, error));
  numbers_.insert(number);
  if (!error.ok()) {
    errors_.push_back({number, std::move(error), std::move(charge)});
    return Fullest();
  }
  const Buckets::iterator bucket = buckets_.try_emplace(key).first;
  bucket->second.push_back({number, **std::move(next), std::move(charge)});
  return bucket;
}

RoundsIterator::Buckets::iterator RoundsIterator::BucketOfOldest() {
  const int64_t oldest = *numbers_.begin();
  const auto found = std::find_if(buckets_.begin(), buckets_.end(), [&](const auto& bucket) {
    return bucket.second.front().number == oldest;
  });
  return found != buckets_.end() ? found : Fullest();  // the oldest is an error
}

void RoundsIterator::TakeRound(Buckets::iterator bucket) {
  Take(errors_);
  while (bucket != buckets_.end() && round_.size() < size_) {
    Take(bucket->second);
    if (!bucket->second.empty()) return;
    const int64_t key = bucket->first;
    bucket = buckets_.erase(bucket);
    if (bucket == buckets_.begin()) continue;
    const auto before = std::prev(bucket);
    const uint64_t down = static_cast<uint64_t>(key) - static_cast<uint64_t>(before->first);
    if (bucket == buckets_.end() ||
        down <= static_cast<uint64_t>(bucket->first) - static_cast<uint64_t>(key))
      bucket = before;
  }
}

absl::Status RoundsIterator::Save(StateWriter& writer) {
  RETURN_IF_ERROR(input_.Save(writer, Oldest()));
  writer.WriteInt(input_.pulled());
  writer.WriteUnsigned(numbers_.size());
  int64_t before = Oldest();
  for (const int64_t number : numbers_) {
    writer.WriteUnsigned(number - before);
    before = number;
  }
  writer.WriteUnsigned(round_.size());
  for (const Held& held : round_)
    writer.WriteUnsigned(std::distance(numbers_.begin(), numbers_.find(held.number)));
  return absl::OkStatus();
}

absl::Status RoundsIterator::Restore(StateReader& reader) {
  RETURN_IF_ERROR(input_.Restore(reader));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(const int64_t pulled,
                   reader.ReadIntIn(input_.pulled(), kMost, "the number of elements read"));
  ASSIGN_OR_RETURN(const uint64_t held, reader.ReadUnsigned());
  std::vector<int64_t> numbers;
  int64_t number = input_.pulled();
  for (uint64_t i = 0; i < held; ++i) {
    ASSIGN_OR_RETURN(const uint64_t step, reader.ReadUnsigned());
    if (step >= static_cast<uint64_t>(pulled - number) || (i > 0 && step == 0))
      return absl::DataLossError("a held element has not been read yet");
    numbers.push_back(number += static_cast<int64_t>(step));
  }
  ASSIGN_OR_RETURN(const uint64_t in_round, reader.ReadUnsigned());
  if (in_round > size_) return absl::DataLossError("a round has more elements than consumers");
  std::vector<int64_t> round;
  for (uint64_t i = 0; i < in_round; ++i) {
    ASSIGN_OR_RETURN(const uint64_t place, reader.ReadUnsigned());
    if (place >= numbers.size()) return absl::DataLossError("an element of a round is not held");
    round.push_back(numbers[place]);
  }
  std::map<int64_t, Held> of_round;
  for (const int64_t n : numbers) {
    RETURN_IF_ERROR(input_.PassTo(n));
    absl::StatusOr<std::optional<Element>> next = input_.Next();
    if (!next.ok() && EndsReading(next.status())) return next.status();
    if (next.ok() && !next->has_value())
      return absl::DataLossError("an element that was held no longer exists");
    ASSIGN_OR_RETURN(const Buckets::iterator bucket, Hold(std::move(next), n));
    if (std::find(round.begin(), round.end(), n) == round.end()) {
      if (IsFull(bucket))
        return absl::DataLossError("more elements are waiting than there is room for");
      continue;
    }
    std::deque<Held>& last =
        !errors_.empty() && errors_.back().number == n ? errors_ : bucket->second;
    of_round.emplace(n, std::move(last.back()));
    last.pop_back();
    if (&last != &errors_ && last.empty()) buckets_.erase(bucket);
  }
  for (const int64_t n : round) {
    const auto found = of_round.find(n);
    if (found == of_round.end()) return absl::DataLossError("an element appears twice in a round");
    round_.push_back(std::move(found->second));
    of_round.erase(found);
  }
  return input_.PassTo(pulled);
}

absl::Status CheckRoundsFunction(const Attrs& attrs, const Dataset::Node& input) {
  const bool by_bucket = attrs.contains("bucket");
  if (by_bucket == attrs.contains("cost"))
    return absl::InvalidArgumentError("give exactly one of bucket and cost");
  if (by_bucket) return IntegerFunction::Check(*Get<FunctionPtr>(attrs, "bucket"), input, "bucket");
  const double spread = Get<double>(attrs, "cost_spread");
  if (!(spread >= CostBuckets::kLeastSpread && spread <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cost_spread must be in [", CostBuckets::kLeastSpread, ", 1], not ", spread));
  }
  return NumberFunction::Check(*Get<FunctionPtr>(attrs, "cost"), input, "cost");
}

absl::StatusOr<Inferred> InferRounds(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  constexpr int64_t kMostConsumers = 1 << 20;
  const int64_t consumers = Get<int64_t>(attrs, "num_consumers");
  if (consumers < 1 || consumers > kMostConsumers) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_consumers must be in [1, ", kMostConsumers, "], not ", consumers));
  }
  RETURN_IF_ERROR(CheckMaxAge(attrs));
  RETURN_IF_ERROR(CheckRoundsFunction(attrs, *inputs[0]));
  return Inferred{inputs[0]->spec, inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildRounds(const BuildSite& site) {
  ASSIGN_OR_RETURN(Bucketing bucketing, Bucketing::Create(site));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<RoundsIterator>(site, std::move(input), std::move(bucketing));
}

std::string ExplainRounds(const Dataset::Node& node) {
  if (!node.attrs.contains("cost")) return RestoresFrom(node);
  return absl::StrCat(CostBuckets(Get<double>(node.attrs, "cost_spread")).per_doubling(),
                      " buckets for each doubling of the cost; ", RestoresFrom(node));
}

}  // namespace

NodeKind RoundsKind() {
  return {.op = "Rounds",
          .attrs = {{"num_consumers", AttrType::kInt},
                    {"bucket", AttrType::kFunction, false},
                    {"cost", AttrType::kFunction, false},
                    {"cost_spread", AttrType::kDouble},
                    {"max_age", AttrType::kInt, false}},
          .infer = InferRounds,
          .build = BuildRounds,
          .explain_details = ExplainRounds};
}

Dataset Dataset::Rounds(int64_t num_consumers, RoundsOptions options) const {
  constexpr char kOp[] = "Rounds";
  if (!status().ok()) return *this;
  Attrs attrs = {{"num_consumers", num_consumers}, {"cost_spread", options.cost_spread}};
  if (options.max_age.has_value()) attrs["max_age"] = *options.max_age;
  const auto add = [&](const char* name,
                       const std::optional<MapFunction>& function) -> absl::Status {
    if (!function.has_value()) return absl::OkStatus();
    ASSIGN_OR_RETURN(attrs[name], Trace(*function, element_spec()));
    return absl::OkStatus();
  };
  absl::Status traced = add("bucket", options.bucket);
  traced.Update(add("cost", options.cost));
  if (!traced.ok()) return DatasetOf(FailedNode(kOp, {node_}, traced));
  return DatasetOf(MakeNode(kOp, std::move(attrs), {node_}));
}

}  // namespace penstock
