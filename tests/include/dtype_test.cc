// SPDX-License-Identifier: Apache-2.0
#include "penstock/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace penstock {
namespace {

TEST(DType, HasNumbersThatStayFixedOnTheWire) {
  EXPECT_EQ(static_cast<int>(kBool), 1);
  EXPECT_EQ(static_cast<int>(kInt64), 5);
  EXPECT_EQ(static_cast<int>(kUInt8), 6);
  EXPECT_EQ(static_cast<int>(kFloat32), 12);
  EXPECT_EQ(static_cast<int>(kString), 16);
}

TEST(DType, IsFoundByItsName) {
  for (int code = 1; code <= 16; ++code) {
    const auto dtype = static_cast<DType>(code);
    absl::StatusOr<DType> found = DTypeFromName(Name(dtype));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, dtype);
  }
}

TEST(DType, NamesTheKnownOnesForAnUnknownName) {
  const absl::Status status = DTypeFromName("float8").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'float8'"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("bfloat16, float32"), absl::string_view::npos) << status;
}

TEST(DType, TellsKnownNumbersFromOthers) {
  EXPECT_FALSE(IsKnown(DType::kInvalid));
  EXPECT_TRUE(IsKnown(kString));
  EXPECT_FALSE(IsKnown(static_cast<DType>(17)));
  EXPECT_EQ(Name(static_cast<DType>(200)), "invalid");
  EXPECT_EQ(SizeOf(static_cast<DType>(200)), 0u);
}

TEST(DType, HasTheSizeOfItsCppType) {
  EXPECT_EQ(SizeOf(kBool), sizeof(bool));
  EXPECT_EQ(SizeOf(kBFloat16), sizeof(BFloat16));
  EXPECT_EQ(SizeOf(kFloat64), sizeof(double));
  EXPECT_EQ(SizeOf(kComplex128), sizeof(std::complex<double>));
  EXPECT_EQ(SizeOf(kString), 0u);
}

TEST(DType, IsIntegerOrFloatingOrNeither) {
  EXPECT_TRUE(IsInteger(kInt8));
  EXPECT_TRUE(IsInteger(kUInt64));
  EXPECT_FALSE(IsInteger(kBool));
  EXPECT_TRUE(IsFloating(kFloat16));
  EXPECT_FALSE(IsFloating(kComplex64));
}

TEST(Float16, ReadsEachOfItsPatternsAndWritesItBack) {
  for (uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
    Float16 half;
    half.bits = static_cast<uint16_t>(pattern);
    ASSERT_EQ(Float16(static_cast<float>(half)).bits, pattern) << pattern;
  }
}

TEST(Float16, HasTheValueThatItsFieldsSay) {
  for (uint32_t pattern = 0; pattern <= 0x7fff; ++pattern) {
    Float16 half;
    half.bits = static_cast<uint16_t>(pattern);
    const int exponent = pattern >> 10;
    const int mantissa = pattern & 0x3ff;
    const float value = static_cast<float>(half);
    if (exponent == 31) {
      ASSERT_TRUE(mantissa == 0 ? std::isinf(value) : std::isnan(value)) << pattern;
    } else {
      ASSERT_EQ(value, exponent == 0 ? std::ldexp(mantissa, -24)
                                     : std::ldexp(mantissa + 1024, exponent - 25))
          << pattern;
    }
  }
}

TEST(Float16, RoundsHalfWayBetweenNeighboursToTheEvenOne) {
  for (uint32_t pattern = 0; pattern < 0x7c00; ++pattern) {  // all finite values from 0 up
    Float16 low, high;
    low.bits = static_cast<uint16_t>(pattern);
    high.bits = static_cast<uint16_t>(pattern + 1);
    const double above = high.bits == 0x7c00 ? 65536.0 : static_cast<float>(high);
    const auto middle = static_cast<float>((static_cast<float>(low) + above) / 2);
    ASSERT_EQ(Float16(middle).bits, pattern % 2 == 0 ? low.bits : high.bits) << pattern;
    ASSERT_EQ(Float16(std::nextafter(middle, 0.0f)).bits, low.bits) << pattern;
    ASSERT_EQ(Float16(std::nextafter(middle, 1e6f)).bits, high.bits) << pattern;
  }
}

TEST(Float16, KeepsSignsAndNaN) {
  EXPECT_EQ(Float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(Float16(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(Float16(1e30f).bits, 0x7c00);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(std::bit_cast<float>(0x7f800001)))));
  EXPECT_FALSE(Float16(NAN) == Float16(NAN));
}

TEST(BFloat16, ReadsEachOfItsPatternsAndWritesItBack) {
  for (uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
    BFloat16 brain;
    brain.bits = static_cast<uint16_t>(pattern);
    ASSERT_EQ(BFloat16(static_cast<float>(brain)).bits, pattern) << pattern;
  }
}

TEST(BFloat16, RoundsHalfWayBetweenNeighboursToTheEvenOne) {
  for (uint32_t pattern = 0; pattern < 0x7f80; ++pattern) {
    const uint32_t middle = (pattern << 16) | 0x8000;
    const uint32_t even = pattern + pattern % 2;
    ASSERT_EQ(BFloat16(std::bit_cast<float>(middle)).bits, even) << pattern;
    ASSERT_EQ(BFloat16(std::bit_cast<float>(middle - 1)).bits, pattern);
    ASSERT_EQ(BFloat16(std::bit_cast<float>(middle + 1)).bits, pattern + 1);
  }
}

TEST(BFloat16, KeepsNaN) {
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001)))));
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);  // rounds to infinity
}

}  // namespace
}  // namespace penstock
