// SPDX-License-Identifier: Apache-2.0
// Dataset::Concatenate: all elements of the first, then all of the second.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "penstock/status.h"

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

// The leaf that stands for what either input gives.
absl::StatusOr<TensorSpec> Common(const TensorSpec& a, const TensorSpec& b,
                                  const std::string& name) {
  if (a.dtype != b.dtype || a.kind != b.kind || a.ragged_rank != b.ragged_rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("the datasets differ", name.empty() ? "" : absl::StrCat(" in ", name), ": ",
                     a.ToString(), " in the first, ", b.ToString(), " in the second"));
  }
  TensorSpec common = a;
  common.shape = a.shape.MostGeneral(b.shape);
  common.optional = a.optional || b.optional;
  return common;
}

absl::StatusOr<Inferred> InferConcatenate(const Attrs&, absl::Span<const NodePtr> inputs) {
  const Spec& a = inputs[0]->spec;
  const Spec& b = inputs[1]->spec;
  if (a.leaves().size() != b.leaves().size() || !(a.WithLeaves(b.leaves()) == b)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the datasets have elements of other structure: ", a.ToString(), " and ", b.ToString()));
  }
  std::vector<TensorSpec> leaves;
  for (size_t i = 0; i < a.leaves().size(); ++i) {
    ASSIGN_OR_RETURN(TensorSpec leaf, Common(a.leaves()[i], b.leaves()[i], a.LeafName(i)));
    leaves.push_back(std::move(leaf));
  }
  const Cardinality x = inputs[0]->cardinality, y = inputs[1]->cardinality;
  Cardinality sum = kUnknown;
  if (x == kInfinite || y == kInfinite) sum = kInfinite;
  if (x >= 0 && y >= 0 && x <= std::numeric_limits<int64_t>::max() - y) sum = x + y;
  return Inferred{a.WithLeaves(leaves), sum};
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
          .infer = InferConcatenate,
          .build = BuildConcatenate};
}

Dataset Dataset::Concatenate(const Dataset& other) const {
  return Dataset(MakeNode("Concatenate", {}, {node_, other.node()}));
}

}  // namespace penstock
