// SPDX-License-Identifier: Apache-2.0
// Resizes with half-pixel centres, as TensorFlow's tf.image.resize (version 2) does:
// docs/images.md.
#pragma once

#include <cstdint>

#include "dataplane/dataset/image/pixels.h"
#include "dataplane/memory/arena.h"
#include "penstock/image.h"

namespace penstock {

// An image of `channels` values per pixel; rows are `row_values` values apart.
template <class T>
struct ImageView {
  const T* first = nullptr;
  int64_t height = 0, width = 0, channels = 0;
  int64_t row_values = 0;
};

// Makes the rows of one resized image, of uint8 (rounded to the nearest) or float. Its tables are
// in the arena.
template <class T>
class Resizer {
 public:
  // `mirror` exchanges left and right. REQUIRES: no dimension is 0.
  Resizer(const ImageView<T>& image, const ImageSize& size, const ResizeOptions& options,
          bool mirror, Arena& arena);

  // Writes row `y`, without gaps. Fastest if rows are written from top to bottom.
  void Row(int64_t y, T* out);

 private:
  // The source of a result's value along one axis: lower + (upper - lower) * weight.
  struct Between {
    int64_t lower = 0, upper = 0;
    float weight = 0;
  };
  // An alternative source: the sum of `count` values from `first` on, each times its weight.
  struct Taps {
    int64_t first = 0, count = 0;
    const float* weights = nullptr;
  };
  static Between BetweenOf(int64_t result, int64_t from, int64_t to);
  Taps TapsOf(int64_t result, int64_t from, int64_t to, float* weights) const;
  void PlanColumns(bool mirror);
  void BlendRows(int64_t y);
  template <int kChannels>
  void BlendColumns(T* out) const;
  void SumRows(int64_t y);
  template <int kChannels>
  void SumColumns(T* out) const;

  const ImageView<T> image_;
  const ImageSize size_;
  const ResizeOptions options_;
  const bool blends_;  // each result is between two values
  Arena* const arena_;
  Between* between_ = nullptr;  // for each column
  Taps* taps_ = nullptr;
  float* row_weights_ = nullptr;
  float* row_ = nullptr;  // one row of the result's height and the image's width
};

extern template class Resizer<uint8_t>;
extern template class Resizer<float>;

}  // namespace penstock
