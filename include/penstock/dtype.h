// SPDX-License-Identifier: Apache-2.0
// The types of tensor values. Their numbers are fixed on the wire and never reused for a different
// type (docs/element.md).
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#pragma GCC visibility push(default)
namespace penstock {

enum class DType : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kUInt64 = 9,
  kFloat16 = 10,
  kBFloat16 = 11,
  kFloat32 = 12,
  kFloat64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kString = 16,  // a sequence of bytes; no encoding is implied
  // 17 to 24 are reserved for float8 and int4 kinds.
};

inline constexpr DType kBool = DType::kBool;
inline constexpr DType kInt8 = DType::kInt8;
inline constexpr DType kInt16 = DType::kInt16;
inline constexpr DType kInt32 = DType::kInt32;
inline constexpr DType kInt64 = DType::kInt64;
inline constexpr DType kUInt8 = DType::kUInt8;
inline constexpr DType kUInt16 = DType::kUInt16;
inline constexpr DType kUInt32 = DType::kUInt32;
inline constexpr DType kUInt64 = DType::kUInt64;
inline constexpr DType kFloat16 = DType::kFloat16;
inline constexpr DType kBFloat16 = DType::kBFloat16;
inline constexpr DType kFloat32 = DType::kFloat32;
inline constexpr DType kFloat64 = DType::kFloat64;
inline constexpr DType kComplex64 = DType::kComplex64;
inline constexpr DType kComplex128 = DType::kComplex128;
inline constexpr DType kString = DType::kString;

// Values of float16 (IEEE 754 binary16) and bfloat16 (the upper half of binary32), as bits.
// Conversions round to nearest, ties to even; NaN stays NaN.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
  friend bool operator==(Float16 a, Float16 b) { return float(a) == float(b); }
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const;
  friend bool operator==(BFloat16 a, BFloat16 b) { return float(a) == float(b); }
};

// Returns the bytes of one value; 0 for kInvalid and for strings, which have no fixed size.
size_t SizeOf(DType dtype);

// Returns "float32", as NumPy and tf.data write it; "invalid" for an unknown number.
const std::string& Name(DType dtype);

// Returns the dtype with this name. InvalidArgument, with the known names, for any other name.
absl::StatusOr<DType> DTypeFromName(std::string_view name);

// Returns true for the listed dtypes other than kInvalid. Use it for untrusted numbers.
bool IsKnown(DType dtype);

bool IsInteger(DType dtype);   // signed and unsigned, not bool
bool IsFloating(DType dtype);  // float16, bfloat16, float32, float64

// DTypeOf<float> is kFloat32; kInvalid for types that no tensor holds.
template <class T>
inline constexpr DType DTypeOf = DType::kInvalid;
template <>
inline constexpr DType DTypeOf<bool> = kBool;
template <>
inline constexpr DType DTypeOf<int8_t> = kInt8;
template <>
inline constexpr DType DTypeOf<int16_t> = kInt16;
template <>
inline constexpr DType DTypeOf<int32_t> = kInt32;
template <>
inline constexpr DType DTypeOf<int64_t> = kInt64;
template <>
inline constexpr DType DTypeOf<uint8_t> = kUInt8;
template <>
inline constexpr DType DTypeOf<uint16_t> = kUInt16;
template <>
inline constexpr DType DTypeOf<uint32_t> = kUInt32;
template <>
inline constexpr DType DTypeOf<uint64_t> = kUInt64;
template <>
inline constexpr DType DTypeOf<Float16> = kFloat16;
template <>
inline constexpr DType DTypeOf<BFloat16> = kBFloat16;
template <>
inline constexpr DType DTypeOf<float> = kFloat32;
template <>
inline constexpr DType DTypeOf<double> = kFloat64;
template <>
inline constexpr DType DTypeOf<std::complex<float>> = kComplex64;
template <>
inline constexpr DType DTypeOf<std::complex<double>> = kComplex128;

}  // namespace penstock
#pragma GCC visibility pop
