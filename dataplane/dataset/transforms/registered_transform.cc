// SPDX-License-Identifier: Apache-2.0
// ApplyTransform(): a transform that the program or a plug-in registered
// (penstock/plugin.h).
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/element_sink.h"
#include "dataplane/dataset/output_checks.h"
#include "dataplane/dataset/registered.h"
#include "dataplane/dataset/sources/registered_source.h"
#include "dataplane/dataset/state_bytes.h"
#include "dataplane/dataset/transforms/decides_by_value.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "penstock/status.h"

namespace penstock {
namespace {

Registered<RegisteredTransform>& Transforms() {
  static auto* const transforms = new Registered<RegisteredTransform>("transform");
  return *transforms;
}

// Lends the input's elements, one at a time.
class LentInput final : public TransformInput {
 public:
  explicit LentInput(std::unique_ptr<NodeIterator> input) : input_(std::move(input)) {}

  absl::StatusOr<const Element*> Next() override {
    current_.reset();
    absl::StatusOr<std::optional<Element>> next = input_->Next();
    if (!next.ok()) {
      error_ = next.status();
      return error_;
    }
    current_ = *std::move(next);
    return current_.has_value() ? &*current_ : nullptr;
  }

  // Takes back what was lent. The last error of the input since the last call.
  absl::Status TakeBack() {
    current_.reset();
    return std::exchange(error_, absl::OkStatus());
  }
  NodeIterator& iterator() { return *input_; }

 private:
  const std::unique_ptr<NodeIterator> input_;
  std::optional<Element> current_;
  absl::Status error_;
};

class RegisteredTransformIterator final : public NodeIterator {
 public:
  RegisteredTransformIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
                              std::unique_ptr<Transform> transform)
      : site_(site),
        who_(absl::StrCat("transform '", site.attr<std::string>("name"), "'")),
        input_(std::move(input)),
        transform_(std::move(transform)) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ElementSink sink(site_.pool(), site_.spec());
    ASSIGN_OR_RETURN(const bool more, NextInto(sink));
    if (!more) return std::nullopt;
    return std::move(sink).Finish();
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    RETURN_IF_ERROR(site_.CheckCancelled());
    SinkOutputs outputs(sink, site_.spec().leaves());
    absl::StatusOr<bool> more = transform_->Next(input_, outputs);
    const absl::Status input_error = input_.TakeBack();
    if (!more.ok()) {
      // The input's own errors name their node.
      if (!input_error.ok()) return input_error;
      return Annotate(more.status(), "in ", site_.name(), ", ", who_);
    }
    if (*more) RETURN_IF_ERROR(outputs.checks().AllGiven(who_));
    return *more;
  }

  absl::Status Save(StateWriter& writer) override {
    RETURN_IF_ERROR(input_.iterator().Save(writer));
    ASSIGN_OR_RETURN(const std::string state, transform_->Save());
    writer.WriteString(state);
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.iterator().Restore(reader));
    ASSIGN_OR_RETURN(const std::string_view state, reader.ReadString());
    return Annotate(transform_->Restore(state), "in ", site_.name(), ", ", who_);
  }

 private:
  const BuildSite site_;
  const std::string who_;
  LentInput input_;
  const std::unique_ptr<Transform> transform_;
};

// It may decide by value; nobody but its author knows.
absl::StatusOr<Inferred> InferTransform(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  RETURN_IF_ERROR(CheckDeterministic(*inputs[0]));
  const Spec& spec = Get<Spec>(attrs, "spec");
  RETURN_IF_ERROR(CheckRegisteredSpec(spec.leaves()));
  const int64_t cardinality = Get<int64_t>(attrs, "cardinality");
  if (cardinality < kUnknown)
    return absl::InvalidArgumentError(absl::StrCat("a cardinality of ", cardinality));
  return Inferred{spec, cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTransform(const BuildSite& site) {
  const std::string& name = site.attr<std::string>("name");
  ASSIGN_OR_RETURN(const auto registered, Transforms().Find(name, site.attr<int64_t>("version")));
  absl::StatusOr<std::unique_ptr<Transform>> transform =
      registered->open(ParamsOf(site.node().attrs), site.node().inputs[0]->spec);
  if (!transform.ok())
    return Annotate(transform.status(), "in ", site.name(), ", transform '", name, "'");
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<RegisteredTransformIterator>(site, std::move(input),
                                                       *std::move(transform));
}

}  // namespace

NodeKind RegisteredTransformKind() {
  return {.op = "RegisteredTransform",
          .attrs = {{"name", AttrType::kString},
                    {"version", AttrType::kInt},
                    {"spec", AttrType::kSpec},
                    {"cardinality", AttrType::kInt},
                    {"deterministic", AttrType::kBool}},
          .takes_params = true,
          .infer = InferTransform,
          .build = BuildTransform};
}

absl::Status RegisterTransform(std::string name, RegisteredTransform transform) {
  return Transforms().Add(std::move(name), std::move(transform));
}

std::vector<std::string> RegisteredTransforms() {
  return Transforms().Names();
}

Dataset ApplyTransform(const Dataset& input, std::string_view transform, Params params) {
  if (!input.status().ok()) return input;
  const std::string name(transform);
  const auto found = Transforms().Find(name);
  if (!found.ok())
    return Dataset(FailedNode("RegisteredTransform", {input.node()}, found.status()));
  absl::StatusOr<TransformInfo> info =
      (*found)->describe(params, input.element_spec(), input.cardinality());
  if (!info.ok()) {
    return Dataset(FailedNode("RegisteredTransform", {input.node()},
                              Annotate(info.status(), "in transform '", name, "'")));
  }
  Attrs attrs = {{"name", name},
                 {"version", int64_t{(*found)->version}},
                 {"spec", std::move(info->spec)},
                 {"cardinality", info->cardinality},
                 {"deterministic", (*found)->deterministic}};
  AddParams(params, attrs);
  return Dataset(MakeNode("RegisteredTransform", std::move(attrs), {input.node()}));
}

}  // namespace penstock
