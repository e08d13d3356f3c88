// SPDX-License-Identifier: Apache-2.0
// Bilinear resizing with half-pixel centres, as TensorFlow's tf.image.resize
// (version 2, without antialias) and torchvision's (antialias off) do it.
#pragma once

#include <cstdint>

#include "dataplane/dataset/expr/arena.h"

namespace penstock {

// An image of `channels` values a pixel; rows `row_values` values apart.
template <class T>
struct ImageView {
  const T* first = nullptr;
  int64_t height = 0, width = 0, channels = 0;
  int64_t row_values = 0;
};

// Writes height × width pixels to `out` without gaps. Values of uint8 are
// rounded to the nearest. `mirror` exchanges left and right.
// REQUIRES: no dimension is 0.
void ResizeBilinear(const ImageView<uint8_t>& image, int64_t height, int64_t width, bool mirror,
                    Arena& arena, uint8_t* out);
void ResizeBilinear(const ImageView<float>& image, int64_t height, int64_t width, bool mirror,
                    Arena& arena, float* out);

}  // namespace penstock
