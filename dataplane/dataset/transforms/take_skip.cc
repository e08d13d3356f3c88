// SPDX-License-Identifier: Apache-2.0
// Dataset::Take and Dataset::Skip: the first elements, or all except the first. An error that takes
// the place of an element counts as one.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max() / 2;

// Returns the attribute "count". -1 means all, as in tf.data.
int64_t CountOfAttrs(const Attrs& attrs) {
  const int64_t count = Get<int64_t>(attrs, "count");
  return count < 0 ? kAll : count;
}

absl::Status CheckCount(const Attrs& attrs) {
  const int64_t count = Get<int64_t>(attrs, "count");
  if (count >= -1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("count must be 0 or more, or -1 for all, not ", count));
}

class TakeIterator final : public NodeIterator {
 public:
  TakeIterator(std::unique_ptr<NodeIterator> input, int64_t count)
      : input_(std::move(input)), count_(count), left_(count) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    if (left_ == 0) return std::nullopt;
    absl::StatusOr<std::optional<Element>> next = input_->Next();
    Count(next.status(), next.ok() && next->has_value());
    return next;
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    if (left_ == 0) return false;
    absl::StatusOr<bool> next = input_->NextInto(sink);
    Count(next.status(), next.ok() && *next);
    return next;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    ASSIGN_OR_RETURN(const int64_t passed, input_->Skip(std::min(count, left_)));
    left_ -= passed;
    return passed;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteInt(left_);
    return input_->Save(writer);
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(left_, reader.ReadIntIn(0, count_, "the elements left to take"));
    return input_->Restore(reader);
  }

 private:
  void Count(const absl::Status& status, bool element) {
    if (element || (!status.ok() && !EndsReading(status))) --left_;
  }

  std::unique_ptr<NodeIterator> input_;
  const int64_t count_;
  int64_t left_;
};

class SkipIterator final : public NodeIterator {
 public:
  SkipIterator(std::unique_ptr<NodeIterator> input, int64_t count)
      : input_(std::move(input), kAll), count_(count) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    RETURN_IF_ERROR(SkipFirst());
    return input_.Next();
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    RETURN_IF_ERROR(SkipFirst());
    return input_.NextInto(sink);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    RETURN_IF_ERROR(SkipFirst());
    return input_.Skip(count);
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteBool(skipped_);
    RETURN_IF_ERROR(input_.Save(writer, skipped_ ? input_.pulled() : 0));
    if (skipped_) input_.Release(input_.pulled());
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(skipped_, reader.ReadBool());
    return input_.Restore(reader);
  }

 private:
  absl::Status SkipFirst() {
    if (skipped_) return absl::OkStatus();
    RETURN_IF_ERROR(input_.Skip(count_).status());
    skipped_ = true;
    return absl::OkStatus();
  }

  PositionedInput input_;
  const int64_t count_;
  bool skipped_ = false;
};

absl::StatusOr<Inferred> InferTake(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  RETURN_IF_ERROR(CheckCount(attrs));
  const int64_t count = CountOfAttrs(attrs);
  const Cardinality of = inputs[0]->cardinality;
  Cardinality cardinality = of;
  if (count == 0) cardinality = 0;
  if (of >= 0) cardinality = std::min(of, count);
  if (of == kInfinite && count != kAll) cardinality = count;
  return Inferred{inputs[0]->spec, cardinality};
}

absl::StatusOr<Inferred> InferSkip(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  RETURN_IF_ERROR(CheckCount(attrs));
  const int64_t count = CountOfAttrs(attrs);
  const Cardinality of = inputs[0]->cardinality;
  Cardinality cardinality = of >= 0 ? std::max<int64_t>(of - count, 0) : of;
  if (count == kAll) cardinality = 0;
  return Inferred{inputs[0]->spec, cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTake(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<TakeIterator>(std::move(input), CountOfAttrs(site.node().attrs));
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildSkip(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<SkipIterator>(std::move(input), CountOfAttrs(site.node().attrs));
}

}  // namespace

NodeKind TakeKind() {
  return {.op = "Take",
          .attrs = {{"count", AttrType::kInt}},
          .hands_on = true,
          .infer = InferTake,
          .build = BuildTake};
}

NodeKind SkipKind() {
  return {.op = "Skip",
          .attrs = {{"count", AttrType::kInt}},
          .hands_on = true,
          .infer = InferSkip,
          .build = BuildSkip};
}

Dataset Dataset::Take(int64_t count) const {
  return DatasetOf(MakeNode("Take", {{"count", count}}, {node_}));
}

Dataset Dataset::Skip(int64_t count) const {
  return DatasetOf(MakeNode("Skip", {{"count", count}}, {node_}));
}

}  // namespace penstock
