// SPDX-License-Identifier: Apache-2.0
// Strings: length, concatenation, numbers in text, raw values.
#include <bit>
#include <cstring>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/ops/elementwise.h"
#include "dataplane/dataset/expr/ops/text.h"
#include "include/status_macros.h"
#include "penstock/map.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

absl::StatusOr<Specs> InferLength(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  return Specs{Dense(kInt64, inputs[0].shape)};
}
absl::Status Length(OpRun& run) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(int64_t* const out, run.PlaceAs<int64_t>(0, x.dims()));
  for (int64_t n = 0; n < x.element_count(); ++n) out[n] = static_cast<int64_t>(x.string(n).size());
  return absl::OkStatus();
}

absl::StatusOr<Specs> InferConcatStrings(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  RETURN_IF_ERROR(CheckString(inputs[1], 1));
  return InferBinary(inputs, Takes::kAny);
}
absl::Status ConcatStrings(OpRun& run) {
  const Tensor& a = run.input(0);
  const Tensor& b = run.input(1);
  ASSIGN_OR_RETURN(const Dims dims, BroadcastDims(a.dims(), b.dims()));
  RETURN_IF_ERROR(CountOf(dims, kUInt64).status());
  std::vector<std::string> joined;
  const BroadcastWalk walk(dims, {a.dims(), b.dims()});
  walk.ForEachRow([&](const int64_t* offsets, int64_t length, int64_t) {
    for (int64_t n = 0; n < length; ++n) {
      std::string& value = joined.emplace_back(a.string(offsets[0] + n * walk.step(0)));
      value += b.string(offsets[1] + n * walk.step(1));
    }
  });
  return run.Strings(0, dims, [&](int64_t n) -> std::string_view { return joined[n]; });
}

absl::StatusOr<Specs> InferToNumber(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  const DType dtype = Get<DType>(attrs, "dtype");
  if (dtype != kInt32 && dtype != kInt64 && dtype != kFloat32 && dtype != kFloat64)
    return absl::InvalidArgumentError("dtype must be int32, int64, float32 or float64");
  return Specs{Dense(dtype, inputs[0].shape)};
}
template <class T>
bool ParseNumber(absl::string_view text, T& value) {
  text = absl::StripAsciiWhitespace(text);
  if constexpr (kIsInteger<T>)
    return absl::SimpleAtoi(text, &value);
  else if constexpr (std::is_same_v<T, float>)
    return absl::SimpleAtof(text, &value);
  else
    return absl::SimpleAtod(text, &value);
}
template <class T>
absl::Status ToNumber(OpRun& run) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, x.dims()));
  for (int64_t n = 0; n < x.element_count(); ++n) {
    const std::string_view text = x.string(n);
    if (!ParseNumber(View(text), out[n])) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(text), " is not a valid ", Name(DTypeOf<T>)));
    }
  }
  return absl::OkStatus();
}
absl::StatusOr<Kernel> MakeToNumber(const OpDef& def, InputSpecs) {
  switch (Get<DType>(def.attrs, "dtype")) {
    case DType::kInt32:
      return Kernel(ToNumber<int32_t>);
    case DType::kInt64:
      return Kernel(ToNumber<int64_t>);
    case DType::kFloat32:
      return Kernel(ToNumber<float>);
    default:
      return Kernel(ToNumber<double>);
  }
}

// --- DecodeRaw: the bytes of a scalar string are the values, little endian ------

static_assert(std::endian::native == std::endian::little, "values are stored little endian");

absl::StatusOr<Specs> InferDecodeRaw(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  if (!inputs[0].shape.has_rank() || inputs[0].shape.rank() != 0)
    return absl::InvalidArgumentError("argument 0 is not a scalar string");
  const DType dtype = Get<DType>(attrs, "dtype");
  if (!IsKnown(dtype) || dtype == kString)
    return absl::InvalidArgumentError("dtype must have a fixed size");
  const auto& dims = Get<std::vector<int64_t>>(attrs, "dims");
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < (i == 0 ? -1 : 0))
      return absl::InvalidArgumentError(
          "dims must be at least 0; the first may be -1 to take all values");
  Dims known(dims.begin(), dims.end());
  if (!known.empty() && known[0] == -1) known[0] = 1;
  RETURN_IF_ERROR(CountOf(known, dtype).status());
  return Specs{Dense(dtype, Shape(dims))};
}

absl::StatusOr<Kernel> MakeDecodeRaw(const OpDef& def, InputSpecs) {
  return Kernel([dims = Get<std::vector<int64_t>>(def.attrs, "dims"),
                 dtype = Get<DType>(def.attrs, "dtype")](OpRun& run) -> absl::Status {
    const size_t width = SizeOf(dtype);
    const std::string_view bytes = run.input(0).string();
    Dims filled(dims.begin(), dims.end());
    size_t row_bytes = width;
    for (size_t i = 1; i < filled.size(); ++i) row_bytes *= filled[i];
    if (!filled.empty() && filled[0] == -1)
      filled[0] = row_bytes == 0 ? 0 : static_cast<int64_t>(bytes.size() / row_bytes);
    const size_t wanted = row_bytes * (filled.empty() ? 1 : filled[0]);
    if (wanted != bytes.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the string has ", bytes.size(), " bytes; these dims take ",
                       !dims.empty() && dims[0] == -1 ? "a multiple of " : "",
                       !dims.empty() && dims[0] == -1 ? row_bytes : wanted));
    }
    // Copied only if the address is not aligned for values of that width.
    const auto place = reinterpret_cast<uintptr_t>(bytes.data());
    if (!bytes.empty() && place % width == 0)
      return run.View(0, Tensor(dtype, filled, bytes.data()));
    ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, filled));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size());
    return absl::OkStatus();
  });
}

template <absl::Status (*kRun)(OpRun&)>
absl::StatusOr<Kernel> MakePlain(const OpDef&, InputSpecs) {
  return Kernel(kRun);
}

}  // namespace

std::vector<OpRow> StringOps() {
  return {
      {.name = "StringLength", .infer = InferLength, .make = MakePlain<Length>},
      {.name = "StringConcat",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = InferConcatStrings,
       .make = MakePlain<ConcatStrings>},
      {.name = "StringToNumber",
       .attrs = {{"dtype", kAttrIndex<DType>}},
       .infer = InferToNumber,
       .make = MakeToNumber},
      {.name = "DecodeRaw",
       .attrs = {{"dtype", kAttrIndex<DType>}, {"dims", kAttrIndex<std::vector<int64_t>>}},
       .infer = InferDecodeRaw,
       .make = MakeDecodeRaw},
  };
}

Expr DecodeRaw(const Expr& bytes, DType dtype, std::vector<int64_t> dims) {
  return Apply1("DecodeRaw", {{"dtype", dtype}, {"dims", std::move(dims)}}, {bytes});
}

}  // namespace penstock
