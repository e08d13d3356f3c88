// SPDX-License-Identifier: Apache-2.0
// Text operations: Substr, ReduceJoin, lower and upper case, Strip; numbers as text; hash buckets.
#include "dataplane/dataset/expr/ops/text.h"

#include <farmhash.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

#include "absl/strings/ascii.h"
#include "dataplane/dataset/expr/axes.h"
#include "dataplane/dataset/expr/broadcast.h"
#include "dataplane/dataset/expr/ops/elementwise.h"
#include "dataplane/dataset/expr/ops/moved_values.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

// --- One string from each string ------------------------------------------------

absl::StatusOr<Specs> InferSameString(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  return Specs{Dense(kString, inputs[0].shape)};
}

template <class F>
OpRow EachString(absl::string_view name, F) {
  return {.name = name,
          .infer = InferSameString,
          .make = [](const OpDef&, InputSpecs) -> absl::StatusOr<Kernel> {
            return Kernel([](OpRun& run) {
              const Tensor& x = run.input(0);
              return MakeStrings(run, x.dims(),
                                 [&](int64_t n) { return std::string(F()(View(x.string(n)))); });
            });
          }};
}

// --- Substr --------------------------------------------------------------------

absl::StatusOr<Specs> InferSubstr(const Attrs&, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  for (int i : {1, 2}) {
    if (inputs[i].dtype != kInt64)
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", i, " is ", Name(inputs[i].dtype), ", not int64"));
  }
  ASSIGN_OR_RETURN(const Shape both, BroadcastShapes(inputs[1].shape, inputs[2].shape));
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(inputs[0].shape, both));
  return Specs{Dense(kString, std::move(shape))};
}

// Like tf.strings.substr: the start must be inside the text, the end may be outside.
absl::StatusOr<std::string_view> SubstrOf(std::string_view text, int64_t begin, int64_t length) {
  const auto size = static_cast<int64_t>(text.size());
  if (begin < -size || begin > size || length < 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot take ", length, " bytes from offset ",
                                                   begin, " of ", Quoted(text), ", which has ",
                                                   size));
  }
  return text.substr(begin < 0 ? begin + size : begin, length);
}

absl::Status Substr(OpRun& run) {
  const Tensor& x = run.input(0);
  const auto* begin = static_cast<const int64_t*>(run.input(1).raw());
  const auto* length = static_cast<const int64_t*>(run.input(2).raw());
  ASSIGN_OR_RETURN(const Dims both, BroadcastDims(run.input(1).dims(), run.input(2).dims()));
  ASSIGN_OR_RETURN(const Dims dims, BroadcastDims(x.dims(), both));
  RETURN_IF_ERROR(CountOf(dims, kUInt64).status());
  std::vector<std::string_view> parts;
  absl::Status status;
  const BroadcastWalk walk(dims, {x.dims(), run.input(1).dims(), run.input(2).dims()});
  walk.ForEachRow([&](const int64_t* offsets, int64_t count, int64_t) {
    for (int64_t n = 0; n < count; ++n) {
      const auto part =
          SubstrOf(x.string(offsets[0] + n * walk.step(0)), begin[offsets[1] + n * walk.step(1)],
                   length[offsets[2] + n * walk.step(2)]);
      status.Update(part.status());
      parts.push_back(part.value_or(std::string_view()));
    }
  });
  RETURN_IF_ERROR(status);
  return run.Strings(0, dims, [&](int64_t n) { return parts[n]; });
}

absl::StatusOr<Kernel> MakeSubstr(const OpDef&, InputSpecs) {
  return Kernel(Substr);
}

// --- ReduceJoin ------------------------------------------------------------------

absl::StatusOr<Dims> JoinedDims(absl::Span<const int64_t> dims, int64_t axis) {
  ASSIGN_OR_RETURN(const int place, PlaceOfAxis(axis, static_cast<int>(dims.size())));
  Dims result(dims.begin(), dims.end());
  result.erase(result.begin() + place);
  return result;
}

absl::StatusOr<Specs> InferReduceJoin(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  if (!inputs[0].shape.has_rank()) return Specs{Dense(kString, Shape::UnknownRank())};
  ASSIGN_OR_RETURN(const Dims dims,
                   JoinedDims(inputs[0].shape.dims(), Get<int64_t>(attrs, "axis")));
  return Specs{Dense(kString, Shape(std::vector<int64_t>(dims.begin(), dims.end())))};
}

