// SPDX-License-Identifier: Apache-2.0
#include "penstock/tensor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/check.h"

namespace penstock {
namespace {

template <class T>
std::string TextOf(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) {
    return absl::StrCat(static_cast<int>(value));
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return absl::StrCat(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return absl::StrCat(value.real(), value.imag() < 0 ? "" : "+", value.imag(), "j");
  } else {
    return absl::StrCat(value);
  }
}

std::string ValueText(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
#define PENSTOCK_CASE(T) \
  case DTypeOf<T>:       \
    return TextOf<T>(tensor.data<T>()[i]);
    PENSTOCK_CASE(bool)
    PENSTOCK_CASE(int8_t)
    PENSTOCK_CASE(int16_t)
    PENSTOCK_CASE(int32_t)
    PENSTOCK_CASE(int64_t)
    PENSTOCK_CASE(uint8_t)
    PENSTOCK_CASE(uint16_t)
    PENSTOCK_CASE(uint32_t)
    PENSTOCK_CASE(uint64_t)
    PENSTOCK_CASE(Float16)
    PENSTOCK_CASE(BFloat16)
    PENSTOCK_CASE(float)
    PENSTOCK_CASE(double)
    PENSTOCK_CASE(std::complex<float>)
    PENSTOCK_CASE(std::complex<double>)
#undef PENSTOCK_CASE
    case kString: {
      constexpr size_t kShown = 64;  // bytes of a string; an image would fill the screen
      const std::string_view value = tensor.string(i);
      return absl::StrCat(
          "\"", absl::CHexEscape(absl::string_view(value.data(), std::min(value.size(), kShown))),
          value.size() > kShown ? "…" : "", "\"");
    }
    case DType::kInvalid:
      break;
  }
  return "";
}

}  // namespace

void Tensor::SetRagged(absl::Span<const absl::Span<const int64_t>> row_splits) {
  PENSTOCK_CHECK(row_splits.size() <= kMaxRaggedRank);
  kind_ = TensorSpec::Kind::kRagged;
  parts_ = static_cast<uint8_t>(row_splits.size());
  for (size_t i = 0; i < row_splits.size(); ++i) splits_[i] = row_splits[i];
}

void Tensor::SetSparse(absl::Span<const int64_t> indices, absl::Span<const int64_t> dense_shape) {
  kind_ = TensorSpec::Kind::kSparse;
  parts_ = 2;
  splits_[0] = indices;
  splits_[1] = dense_shape;
}

void Tensor::TypeMismatch(DType wanted) const {
  std::fprintf(stderr, "penstock: a tensor of %s was read as %s\n", Name(dtype_).c_str(),
               Name(wanted).c_str());
  std::abort();
}

std::string Tensor::ToString(int limit) const {
  if (!present()) return "absent";
  const int64_t count = element_count();
  std::string values;
  for (int64_t i = 0; i < count && i < limit; ++i) {
    absl::StrAppend(&values, i == 0 ? "" : " ", ValueText(*this, i));
  }
  if (count > limit) absl::StrAppend(&values, limit > 0 ? " …" : "…");
  if (rank() == 0) return absl::StrCat(values, " ", Name(dtype_));
  std::string text =
      absl::StrCat("[", values, "] ", Name(dtype_), " [", absl::StrJoin(dims_, ","), "]");
  for (int level = 0; level < ragged_rank(); ++level) {
    const auto splits = row_splits(level);
    const auto shown = splits.subspan(0, std::max(limit, 0));
    absl::StrAppend(&text, " rows [", absl::StrJoin(shown, " "),
                    shown.size() < splits.size() ? " …]" : "]");
  }
  if (kind_ == TensorSpec::Kind::kSparse) {
    absl::StrAppend(&text, " of [", absl::StrJoin(dense_shape(), ","), "]");
  }
  return text;
}

}  // namespace penstock
