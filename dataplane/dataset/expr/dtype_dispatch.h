// SPDX-License-Identifier: Apache-2.0
// Maps a dtype to the C++ type that kernels are compiled for.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "penstock/dtype.h"

namespace penstock {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// The type that values are computed in: float for 16-bit floats, as in NumPy.
template <class T>
using ComputedIn = std::conditional_t<kIsHalf<T>, float, T>;

template <class T>
ComputedIn<T> Load(T value) {
  return static_cast<ComputedIn<T>>(value);
}

// A bool in memory. In untrusted data the byte may have any value, unlike that of a C++ bool.
struct BoolByte {
  uint8_t byte = 0;
};
inline bool Load(BoolByte value) {
  return value.byte != 0;
}

// Calls `f.template operator()<T>()` for the type of a dtype, and returns its result. REQUIRES: the
// dtype is of the kind in the function's name.
template <class F>
auto ForInteger(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt8:
      return f.template operator()<int8_t>();
    case DType::kInt16:
      return f.template operator()<int16_t>();
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kUInt8:
      return f.template operator()<uint8_t>();
    case DType::kUInt16:
      return f.template operator()<uint16_t>();
    case DType::kUInt32:
      return f.template operator()<uint32_t>();
    case DType::kUInt64:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<int64_t>();
  }
}
template <class F>
auto ForFloating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat16:
      return f.template operator()<Float16>();
    case DType::kBFloat16:
      return f.template operator()<BFloat16>();
    case DType::kFloat32:
      return f.template operator()<float>();
    default:
      return f.template operator()<double>();
  }
}
template <class F>
auto ForReal(DType dtype, F&& f) {
  return IsInteger(dtype) ? ForInteger(dtype, f) : ForFloating(dtype, f);
}
inline bool IsComplex(DType dtype) {
  return dtype == kComplex64 || dtype == kComplex128;
}
template <class F>
auto ForNumber(DType dtype, F&& f) {
  if (dtype == kComplex64) return f.template operator()<std::complex<float>>();
  if (dtype == kComplex128) return f.template operator()<std::complex<double>>();
  return ForReal(dtype, f);
}

// A value of kBytes bytes, whatever it means.
template <size_t kBytes>
struct Opaque {
  std::byte bytes[kBytes];
};
// Calls `f` like ForInteger(), for the Opaque type of the dtype's size. REQUIRES: not string.
template <class F>
auto ForWidth(DType dtype, F&& f) {
  switch (SizeOf(dtype)) {
    case 1:
      return f.template operator()<Opaque<1>>();
    case 2:
      return f.template operator()<Opaque<2>>();
    case 4:
      return f.template operator()<Opaque<4>>();
    case 8:
      return f.template operator()<Opaque<8>>();
    default:
      return f.template operator()<Opaque<16>>();
  }
}

// Integers wrap around, as in NumPy. Signed overflow is undefined in C++, so integers are computed
// as unsigned.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

// Sums of integers are 64 bits wide and wrap around; floats are summed in double.
inline DType SumDType(DType dtype) {
  if (dtype == kBool) return kInt64;
  if (!IsInteger(dtype)) return dtype;
  return ForInteger(dtype, []<class T>() { return std::is_signed_v<T> ? kInt64 : kUInt64; });
}
template <class In>
using SumOf = std::conditional_t<
    kIsComplex<In>, std::complex<double>,
    std::conditional_t<kIsInteger<In>, uint64_t,  // sign-extended first
                       std::conditional_t<std::is_same_v<In, BoolByte>, uint64_t, double>>>;

// Converts a wide sum to the result's type.
template <class Out, class Sum>
Out Narrow(Sum sum) {
  if constexpr (kIsHalf<Out>)
    return Out(static_cast<float>(sum));
  else
    return static_cast<Out>(sum);
}

// The dtypes that an operation takes.
enum class Takes : uint8_t { kReal, kNumber, kFloating, kInteger, kBoolean, kAny };

inline bool Fits(Takes takes, DType dtype) {
  switch (takes) {
    case Takes::kReal:
      return IsInteger(dtype) || IsFloating(dtype);
    case Takes::kNumber:
      return IsInteger(dtype) || IsFloating(dtype) || IsComplex(dtype);
    case Takes::kFloating:
      return IsFloating(dtype);
    case Takes::kInteger:
      return IsInteger(dtype);
    case Takes::kBoolean:
      return dtype == kBool;
    case Takes::kAny:
      return true;
  }
  return false;
}

inline absl::Status CheckTakes(Takes takes, DType dtype, int argument) {
  if (Fits(takes, dtype)) return absl::OkStatus();
  static constexpr const char* kNames[] = {"integers or floating-point numbers",
                                           "numbers",
                                           "floating-point numbers",
                                           "integers",
                                           "bool",
                                           "any dtype"};
  return absl::InvalidArgumentError(absl::StrCat("argument ", argument, " is ", Name(dtype),
                                                 "; expected ", kNames[static_cast<int>(takes)],
                                                 "; Cast first"));
}

}  // namespace penstock
