// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/padding.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/engine/row_view.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "dataplane/dataset/transforms/batch/column.h"
#include "dataplane/element/copy_bytes.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Kind = TensorSpec::Kind;

// Returns the number of the component with this name. `option` is the option that names it.
absl::StatusOr<size_t> FindComponent(const Spec& spec, const std::string& name,
                                     std::string_view option) {
  std::vector<std::string> names;
  for (size_t i = 0; i < spec.leaves().size(); ++i) {
    if (spec.LeafName(i) == name) return i;
    names.push_back(absl::StrCat("\"", spec.LeafName(i), "\""));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(option), " names \"", absl::CHexEscape(name),
                   "\", which is not a component of the element; the components are ",
                   absl::StrJoin(names, ", ")));
}

// A scalar with its own memory.
struct ScalarValue {
  std::array<std::byte, 16> bytes = {};
  std::array<uint64_t, 2> offsets = {};
  std::string text;
  Tensor Of(DType dtype) const {
    if (dtype == kString) return Tensor(kString, {}, offsets.data(), text.data());
    return Tensor(dtype, {}, bytes.data());
  }
  template <class T>
  bool Set(T value) {
    std::memcpy(bytes.data(), &value, sizeof(value));
    return true;
  }
};

bool SetInteger(DType dtype, int64_t value, ScalarValue& to) {
  return ForInteger(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (value < 0) return false;
    } else {
      if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
        return false;
    }
    return to.Set(static_cast<T>(value));
  });
}

// Sets a value of a floating or complex dtype.
bool SetFloating(DType dtype, double value, ScalarValue& to) {
  if (dtype == kComplex64) return to.Set(std::complex<float>(static_cast<float>(value)));
  if (dtype == kComplex128) return to.Set(std::complex<double>(value));
  if (!IsFloating(dtype)) return false;
  return ForFloating(dtype, [&]<class T>() {
    if constexpr (kIsHalf<T>)
      return to.Set(T(static_cast<float>(value)));
    else
      return to.Set(static_cast<T>(value));
  });
}

// Returns false if `value` is not a value of this dtype.
bool Set(DType dtype, const PaddingValue::Value& value, ScalarValue& to) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    if (IsInteger(dtype)) return SetInteger(dtype, *integer, to);
    return SetFloating(dtype, static_cast<double>(*integer), to);
  }
  if (const auto* floating = std::get_if<double>(&value)) return SetFloating(dtype, *floating, to);
  if (const auto* truth = std::get_if<bool>(&value)) return dtype == kBool && to.Set(*truth);
  if (dtype != kString) return false;
  to.text = std::get<std::string>(value);
  to.offsets[1] = to.text.size();
  return true;
}

std::string PaddingText(const PaddingValue::Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const auto* floating = std::get_if<double>(&value)) return absl::StrCat(*floating);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return absl::StrCat("\"", absl::CHexEscape(std::get<std::string>(value)), "\"");
}

absl::Status CheckCanBePadded(const Spec& input) {
  for (size_t i = 0; i < input.leaves().size(); ++i) {
    const TensorSpec& leaf = input.leaves()[i];
    if (leaf.kind == Kind::kDense && leaf.shape.has_rank()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(ComponentName(input, i), " is ", leaf.ToString(),
                     "; only dense tensors of known rank can be padded"));
  }
  return absl::OkStatus();
}

// Returns the shape that component `i` is padded to.
absl::StatusOr<Shape> PaddedShape(const Spec& input, size_t i, const Shape& wanted) {
  const Shape& shape = input.leaves()[i].shape;
  const auto refused = [&](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("padded_shapes has ", wanted.ToString(), " for ",
                                                   ComponentName(input, i), ", whose shape is ",
                                                   shape.ToString(), ": ", std::string(why)));
  };
  if (!wanted.has_rank() || wanted.rank() != shape.rank()) return refused("the ranks differ");
  std::vector<int64_t> dims;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t own = shape.dim(d), to = wanted.dim(d);
    if (to < kUnknownDim) return refused("a dimension must be 0 or more, or unknown");
    if (to != kUnknownDim && own > to) return refused("the component is larger");
    dims.push_back(to == kUnknownDim ? own : to);
  }
  return Shape(std::move(dims));
}

}  // namespace

