// SPDX-License-Identifier: Apache-2.0
// ApplyTransform(): a transform that the program or a plug-in registered
// (penstock/plugin.h).
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/registered_node.h"
#include "dataplane/dataset/expr/output_checks.h"
#include "dataplane/dataset/graph/decides_by_value.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "include/status_macros.h"

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

  // Takes back the element that was lent. Returns the input's last error since the previous call.
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

class RegisteredTransformIterator final : public RegisteredIterator {
 public:
  RegisteredTransformIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
                              std::unique_ptr<Transform> transform)
      : RegisteredIterator(site, Transforms().what()),
        input_(std::move(input)),
        transform_(std::move(transform)) {}

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    RETURN_IF_ERROR(site_.CheckCancelled());
    SinkOutputs outputs(sink, site_.spec().leaves());
    absl::StatusOr<bool> more = transform_->Next(input_, outputs);
    const absl::Status input_error = input_.TakeBack();
    if (!more.ok()) {
      // The input's own errors name their node.
      if (!input_error.ok()) return input_error;
      return Explained(more.status());
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
    return Explained(transform_->Restore(state));
  }

 private:
  LentInput input_;
  const std::unique_ptr<Transform> transform_;
};

// Only the author knows whether the transform decides by value, so the input must be deterministic.
absl::StatusOr<Inferred> InferTransform(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  RETURN_IF_ERROR(CheckDeterministic(*inputs[0]));
  return InferRegistered(attrs);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTransform(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<Transform> transform,
                   OpenRegistered(Transforms(), site,
                                  [&](const RegisteredTransform& found, const Params& params) {
                                    return found.open(params, site.node().inputs[0]->spec);
                                  }));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<RegisteredTransformIterator>(site, std::move(input),
                                                       std::move(transform));
}

}  // namespace

NodeKind RegisteredTransformKind() {
  return {.op = "RegisteredTransform",
          .attrs = RegisteredAttrs(),
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
  return MakeRegistered("RegisteredTransform", Transforms(), transform, params, {NodeOf(input)},
                        [&](const RegisteredTransform& found) {
                          return found.describe(params, input.element_spec(), input.cardinality());
                        });
}

}  // namespace penstock
