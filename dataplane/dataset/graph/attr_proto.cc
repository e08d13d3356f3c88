// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/attr_proto.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "control/proto/dataset.pb.h"
#include "dataplane/dataset/expr/function.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// One overload per alternative of Attr.
struct SetValue {
  dataset::wire::Attr& to;
  void operator()(int64_t value) const { to.set_int_(value); }
  void operator()(double value) const { to.set_real(value); }
  void operator()(bool value) const { to.set_truth(value); }
  void operator()(const std::string& value) const { to.set_string(value); }
  void operator()(DType value) const { to.set_dtype(static_cast<uint32_t>(value)); }
  void operator()(const std::vector<int64_t>& values) const {
    to.mutable_ints()->mutable_values()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<double>& values) const {
    to.mutable_doubles()->mutable_values()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    to.mutable_strings();
    for (const std::string& value : values) to.mutable_strings()->add_values(value);
  }
  void operator()(const Spec& value) const { ToProto(value, *to.mutable_spec()); }
  void operator()(const std::shared_ptr<const FunctionDef>& value) const {
    ToProto(*value, *to.mutable_function());
  }
  void operator()(const ConstantElement& value) const { ToProto(*value, *to.mutable_element()); }
};

absl::StatusOr<OpDef> OpFromProto(const dataset::wire::Operation& from) {
  OpDef to;
  to.op = from.op();
  ASSIGN_OR_RETURN(to.attrs, AttrsFromProto(from.attrs()));
  to.inputs.assign(from.inputs().begin(), from.inputs().end());
  for (const dataset::wire::TensorSpec& output : from.outputs()) {
    ASSIGN_OR_RETURN(TensorSpec spec, FromProto(output));
    to.outputs.push_back(std::move(spec));
  }
  return to;
}

absl::StatusOr<Attr> ValueFromProto(const dataset::wire::Attr& from) {
  using Wire = dataset::wire::Attr;
  switch (from.value_case()) {
    case Wire::kInt:
      return Attr(int64_t{from.int_()});
    case Wire::kReal:
      return Attr(from.real());
    case Wire::kTruth:
      return Attr(from.truth());
    case Wire::kString:
      return Attr(from.string());
    case Wire::kDtype:
      if (from.dtype() > 255 || !IsKnown(static_cast<DType>(from.dtype())))
        return absl::InvalidArgumentError(absl::StrCat("unknown dtype number ", from.dtype()));
      return Attr(static_cast<DType>(from.dtype()));
    case Wire::kInts:
      return Attr(std::vector<int64_t>(from.ints().values().begin(), from.ints().values().end()));
    case Wire::kDoubles:
      return Attr(
          std::vector<double>(from.doubles().values().begin(), from.doubles().values().end()));
    case Wire::kStrings:
      return Attr(
          std::vector<std::string>(from.strings().values().begin(), from.strings().values().end()));
    case Wire::kSpec: {
      ASSIGN_OR_RETURN(Spec spec, FromProto(from.spec()));
      return Attr(std::move(spec));
    }
    case Wire::kFunction: {
      ASSIGN_OR_RETURN(std::shared_ptr<const FunctionDef> function, FromProto(from.function()));
      return Attr(std::move(function));
    }
    case Wire::kElement: {
      ASSIGN_OR_RETURN(Element element, FromProto(from.element()));
      return Attr(ConstantElement(std::make_shared<const Element>(std::move(element))));
    }
    case Wire::VALUE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("has no value, or one of an unknown type");
}

}  // namespace

void ToProto(const FunctionDef& from, dataset::wire::Function& to) {
  ToProto(from.input, *to.mutable_input());
  for (const OpDef& op : from.ops) {
    dataset::wire::Operation& operation = *to.add_operations();
    operation.set_op(op.op);
    for (const auto& [name, value] : op.attrs) ToProto(name, value, *operation.add_attrs());
    operation.mutable_inputs()->Add(op.inputs.begin(), op.inputs.end());
    for (const TensorSpec& output : op.outputs) ToProto(output, *operation.add_outputs());
  }
  to.mutable_results()->Add(from.results.begin(), from.results.end());
  ToProto(from.output, *to.mutable_output());
  to.set_not_deterministic(!from.deterministic);
}

absl::StatusOr<std::shared_ptr<const FunctionDef>> FromProto(const dataset::wire::Function& from) {
  auto to = std::make_shared<FunctionDef>();
  ASSIGN_OR_RETURN(to->input, FromProto(from.input()));
  for (const dataset::wire::Operation& operation : from.operations()) {
    ASSIGN_OR_RETURN(OpDef op, OpFromProto(operation));
    to->ops.push_back(std::move(op));
  }
  to->results.assign(from.results().begin(), from.results().end());
  ASSIGN_OR_RETURN(to->output, FromProto(from.output()));
  to->deterministic = !from.not_deterministic();
  RETURN_IF_ERROR(CheckFunction(*to));
  return to;
}

void ToProto(const std::string& name, const Attr& from, dataset::wire::Attr& to) {
  to.set_name(name);
  std::visit(SetValue{to}, from);
}

absl::StatusOr<Attr> FromProto(const dataset::wire::Attr& from) {
  absl::StatusOr<Attr> value = ValueFromProto(from);
  if (value.ok()) return value;
  return absl::Status(value.status().code(),
                      absl::StrCat("the attribute ", absl::CHexEscape(from.name()), ": ",
                                   value.status().message()));
}

}  // namespace penstock
