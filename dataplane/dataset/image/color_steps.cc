// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/image/color_steps.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "dataplane/dataset/image/pixels.h"

namespace penstock {
namespace {

template <class T>
constexpr float kMost = std::is_same_v<T, uint8_t> ? 255.0f : 1.0f;

template <class T>
T Cut(float value) {
  const float inside = std::clamp(value, 0.0f, kMost<T>);
  if constexpr (std::is_same_v<T, uint8_t>)
    return static_cast<uint8_t>(inside + 0.5f);
  else
    return inside;
}

uint8_t GreyOf(const uint8_t* rgb) {
  return Luma(rgb[0], rgb[1], rgb[2]);
}
float GreyOf(const float* rgb) {
  return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

template <class T>
float MeanGrey(int64_t pixels, const T* rgb) {
  double sum = 0;
  for (int64_t n = 0; n < pixels; ++n) sum += GreyOf(rgb + 3 * n);
  return static_cast<float>(sum / static_cast<double>(std::max<int64_t>(pixels, 1)));
}

// Moves every value towards `other`, or away from it.
template <class T>
void BlendWith(float other, float factor, int64_t values, T* data) {
  const float rest = (1 - factor) * other;
  if constexpr (std::is_same_v<T, uint8_t>) {
    uint8_t table[256];
    for (int i = 0; i < 256; ++i) table[i] = Cut<uint8_t>(factor * static_cast<float>(i) + rest);
    for (int64_t n = 0; n < values; ++n) data[n] = table[data[n]];
  } else {
    for (int64_t n = 0; n < values; ++n) data[n] = Cut<T>(factor * data[n] + rest);
  }
}

template <class T>
void BlendWithGrey(float factor, int64_t pixels, T* rgb) {
  for (int64_t n = 0; n < pixels; ++n, rgb += 3) {
    const float rest = (1 - factor) * static_cast<float>(GreyOf(rgb));
    for (int c = 0; c < 3; ++c) rgb[c] = Cut<T>(factor * static_cast<float>(rgb[c]) + rest);
  }
}

// Works on hue, chroma and value. It needs only the sixth of the hue circle that contains the hue,
// and the hue's place in that sixth.
template <class T>
void TurnHue(float delta, int64_t pixels, T* rgb) {
  const float turn = 6 * (delta - std::floor(delta));
  for (int64_t n = 0; n < pixels; ++n, rgb += 3) {
    const auto red = static_cast<float>(rgb[0]);
    const auto green = static_cast<float>(rgb[1]);
    const auto blue = static_cast<float>(rgb[2]);
    const float value = std::max({red, green, blue});
    const float chroma = value - std::min({red, green, blue});
    if (chroma <= 0) continue;
    float hue = value == red     ? (green - blue) / chroma
                : value == green ? 2 + (blue - red) / chroma
                                 : 4 + (red - green) / chroma;
    hue += turn;
    for (int c = 0; c < 3; ++c) {
      float at = hue + static_cast<float>(5 - 2 * c);
      at -= 6 * std::floor(at / 6);
      const float away = std::clamp(std::min(at, 4 - at), 0.0f, 1.0f);
      rgb[c] = Cut<T>(value - chroma * away);
    }
  }
}

}  // namespace

template <class T>
void RunColorStep(ColorStep step, float amount, int64_t pixels, T* rgb) {
  switch (step) {
    case ColorStep::kBrightness:
      return BlendWith(0, amount, 3 * pixels, rgb);
    case ColorStep::kContrast:
      return BlendWith(MeanGrey(pixels, rgb), amount, 3 * pixels, rgb);
    case ColorStep::kSaturation:
      return BlendWithGrey(amount, pixels, rgb);
    case ColorStep::kHue:
      return TurnHue(amount, pixels, rgb);
  }
}

template <class T>
void MakeGrey(int64_t pixels, T* rgb) {
  for (int64_t n = 0; n < pixels; ++n, rgb += 3) rgb[0] = rgb[1] = rgb[2] = GreyOf(rgb);
}

template void RunColorStep(ColorStep, float, int64_t, uint8_t*);
template void RunColorStep(ColorStep, float, int64_t, float*);
template void MakeGrey(int64_t, uint8_t*);
template void MakeGrey(int64_t, float*);

Normalization::Normalization(const std::vector<double>& mean, const std::vector<double>& std)
    : mean_(mean.begin(), mean.end()), std_(std.begin(), std.end()), of_uint8_(mean.size()) {
  for (size_t c = 0; c < mean_.size(); ++c)
    for (int value = 0; value < 256; ++value)
      of_uint8_[c][value] = (static_cast<float>(value) - mean_[c]) / std_[c];
}

void Normalization::Run(const uint8_t* in, int64_t pixels, float* out) const {
  const size_t count = of_uint8_.size();
  for (int64_t n = 0; n < pixels; ++n, in += count, out += count)
    for (size_t c = 0; c < count; ++c) out[c] = of_uint8_[c][in[c]];
}

void Normalization::Run(const float* in, int64_t pixels, float* out) const {
  const size_t count = mean_.size();
  for (int64_t n = 0; n < pixels; ++n, in += count, out += count)
    for (size_t c = 0; c < count; ++c) out[c] = (in[c] - mean_[c]) / std_[c];
}

}  // namespace penstock
