// SPDX-License-Identifier: Apache-2.0
// Compares the host form of a stage's steps with formulas written here.
#include "penstock/device_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "tests/dataplane/memory/stage_samples.h"

namespace penstock {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

// Returns x.transpose(0, 3, 1, 2) * scale + offset, computed exactly, then rounded to float32 once
// and to `dtype` after that.
uint32_t BitsOf(double exact, DType dtype) {
  const auto value = static_cast<float>(exact);
  if (dtype == kFloat16) return Float16(value).bits;
  if (dtype == kBFloat16) return BFloat16(value).bits;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST(DeviceStage, ImagesBecomePlanesBitByBit) {
  for (const ImagesSample& sample : ImagesSamples()) {
    const int64_t pixels = sample.height * sample.width;
    const int64_t count = sample.batch * pixels * sample.channels;
    const std::vector<uint8_t> images = RandomBytes(count);
    const size_t bytes = SizeOf(sample.dtype);
    std::vector<std::byte> planes(static_cast<size_t>(count) * bytes);
    const ImagesToPlanes step =
        ImagesToPlanes{images.data(),   sample.batch, sample.height, sample.width,
                       sample.channels, sample.dtype, planes.data()}
            .Normalized(kMean, kDeviation);
    ASSERT_TRUE(RunStage(step).ok());
    for (int64_t n = 0; n < sample.batch; ++n) {
      for (int c = 0; c < sample.channels; ++c) {
        for (int64_t p = 0; p < pixels; ++p) {
          // A product of 8 and 24 bits and a sum of similar size are exact in a double.
          const double exact = static_cast<double>(images[(n * pixels + p) * sample.channels + c]) *
                                   static_cast<double>(step.scale[c]) +
                               static_cast<double>(step.offset[c]);
          uint32_t bits = 0;
          std::memcpy(&bits, &planes[((n * sample.channels + c) * pixels + p) * bytes], bytes);
          ASSERT_EQ(bits, BitsOf(exact, sample.dtype))
              << Name(sample.dtype) << " image " << n << " channel " << c << " pixel " << p;
        }
      }
    }
  }
}

TEST(DeviceStage, NormalizedIsMeanAndDeviationOfNumbersFromZeroToOne) {
  const uint8_t pixel[] = {0, 128, 255};
  float planes[3];
  const ImagesToPlanes step =
      ImagesToPlanes{.images = pixel, .batch = 1, .height = 1, .width = 1, .planes = planes}
          .Normalized(kMean, kDeviation);
  ASSERT_TRUE(RunStage(step).ok());
  for (size_t c = 0; c < 3; ++c)
    EXPECT_NEAR(planes[c], (pixel[c] / 255.0 - kMean[c]) / kDeviation[c], 1e-6);
}

TEST(DeviceStage, RaggedRowsArePaddedOrCut) {
  constexpr int64_t kRows = 23;
  const std::vector<int64_t> splits = SampleSplits(kRows);
  for (const size_t bytes : {1, 2, 4, 8}) {
    const std::vector<uint8_t> values = RandomBytes(splits.back() * static_cast<int64_t>(bytes));
    const uint64_t padding = 0x0807060504030201;
    std::vector<uint8_t> padded(kRows * kSampleWidth * bytes), expected;
    ASSERT_TRUE(RunStage(RaggedToPadded{values.data(), splits.data(), kRows, kSampleWidth, bytes,
                                        padded.data(), padding})
                    .ok());
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < kSampleWidth; ++i) {
        for (size_t byte = 0; byte < bytes; ++byte) {
          const bool there = splits[row] + i < splits[row + 1];
          expected.push_back(there ? values[(splits[row] + i) * bytes + byte]
                                   : static_cast<uint8_t>(byte + 1));
        }
      }
    }
    EXPECT_THAT(padded, ElementsAreArray(expected));
  }
}

TEST(DeviceStage, RowsAreGatheredAndMissingOnesAreZeros) {
  const std::vector<uint8_t> rows = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> indices = {2, 0, -1, 3, 2};
  std::vector<uint8_t> out(10, 9);
  ASSERT_TRUE(RunStage(GatherRows{rows.data(), 3, 2, indices.data(), 5, out.data()}).ok());
  EXPECT_THAT(out, ElementsAreArray({5, 6, 1, 2, 0, 0, 0, 0, 5, 6}));
}

TEST(DeviceStage, InvalidStepsAreNamed) {
  uint8_t memory[8] = {};
  const int64_t splits[] = {0, 1};
  const struct {
    StageStep step;
    std::string named;
  } cases[] = {
      {ImagesToPlanes{
           .images = memory, .batch = 1, .height = 1, .width = 1, .channels = 5, .planes = memory},
       "channels"},
      {ImagesToPlanes{
           .images = memory, .batch = 1, .height = 1, .width = 1, .dtype = kInt8, .planes = memory},
       "int8"},
      {ImagesToPlanes{.images = memory, .batch = -1, .planes = memory}, "images"},
      {ImagesToPlanes{
           .images = memory, .batch = INT64_MAX, .height = 4, .width = 4, .planes = memory},
       "images"},
      {ImagesToPlanes{.batch = 1, .height = 1, .width = 1, .planes = memory}, "images"},
      {RaggedToPadded{memory, splits, 1, 1, 3, memory}, "value_bytes"},
      {RaggedToPadded{memory, nullptr, 1, 1, 4, memory}, "row_splits"},
      {GatherRows{memory, 1, 4, nullptr, 1, memory}, "indices"},
      {GatherRows{memory, 1, 4, splits, 1, nullptr}, "out"},
  };
  for (const auto& [step, named] : cases) {
    const absl::Status refused = RunStage(step);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr(named));
    EXPECT_EQ(LaunchStage(0, nullptr, step), refused);
  }
}

}  // namespace
}  // namespace penstock
