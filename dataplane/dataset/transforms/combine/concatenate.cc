// SPDX-License-Identifier: Apache-2.0
// Dataset::Concatenate: all elements of the first dataset, then all elements of the second.
#include <limits>
#include <utility>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/common_spec.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class ConcatenateIterator final : public NodeIterator {
 public:
  ConcatenateIterator(std::unique_ptr<NodeIterator> first, std::unique_ptr<NodeIterator> second)
      : inputs_{std::move(first), std::move(second)} {}

  absl::StatusOr<std::optional<Element>> Next() override {
    while (current_ < 2) {
      absl::StatusOr<std::optional<Element>> next = inputs_[current_]->Next();
      if (!next.ok() || next->has_value()) return next;
      Advance();
    }
    return std::nullopt;
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    while (current_ < 2) {
      absl::StatusOr<bool> next = inputs_[current_]->NextInto(sink);
      if (!next.ok() || *next) return next;
      Advance();
    }
    return false;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    while (current_ < 2 && passed < count) {
      ASSIGN_OR_RETURN(const int64_t here, inputs_[current_]->Skip(count - passed));
      passed += here;
      if (passed < count) Advance();
    }
    return passed;
  }

  absl::Status Save(StateWriter& writer) override {
    writer.WriteInt(current_);
    return current_ < 2 ? inputs_[current_]->Save(writer) : absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(const int64_t current, reader.ReadIntIn(0, 2, "the input being read"));
    while (current_ < current) Advance();
    return current_ < 2 ? inputs_[current_]->Restore(reader) : absl::OkStatus();
  }

 private:
  void Advance() { inputs_[current_++].reset(); }

  std::unique_ptr<NodeIterator> inputs_[2];
  int current_ = 0;
};

absl::StatusOr<Inferred> InferConcatenate(const Attrs&, absl::Span<const NodePtr> inputs) {
  ASSIGN_OR_RETURN(Spec common, CommonSpec(inputs[0]->spec, inputs[1]->spec, "the datasets"));
  const Cardinality x = inputs[0]->cardinality, y = inputs[1]->cardinality;
  Cardinality sum = kUnknown;
  if (x == kInfinite || y == kInfinite) sum = kInfinite;
  if (x >= 0 && y >= 0 && x <= std::numeric_limits<int64_t>::max() - y) sum = x + y;
  return Inferred{std::move(common), sum};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildConcatenate(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> first, site.BuildInput(0));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> second, site.BuildInput(1));
  return std::make_unique<ConcatenateIterator>(std::move(first), std::move(second));
}

}  // namespace

NodeKind ConcatenateKind() {
  return {.op = "Concatenate",
          .min_inputs = 2,
          .max_inputs = 2,
          .hands_on = true,
          .infer = InferConcatenate,
          .build = BuildConcatenate};
}

Dataset Dataset::Concatenate(const Dataset& other) const {
  return DatasetOf(MakeNode("Concatenate", {}, {node_, NodeOf(other)}));
}

}  // namespace penstock
