// SPDX-License-Identifier: Apache-2.0
// Dataset::Filter: the elements for which a function returns true. The result decides the indices
// of all later elements, so the function and everything before it must be deterministic.
#include <utility>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map/predicate.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class FilterIterator final : public NodeIterator {
 public:
  FilterIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, Predicate predicate)
      : site_(site), input_(std::move(input)), predicate_(std::move(predicate)) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    while (true) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      absl::StatusOr<std::optional<Element>> next = input_->Next();
      if (next.ok() ? !next->has_value() : EndsReading(next.status())) return next;
      const uint64_t number = seen_++;
      if (!next.ok()) return next;
      ASSIGN_OR_RETURN(const bool keep, predicate_.HoldsFor(**next, number));
      if (keep) return next;
    }
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteUnsigned(seen_);
    return input_->Save(writer);
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(seen_, reader.ReadUnsigned());
    return input_->Restore(reader);
  }

 private:
  BuildSite site_;
  std::unique_ptr<NodeIterator> input_;
  Predicate predicate_;
  uint64_t seen_ = 0;  // elements of the input
};

absl::StatusOr<Inferred> InferFilter(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  RETURN_IF_ERROR(CheckPredicate(attrs, *inputs[0]));
  return Inferred{inputs[0]->spec, inputs[0]->cardinality == 0 ? 0 : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildFilter(const BuildSite& site) {
  ASSIGN_OR_RETURN(Predicate predicate, Predicate::Create(site));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<FilterIterator>(site, std::move(input), std::move(predicate));
}

}  // namespace

NodeKind FilterKind() {
  return {.op = "Filter",
          .attrs = {{"predicate", AttrType::kFunction}},
          .hands_on = true,
          .infer = InferFilter,
          .build = BuildFilter};
}

Dataset Dataset::Filter(MapFunction predicate) const {
  return Dataset(MakePredicateNode("Filter", predicate, *this));
}

}  // namespace penstock
