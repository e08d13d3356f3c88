// SPDX-License-Identifier: Apache-2.0
// Dataset::Filter: the elements for which a function gives true. What it keeps
// decides where every later element stands, so the function, and all before it,
// must be deterministic.
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/state_bytes.h"
#include "dataplane/dataset/transforms/decides_by_value.h"
#include "dataplane/dataset/transforms/element_tensors.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "penstock/status.h"

namespace penstock {
namespace {

// Takes the one result of a predicate.
class BoolSink final : public ResultSink {
 public:
  absl::StatusOr<absl::Span<std::byte>> Place(size_t, DType, absl::Span<const int64_t>) override {
    return absl::MakeSpan(reinterpret_cast<std::byte*>(&value_), sizeof(value_));
  }
  absl::Status Copy(size_t, const Tensor& value) override {
    value_ = value.scalar<bool>();
    return absl::OkStatus();
  }
  bool value() const { return value_; }

 private:
  bool value_ = false;
};

class FilterIterator final : public NodeIterator {
 public:
  FilterIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
                 std::shared_ptr<const BoundFunction> predicate)
      : site_(site),
        input_(std::move(input)),
        predicate_(std::move(predicate)),
        random_(site.Random()) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    while (true) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      absl::StatusOr<std::optional<Element>> next = input_->Next();
      if (next.ok() ? !next->has_value() : EndsReading(next.status())) return next;
      random_.element = seen_++;
      if (!next.ok()) return next;
      BoolSink keep;
      const ElementTensors tensors(**next);
      if (absl::Status run = predicate_->Run(tensors, random_, keep); !run.ok())
        return Annotate(run, "in ", site_.name(), ", element ", random_.element);
      if (keep.value()) return next;
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
  std::shared_ptr<const BoundFunction> predicate_;
  RandomKey random_;
  uint64_t seen_ = 0;  // elements of the input
};

absl::StatusOr<Inferred> InferFilter(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const FunctionDef& predicate = *Get<std::shared_ptr<const FunctionDef>>(attrs, "predicate");
  RETURN_IF_ERROR(Annotate(predicate.input.Admits(inputs[0]->spec),
                           "predicate takes other elements than the input gives"));
  if (predicate.output != Spec(Scalar(kBool))) {
    return absl::InvalidArgumentError(
        absl::StrCat("predicate must give a bool scalar, not ", predicate.output.ToString()));
  }
  RETURN_IF_ERROR(CheckDeterministic(predicate, "predicate"));
  RETURN_IF_ERROR(CheckDeterministic(*inputs[0]));
  return Inferred{inputs[0]->spec, inputs[0]->cardinality == 0 ? 0 : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildFilter(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundFunction> predicate,
                   site.Bind(site.attr<std::shared_ptr<const FunctionDef>>("predicate")));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<FilterIterator>(site, std::move(input), std::move(predicate));
}

}  // namespace

NodeKind FilterKind() {
  return {.op = "Filter",
          .attrs = {{"predicate", AttrType::kFunction}},
          .infer = InferFilter,
          .build = BuildFilter};
}

Dataset Dataset::Filter(MapFunction predicate) const {
  if (!status().ok()) return *this;
  absl::StatusOr<std::shared_ptr<const FunctionDef>> traced = Trace(predicate, element_spec());
  if (!traced.ok()) return Dataset(FailedNode("Filter", {node_}, traced.status()));
  return Dataset(MakeNode("Filter", {{"predicate", *std::move(traced)}}, {node_}));
}

}  // namespace penstock
