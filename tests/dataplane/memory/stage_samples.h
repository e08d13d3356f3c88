// SPDX-License-Identifier: Apache-2.0
// Inputs of a stage's steps, including unusual ones, for the host form and for kernels.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "penstock/device_stage.h"

namespace penstock {

struct ImagesSample {
  int64_t batch, height, width;
  int channels;
  DType dtype;
};
inline std::vector<ImagesSample> ImagesSamples() {
  std::vector<ImagesSample> samples;
  for (const DType dtype : {kFloat16, kBFloat16, kFloat32}) {
    for (const int channels : {1, 2, 3, 4}) samples.push_back({2, 5, 7, channels, dtype});
    samples.push_back({0, 5, 7, 3, dtype});
    samples.push_back({1, 1, 1, 1, dtype});
    samples.push_back({3, 224, 223, 3, dtype});
  }
  return samples;
}

inline std::vector<uint8_t> RandomBytes(int64_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

inline constexpr std::array<float, 4> kMean = {0.485F, 0.456F, 0.406F, 0.5F};
inline constexpr std::array<float, 4> kDeviation = {0.229F, 0.224F, 0.225F, 0.25F};

// Returns rows of lengths 0 to 9; some are longer than the padded width of 6.
inline std::vector<int64_t> SampleSplits(int64_t rows) {
  std::vector<int64_t> splits = {0};
  for (int64_t row = 0; row < rows; ++row) splits.push_back(splits.back() + row * 7 % 10);
  return splits;
}
inline constexpr int64_t kSampleWidth = 6;

}  // namespace penstock
