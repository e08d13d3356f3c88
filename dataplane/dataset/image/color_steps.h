// SPDX-License-Identifier: Apache-2.0
// Steps on the colours of an image, in place. uint8 values range from 0 to 255, floats from 0 to 1.
// Results are clipped to this range; uint8 results are rounded to the nearest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace penstock {

enum class ColorStep : uint8_t { kBrightness, kContrast, kSaturation, kHue };

// `amount` is a factor, or for kHue a fraction of the hue circle. `rgb` has three channels.
template <class T>
void RunColorStep(ColorStep step, float amount, int64_t pixels, T* rgb);

// Sets all three channels to the luma.
template <class T>
void MakeGrey(int64_t pixels, T* rgb);

// Computes (x - mean) / std for each channel.
class Normalization {
 public:
  Normalization(const std::vector<double>& mean, const std::vector<double>& std);
  int64_t channels() const { return static_cast<int64_t>(mean_.size()); }
  void Run(const uint8_t* in, int64_t pixels, float* out) const;
  void Run(const float* in, int64_t pixels, float* out) const;

 private:
  std::vector<float> mean_, std_;
  std::vector<std::array<float, 256>> of_uint8_;  // by channel
};

}  // namespace penstock
