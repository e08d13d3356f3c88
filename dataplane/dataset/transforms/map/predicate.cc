// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/predicate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/element_views.h"
#include "dataplane/dataset/graph/decides_by_value.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Receives the one result of a predicate.
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

}  // namespace

absl::Status CheckPredicate(const Attrs& attrs, const Dataset::Node& input) {
  const FunctionDef& predicate = *Get<std::shared_ptr<const FunctionDef>>(attrs, "predicate");
  RETURN_IF_ERROR(Annotate(predicate.input.Admits(input.spec),
                           "predicate does not accept the input's elements"));
  if (predicate.output != Spec(Scalar(kBool))) {
    return absl::InvalidArgumentError(
        absl::StrCat("predicate must return a bool scalar, not ", predicate.output.ToString()));
  }
  RETURN_IF_ERROR(CheckDeterministic(predicate, "predicate"));
  return CheckDeterministic(input);
}

NodePtr MakePredicateNode(const char* op, const MapFunction& fn, const Dataset& input) {
  if (!input.status().ok()) return NodeOf(input);
  absl::StatusOr<std::shared_ptr<const FunctionDef>> traced = Trace(fn, input.element_spec());
  if (!traced.ok()) return FailedNode(op, {NodeOf(input)}, traced.status());
  return MakeNode(op, {{"predicate", *std::move(traced)}}, {NodeOf(input)});
}

absl::StatusOr<Predicate> Predicate::Create(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::shared_ptr<const BoundFunction> function,
                   site.Bind(site.attr<std::shared_ptr<const FunctionDef>>("predicate")));
  return Predicate(site.name(), std::move(function), site.Random());
}

absl::StatusOr<bool> Predicate::HoldsFor(const Element& element, uint64_t number) const {
  RandomKey random = random_;
  random.element = number;
  BoolSink holds;
  const ElementTensors tensors(element);
  if (absl::Status run = function_->Run(tensors, random, holds); !run.ok())
    return Annotate(run, "in ", name_, ", element ", number);
  return holds.value();
}

}  // namespace penstock
