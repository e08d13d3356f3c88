// SPDX-License-Identifier: Apache-2.0
// Dataset::TakeWhile: the elements before the first for which a function returns false. An error of
// the input or of the function takes the place of an element and does not end the dataset.
#include <utility>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map/predicate.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class TakeWhileIterator final : public NodeIterator {
 public:
  TakeWhileIterator(std::unique_ptr<NodeIterator> input, Predicate predicate)
      : input_(std::move(input)), predicate_(std::move(predicate)) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    if (over_) return std::nullopt;
    absl::StatusOr<std::optional<Element>> next = input_->Next();
    if (next.ok() ? !next->has_value() : EndsReading(next.status())) return next;
    const uint64_t number = seen_++;
    if (!next.ok()) return next;
    ASSIGN_OR_RETURN(const bool holds, predicate_.HoldsFor(**next, number));
    over_ = !holds;
    if (over_) return std::nullopt;
    return next;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteBool(over_);
    writer.WriteUnsigned(seen_);
    return input_->Save(writer);
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(over_, reader.ReadBool());
    ASSIGN_OR_RETURN(seen_, reader.ReadUnsigned());
    return input_->Restore(reader);
  }

 private:
  std::unique_ptr<NodeIterator> input_;
  Predicate predicate_;
  uint64_t seen_ = 0;  // elements of the input
  bool over_ = false;  // the predicate was false
};

absl::StatusOr<Inferred> InferTakeWhile(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  RETURN_IF_ERROR(CheckPredicate(attrs, *inputs[0]));
  return Inferred{inputs[0]->spec, inputs[0]->cardinality == 0 ? 0 : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTakeWhile(const BuildSite& site) {
  ASSIGN_OR_RETURN(Predicate predicate, Predicate::Create(site));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<TakeWhileIterator>(std::move(input), std::move(predicate));
}

}  // namespace

NodeKind TakeWhileKind() {
  return {.op = "TakeWhile",
          .attrs = {{"predicate", AttrType::kFunction}},
          .hands_on = true,
          .infer = InferTakeWhile,
          .build = BuildTakeWhile};
}

Dataset Dataset::TakeWhile(MapFunction predicate) const {
  return Dataset(MakePredicateNode("TakeWhile", predicate, *this));
}

}  // namespace penstock