absl::Status ReduceJoin(OpRun& run, int64_t axis, const std::string& separator) {
  const Tensor& x = run.input(0);
  ASSIGN_OR_RETURN(const Dims dims, JoinedDims(x.dims(), axis));
  ASSIGN_OR_RETURN(const int place, PlaceOfAxis(axis, x.rank()));
  const int64_t length = x.dim(place), stride = StridesOf(x.dims())[place];
  return MakeStrings(run, dims, [&](int64_t n) -> absl::StatusOr<std::string> {
    const int64_t start = n / stride * stride * length + n % stride;
    std::string joined;
    for (int64_t i = 0; i < length; ++i) {
      if (i > 0) joined += separator;
      joined += x.string(start + i * stride);
      if (joined.size() > MostValueBytes()) return StringsTooLarge(joined.size());
    }
    return joined;
  });
}

absl::StatusOr<Kernel> MakeReduceJoin(const OpDef& def, InputSpecs) {
  return Kernel([axis = Get<int64_t>(def.attrs, "axis"),
                 separator = Get<std::string>(def.attrs, "separator")](OpRun& run) {
    return ReduceJoin(run, axis, separator);
  });
}

// --- AsString -----------------------------------------------------------------------

constexpr int64_t kMostDigits = 64;

absl::StatusOr<Specs> InferAsString(const Attrs& attrs, InputSpecs inputs) {
  if (inputs[0].dtype != kBool) RETURN_IF_ERROR(CheckTakes(Takes::kReal, inputs[0].dtype, 0));
  const int64_t precision = Get<int64_t>(attrs, "precision");
  if (precision < -1 || precision > kMostDigits)
    return absl::InvalidArgumentError(absl::StrCat("precision must be -1 to 64, not ", precision));
  return Specs{Dense(kString, inputs[0].shape)};
}

template <class T>
std::string NumberText(T value, int64_t precision) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return absl::StrCat(
        static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
  } else {
    if (std::isnan(value)) return "nan";
    char text[512];  // 310 digits before the point and 64 after it
    const auto result = precision < 0
                            ? std::to_chars(text, std::end(text), value)
                            : std::to_chars(text, std::end(text), value, std::chars_format::fixed,
                                            static_cast<int>(precision));
    return std::string(text, result.ptr);
  }
}

template <class T>
Kernel AsStringOf(int64_t precision) {
  return [precision](OpRun& run) {
    const Tensor& x = run.input(0);
    const T* from = static_cast<const T*>(x.raw());
    return MakeStrings(run, x.dims(),
                       [&](int64_t n) { return NumberText(Load(from[n]), precision); });
  };
}

absl::StatusOr<Kernel> MakeAsString(const OpDef& def, InputSpecs inputs) {
  const int64_t precision = Get<int64_t>(def.attrs, "precision");
  if (inputs[0].dtype == kBool) return AsStringOf<BoolByte>(precision);
  return ForReal(inputs[0].dtype, [&]<class T>() { return AsStringOf<T>(precision); });
}

// --- StringToHashBucket ----------------------------------------------------------------

absl::StatusOr<Specs> InferHashBucket(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckString(inputs[0], 0));
  if (Get<int64_t>(attrs, "buckets") < 1)
    return absl::InvalidArgumentError("buckets must be at least 1");
  return Specs{Dense(kInt64, inputs[0].shape)};
}

absl::StatusOr<Kernel> MakeBucket(const OpDef& def, InputSpecs) {
  return Kernel([buckets = static_cast<uint64_t>(Get<int64_t>(def.attrs, "buckets"))](
                    OpRun& run) -> absl::Status {
    const Tensor& x = run.input(0);
    ASSIGN_OR_RETURN(int64_t* const out, run.PlaceAs<int64_t>(0, x.dims()));
    for (int64_t n = 0; n < x.element_count(); ++n) {
      const std::string_view text = x.string(n);
      out[n] = static_cast<int64_t>(util::Fingerprint64(text.data(), text.size()) % buckets);
    }
    return absl::OkStatus();
  });
}

}  // namespace

std::vector<OpRow> TextOps() {
  return {
      EachString("StringLower", [](absl::string_view x) { return absl::AsciiStrToLower(x); }),
      EachString("StringUpper", [](absl::string_view x) { return absl::AsciiStrToUpper(x); }),
      EachString("StringStrip", [](absl::string_view x) { return absl::StripAsciiWhitespace(x); }),
      {.name = "Substr",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = InferSubstr,
       .make = MakeSubstr},
      {.name = "ReduceJoin",
       .attrs = {{"axis", kAttrIndex<int64_t>}, {"separator", kAttrIndex<std::string>}},
       .infer = InferReduceJoin,
       .make = MakeReduceJoin},
      {.name = "AsString",
       .attrs = {{"precision", kAttrIndex<int64_t>}},
       .infer = InferAsString,
       .make = MakeAsString},
      {.name = "StringToHashBucket",
       .attrs = {{"buckets", kAttrIndex<int64_t>}},
       .infer = InferHashBucket,
       .make = MakeBucket},
  };
}

}  // namespace penstock
