// SPDX-License-Identifier: Apache-2.0
// Combines rows first, because that reads consecutive memory, and then the columns of the resulting
// row. Bilinear without antialias, which most pipelines use, has its own loops.
#include "dataplane/dataset/image/resize.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

namespace penstock {
namespace {

void Store(float value, float* out) {
  *out = value;
}
void Store(float value, uint8_t* out) {
  *out = static_cast<uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
}

// Four values at once, in the compiler's vector type for this machine.
using Float4 = float __attribute__((vector_size(16)));
#ifndef __SSE2__
using Int4 = int32_t __attribute__((vector_size(16)));
using Byte4 = uint8_t __attribute__((vector_size(4)));
#endif

Float4 Load4(const float* values) {
  Float4 loaded;
  std::memcpy(&loaded, values, sizeof loaded);
  return loaded;
}
void Store4(Float4 values, uint8_t* out) {
  const Float4 rounded = values + 0.5f;
#ifdef __SSE2__  // packs with saturation, which GCC 12 does not generate
  const __m128i words = _mm_packs_epi32(_mm_cvttps_epi32(rounded), _mm_setzero_si128());
  const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
#else
  const Float4 positive = rounded > 0.0f ? rounded : Float4{};
  const Float4 most = Float4{} + 255.0f;
  const Int4 inside = __builtin_convertvector(positive < most ? positive : most, Int4);
  const auto bytes = __builtin_convertvector(inside, Byte4);
#endif
  std::memcpy(out, &bytes, sizeof bytes);
}
void Store4(Float4 values, float* out) {
  std::memcpy(out, &values, sizeof values);
}

double Triangle(double x) {
  return std::max(0.0, 1 - std::fabs(x));
}

// R. Keys, "Cubic convolution interpolation for digital image processing",
// 1981, with a = -1/2.
double Cubic(double x) {
  x = std::fabs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

// Returns how far the filter reaches, in the image's pixels.
double ReachOf(const ResizeOptions& options, double scale) {
  const double reach = options.interpolation == Interpolation::kBicubic ? 2 : 1;
  return options.antialias ? reach * std::max(scale, 1.0) : reach;
}

// Returns the maximum number of values that are summed for one result.
int64_t MostTaps(const ResizeOptions& options, int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(ReachOf(options, scale), scale / 2);
  return std::min(from, static_cast<int64_t>(std::ceil(2 * reach)) + 2);
}

}  // namespace

template <class T>
Resizer<T>::Resizer(const ImageView<T>& image, const ImageSize& size, const ResizeOptions& options,
                    bool mirror, Arena& arena)
    : image_(image),
      size_(size),
      options_(options),
      blends_(options.interpolation == Interpolation::kBilinear && !options.antialias),
      arena_(&arena) {
  row_ = arena.AllocateArray<float>(image.width * image.channels + 1);
  row_[image.width * image.channels] = 0;  // read together with the last pixel, but not used
  if (!blends_)
    row_weights_ = arena.AllocateArray<float>(MostTaps(options, image.height, size.height));
  PlanColumns(mirror);
}

template <class T>
typename Resizer<T>::Between Resizer<T>::BetweenOf(int64_t result, int64_t from, int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  const float at = (static_cast<float>(result) + 0.5f) * scale - 0.5f;
  const float floor = std::floor(at);
  const auto lower = static_cast<int64_t>(floor);
  return {.lower = std::clamp<int64_t>(lower, 0, from - 1),
          .upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, from - 1),
          .weight = at - floor};
}

template <class T>
typename Resizer<T>::Taps Resizer<T>::TapsOf(int64_t result, int64_t from, int64_t to,
                                             float* weights) const {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double center = (static_cast<double>(result) + 0.5) * scale;
  weights[0] = 1;
  if (options_.interpolation == Interpolation::kNearest) {
    return {
        .first = std::min(from - 1, static_cast<int64_t>(center)), .count = 1, .weights = weights};
  }
  const bool area = options_.interpolation == Interpolation::kArea;
  const double reach = area ? scale / 2 : ReachOf(options_, scale);
  const double low = std::max(0.0, center - reach);
  const double high = std::min(static_cast<double>(from), center + reach);
  Taps taps{.first = static_cast<int64_t>(low), .count = 0, .weights = weights};
  taps.first = std::min(taps.first, from - 1);
  const auto end = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(high)), taps.first + 1, from);
  taps.count = end - taps.first;
  const double stretch = options_.antialias ? std::max(scale, 1.0) : 1.0;
  double sum = 0;
  for (int64_t i = 0; i < taps.count; ++i) {
    const auto left = static_cast<double>(taps.first + i);
    double weight = 0;
    if (area)
      weight = std::max(0.0, std::min(high, left + 1) - std::max(low, left));
    else if (options_.interpolation == Interpolation::kBicubic)
      weight = Cubic((left + 0.5 - center) / stretch);
    else
      weight = Triangle((left + 0.5 - center) / stretch);
    weights[i] = static_cast<float>(weight);
    sum += weight;
  }
  for (int64_t i = 0; i < taps.count; ++i) weights[i] = static_cast<float>(weights[i] / sum);
  return taps;
}

