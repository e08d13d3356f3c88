// SPDX-License-Identifier: Apache-2.0
// Sizes and regions of images, for decoders and their users.
#pragma once

#include <cstdint>

namespace penstock {

struct ImageSize {
  int64_t height = 0, width = 0;  // pixels
};

// A rectangle of an image, in pixels.
struct Region {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

// Rows of pixels, the channels of a pixel side by side.
struct Pixels {
  const uint8_t* first = nullptr;
  int64_t row_bytes = 0;  // from one row to the next
};

// Larger images are refused: a small file can declare any size in its header.
inline constexpr int64_t kMaxPixels = int64_t{1} << 28;

}  // namespace penstock
