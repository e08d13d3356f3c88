// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/op_run.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr absl::string_view kTypeNames[] = {
    "integer",         "number",          "boolean", "string",   "dtype",  "list of integers",
    "list of numbers", "list of strings", "spec",    "function", "element"};
static_assert(std::size(kTypeNames) == std::variant_size_v<Attr>);

absl::Status CheckOpAttrs(const OpRow& row, const Attrs& attrs) {
  for (const AttrRow& wanted : row.attrs) {
    const auto found = attrs.find(std::string(wanted.name));
    if (found == attrs.end())
      return absl::InvalidArgumentError(
          absl::StrCat(row.name, ": attribute '", wanted.name, "' is missing"));
    if (found->second.index() != wanted.type) {
      return absl::InvalidArgumentError(
          absl::StrCat(row.name, ": attribute '", wanted.name, "' has type ",
                       kTypeNames[found->second.index()], ", not ", kTypeNames[wanted.type]));
    }
  }
  for (const auto& given : attrs) {
    const std::string& name = given.first;
    const bool known = std::any_of(row.attrs.begin(), row.attrs.end(),
                                   [&](const AttrRow& attr) { return attr.name == name; });
    if (!known)
      return absl::InvalidArgumentError(absl::StrCat(row.name, ": unknown attribute '", name, "'"));
  }
  return absl::OkStatus();
}

// Rejects values that are larger than any element, before they are used to compute sizes.
absl::Status CheckValueSize(const TensorSpec& spec) {
  if (!spec.shape.has_rank()) return absl::OkStatus();
  Dims known;
  for (int64_t dim : spec.shape.dims())
    if (dim != kUnknownDim) known.push_back(dim);
  return CountOf(known, spec.dtype == kString ? kUInt64 : spec.dtype).status();
}

absl::Status CheckInputs(const OpRow& row, InputSpecs inputs) {
  const int count = static_cast<int>(inputs.size());
  if (count < row.min_inputs || count > row.max_inputs) {
    return absl::InvalidArgumentError(
        absl::StrCat(row.name, ": got ", count, " arguments, expected ", row.min_inputs,
                     row.max_inputs > row.min_inputs ? " or more" : ""));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool kind_fits =
        inputs[i].kind == TensorSpec::Kind::kDense ||
        (inputs[i].kind == TensorSpec::Kind::kRagged && row.takes_ragged && i == 0);
    if (!kind_fits || inputs[i].optional || !IsKnown(inputs[i].dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(
          row.name, ": argument ", i, " is ", inputs[i].ToString(), "; it must be ",
          row.takes_ragged && i == 0 ? "a tensor" : "a dense tensor", " that is not optional"));
    }
    if (absl::Status size = CheckValueSize(inputs[i]); !size.ok())
      return absl::Status(size.code(),
                          absl::StrCat(row.name, ": argument ", i, ": ", size.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TensorSpec>> InferOp(const OpRow& row, const Attrs& attrs,
                                                InputSpecs inputs) {
  RETURN_IF_ERROR(CheckOpAttrs(row, attrs));
  RETURN_IF_ERROR(CheckInputs(row, inputs));
  auto outputs = row.infer(attrs, inputs);
  if (!outputs.ok())
    return absl::Status(outputs.status().code(),
                        absl::StrCat(row.name, ": ", outputs.status().message()));
  for (const TensorSpec& output : *outputs)
    if (absl::Status size = CheckValueSize(output); !size.ok())
      return absl::Status(size.code(), absl::StrCat(row.name, ": ", size.message()));
  return outputs;
}

}  // namespace penstock