absl::StatusOr<ConstantElement> MakePaddingValues(const PaddingValues& values, const Spec& spec) {
  const size_t count = spec.leaves().size();
  std::vector<ScalarValue> scalars(count);
  for (const auto& [name, value] : values) {
    ASSIGN_OR_RETURN(const size_t i, FindComponent(spec, name, "padding_values"));
    const DType dtype = spec.leaves()[i].dtype;
    if (!Set(dtype, value.value(), scalars[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("padding_values has ", PaddingText(value.value()), " for ",
                       ComponentName(spec, i), ", which does not fit ", std::string(Name(dtype))));
    }
  }
  std::vector<Tensor> tensors;
  std::vector<TensorSpec> leaves;
  for (size_t i = 0; i < count; ++i) {
    tensors.push_back(scalars[i].Of(spec.leaves()[i].dtype));
    leaves.push_back(Scalar(spec.leaves()[i].dtype));
  }
  ASSIGN_OR_RETURN(Element made, MakeElement(DefaultPool(), tensors, spec.WithLeaves(leaves)));
  return std::make_shared<const Element>(std::move(made));
}

absl::Status CheckPaddingValues(const Element& values, const Spec& spec) {
  if (values.size() != spec.leaves().size()) {
    return absl::InvalidArgumentError(absl::StrCat("padding_values has ", values.size(),
                                                   " values for the ", spec.leaves().size(),
                                                   " components of ", spec.ToString()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor value = values.tensor(i);
    if (value.dtype() == spec.leaves()[i].dtype && value.rank() == 0 &&
        value.kind() == Kind::kDense)
      continue;
    return absl::InvalidArgumentError(absl::StrCat("padding_values must have a scalar of ",
                                                   std::string(Name(spec.leaves()[i].dtype)),
                                                   " for ", ComponentName(spec, i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<RowPadding> MakePadding(const PaddedShapes& shapes, const PaddingValues& values,
                                       const Spec& input) {
  RETURN_IF_ERROR(CheckCanBePadded(input));
  std::vector<TensorSpec> leaves(input.leaves().begin(), input.leaves().end());
  for (const auto& [name, shape] : shapes) {
    ASSIGN_OR_RETURN(const size_t i, FindComponent(input, name, "padded_shapes"));
    ASSIGN_OR_RETURN(leaves[i].shape, PaddedShape(input, i, shape));
  }
  RowPadding padding;
  padding.row = input.WithLeaves(leaves);
  ASSIGN_OR_RETURN(padding.values, MakePaddingValues(values, input));
  return padding;
}

std::vector<AttrRule> PaddingRules(bool required) {
  return {{"padded", AttrType::kSpec, required}, {"padding_values", AttrType::kElement, required}};
}

void AddPadding(const RowPadding& padding, Attrs& attrs) {
  attrs["padded"] = padding.row;
  attrs["padding_values"] = padding.values;
}

RowPadding PaddingOf(const Attrs& attrs) {
  return {Get<Spec>(attrs, "padded"), Get<ConstantElement>(attrs, "padding_values")};
}

absl::Status CheckPadding(const RowPadding& padding, const Spec& input) {
  RETURN_IF_ERROR(CheckCanBePadded(input));
  if (padding.row.structure_fingerprint() != input.structure_fingerprint()) {
    return absl::InvalidArgumentError(absl::StrCat("padded_shapes is for ", padding.row.ToString(),
                                                   ", but the elements are ", input.ToString()));
  }
  for (size_t i = 0; i < input.leaves().size(); ++i)
    RETURN_IF_ERROR(PaddedShape(input, i, padding.row.leaves()[i].shape).status());
  return CheckPaddingValues(*padding.values, input);
}

absl::Status CheckFits(absl::Span<const int64_t> dims, const Shape& padded) {
  bool fits = static_cast<int>(dims.size()) == padded.rank();
  for (size_t d = 0; fits && d < dims.size(); ++d)
    fits = padded.dim(d) == kUnknownDim || dims[d] <= padded.dim(d);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "has shape ", ShapeText(dims), ", which does not fit the padded shape ", padded.ToString()));
}

absl::StatusOr<std::vector<int64_t>> PaddedDims(absl::Span<const absl::Span<const int64_t>> rows,
                                                const Shape& padded) {
  std::vector<int64_t> dims(padded.rank(), 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    RETURN_IF_ERROR(Annotate(CheckFits(rows[r], padded), "row ", r, " of a batch"));
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(dims[d], rows[r][d]);
  }
  for (size_t d = 0; d < dims.size(); ++d)
    if (padded.dim(d) != kUnknownDim) dims[d] = padded.dim(d);
  return dims;
}

void FillWith(const Tensor& scalar, absl::Span<std::byte> memory) {
  const size_t size = SizeOf(scalar.dtype());
  const auto* value = static_cast<const std::byte*>(scalar.raw());
  if (memory.empty()) return;
  if (std::all_of(value, value + size, [&](std::byte b) { return b == value[0]; })) {
    std::memset(memory.data(), static_cast<int>(value[0]), memory.size());
    return;
  }
  std::memcpy(memory.data(), value, size);
  for (size_t filled = size; filled < memory.size(); filled *= 2)
    std::memcpy(memory.data() + filled, memory.data(), std::min(filled, memory.size() - filled));
}

void WritePadded(const Tensor& value, absl::Span<const int64_t> dims, const Tensor& pad,
                 std::byte* to) {
  const absl::Span<const int64_t> own = value.dims();
  const size_t bytes = Product(dims) * SizeOf(value.dtype());
  size_t written = 0;
  if (dims.empty() || own.subspan(1) == dims.subspan(1)) {  // the values are contiguous
    written = value.byte_count();
    CopyBytes(to, value.raw(), written);
  } else {
    const size_t row_bytes = Product(dims.subspan(1)) * SizeOf(value.dtype());
    for (int64_t i = 0; i < own[0]; ++i, written += row_bytes)
      WritePadded(RowOf(value, i), dims.subspan(1), pad, to + written);
  }
  FillWith(pad, absl::MakeSpan(to + written, bytes - written));
}

}  // namespace penstock