template <class T>
void Resizer<T>::PlanColumns(bool mirror) {
  if (blends_)
    between_ = arena_->AllocateArray<Between>(size_.width);
  else
    taps_ = arena_->AllocateArray<Taps>(size_.width);
  const int64_t most = blends_ ? 0 : MostTaps(options_, image_.width, size_.width);
  auto* weights = arena_->AllocateArray<float>(most * size_.width);
  for (int64_t x = 0; x < size_.width; ++x, weights += most) {
    const int64_t to = mirror ? size_.width - 1 - x : x;
    if (blends_) {
      between_[to] = BetweenOf(x, image_.width, size_.width);
      between_[to].lower *= image_.channels;
      between_[to].upper *= image_.channels;
    } else {
      taps_[to] = TapsOf(x, image_.width, size_.width, weights);
      taps_[to].first *= image_.channels;
    }
  }
}

template <class T>
void Resizer<T>::BlendRows(int64_t y) {
  const Between rows = BetweenOf(y, image_.height, size_.height);
  const T* const lower = image_.first + rows.lower * image_.row_values;
  const T* const upper = image_.first + rows.upper * image_.row_values;
  const float weight = rows.weight;
  const int64_t count = image_.width * image_.channels;
  float* const row = row_;
  for (int64_t n = 0; n < count; ++n) {
    const auto from = static_cast<float>(lower[n]);
    row[n] = from + (static_cast<float>(upper[n]) - from) * weight;
  }
}

template <class T>
template <int kChannels>
void Resizer<T>::BlendColumns(T* out) const {
  const int64_t channels = kChannels > 0 ? kChannels : image_.channels;
  int64_t x = 0;
  if constexpr (kChannels == 3) {
    // Each store also writes a fourth value, which the next pixel overwrites.
    for (; x + 1 < size_.width; ++x, out += channels) {
      const Float4 lower = Load4(row_ + between_[x].lower);
      const Float4 upper = Load4(row_ + between_[x].upper);
      Store4(lower + (upper - lower) * between_[x].weight, out);
    }
  }
  for (; x < size_.width; ++x, out += channels) {
    const float* lower = row_ + between_[x].lower;
    const float* upper = row_ + between_[x].upper;
    const float weight = between_[x].weight;
    for (int64_t c = 0; c < channels; ++c)
      Store(lower[c] + (upper[c] - lower[c]) * weight, out + c);
  }
}

template <class T>
void Resizer<T>::SumRows(int64_t y) {
  const Taps taps = TapsOf(y, image_.height, size_.height, row_weights_);
  const int64_t count = image_.width * image_.channels;
  float* const row = row_;
  for (int64_t i = 0; i < taps.count; ++i) {
    const T* const in = image_.first + (taps.first + i) * image_.row_values;
    const float weight = taps.weights[i];
    if (i == 0) {
      for (int64_t n = 0; n < count; ++n) row[n] = static_cast<float>(in[n]) * weight;
    } else {
      for (int64_t n = 0; n < count; ++n) row[n] += static_cast<float>(in[n]) * weight;
    }
  }
}

template <class T>
template <int kChannels>
void Resizer<T>::SumColumns(T* out) const {
  const int64_t channels = kChannels > 0 ? kChannels : image_.channels;
  int64_t x = 0;
  if constexpr (kChannels == 3) {
    for (; x + 1 < size_.width; ++x, out += channels) {  // as in BlendColumns
      const Taps& taps = taps_[x];
      const float* in = row_ + taps.first;
      Float4 sum = {};
      for (int64_t i = 0; i < taps.count; ++i, in += 3) sum += Load4(in) * taps.weights[i];
      Store4(sum, out);
    }
  }
  for (; x < size_.width; ++x, out += channels) {
    const Taps& taps = taps_[x];
    for (int64_t c = 0; c < channels; ++c) {
      const float* in = row_ + taps.first + c;
      float sum = 0;
      for (int64_t i = 0; i < taps.count; ++i, in += channels) sum += *in * taps.weights[i];
      Store(sum, out + c);
    }
  }
}

template <class T>
void Resizer<T>::Row(int64_t y, T* out) {
  if (blends_) {
    BlendRows(y);
    if (image_.channels == 3) return BlendColumns<3>(out);
    if (image_.channels == 1) return BlendColumns<1>(out);
    return BlendColumns<0>(out);
  }
  SumRows(y);
  if (image_.channels == 3) return SumColumns<3>(out);
  if (image_.channels == 1) return SumColumns<1>(out);
  SumColumns<0>(out);
}

template class Resizer<uint8_t>;
template class Resizer<float>;

}  // namespace penstock
