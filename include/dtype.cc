// SPDX-License-Identifier: Apache-2.0
#include "penstock/dtype.h"

#include <array>
#include <bit>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

struct Row {
  std::string name;
  size_t bytes;
};

using Table = std::array<Row, 17>;

// The index of a row is the dtype's number.
const Table& Rows() {
  static const Table& table = *new Table{{{"invalid", 0},
                                          {"bool", 1},
                                          {"int8", 1},
                                          {"int16", 2},
                                          {"int32", 4},
                                          {"int64", 8},
                                          {"uint8", 1},
                                          {"uint16", 2},
                                          {"uint32", 4},
                                          {"uint64", 8},
                                          {"float16", 2},
                                          {"bfloat16", 2},
                                          {"float32", 4},
                                          {"float64", 8},
                                          {"complex64", 8},
                                          {"complex128", 16},
                                          {"string", 0}}};
  return table;
}

const Row& RowOf(DType dtype) {
  return Rows()[IsKnown(dtype) ? static_cast<size_t>(dtype) : 0];
}

// Fields of IEEE 754 binary32, as bits of a float's magnitude.
constexpr uint32_t kInfinity32 = 0x7f800000;
constexpr uint32_t kSmallestNormal16 = 0x38800000;  // 2^-14
constexpr uint32_t kBeyond16 = 0x47800000;          // 2^16

}  // namespace

size_t SizeOf(DType dtype) {
  return RowOf(dtype).bytes;
}

const std::string& Name(DType dtype) {
  return RowOf(dtype).name;
}

absl::StatusOr<DType> DTypeFromName(std::string_view name) {
  std::string known;
  for (size_t i = 1; i < Rows().size(); ++i) {
    if (Rows()[i].name == name) return static_cast<DType>(i);
    absl::StrAppend(&known, i == 1 ? "" : ", ", Rows()[i].name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown dtype '", std::string(name), "'; use one of ", known));
}

bool IsKnown(DType dtype) {
  return dtype != DType::kInvalid && dtype <= kString;
}

bool IsInteger(DType dtype) {
  return dtype >= kInt8 && dtype <= kUInt64;
}

bool IsFloating(DType dtype) {
  return dtype >= kFloat16 && dtype <= kFloat64;
}

Float16::Float16(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((all >> 16) & 0x8000);
  uint32_t magnitude = all & 0x7fffffff;
  if (magnitude > kInfinity32) {  // NaN: keeps the upper part of its payload, if that is not 0
    const uint32_t payload = (magnitude >> 13) & 0x3ff;
    bits = static_cast<uint16_t>(sign | 0x7c00 | (payload != 0 ? payload : 0x200));
  } else if (magnitude >= kBeyond16) {
    bits = sign | 0x7c00;
  } else if (magnitude < kSmallestNormal16) {
    // The last bit of the sum is worth 2^-24, the distance between two subnormals of binary16, so
    // the addition rounds to the right value.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000));
  } else {
    const uint32_t odd = (magnitude >> 13) & 1;
    magnitude += 0xfff + odd - ((127u - 15u) << 23);  // a carry raises the exponent, up to infinity
    bits = static_cast<uint16_t>(sign | (magnitude >> 13));
  }
}

Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

BFloat16::BFloat16(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value);
  if ((all & 0x7fffffff) > kInfinity32) {
    const uint32_t upper = all >> 16;
    bits = static_cast<uint16_t>((upper & 0x7f) != 0 ? upper : upper | 0x40);
  } else {
    bits = static_cast<uint16_t>((all + 0x7fff + ((all >> 16) & 1)) >> 16);
  }
}

BFloat16::operator float() const {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace penstock
