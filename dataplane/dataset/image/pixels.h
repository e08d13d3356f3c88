// SPDX-License-Identifier: Apache-2.0
// Sizes, regions and colours of images, for decoders and their users.
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

// The grey value of a colour, weighted as in ITU-R BT.601: the same as JPEG's luma.
template <class T>
T Luma(T red, T green, T blue) {
  return static_cast<T>((299 * uint32_t{red} + 587 * uint32_t{green} + 114 * uint32_t{blue} + 500) /
                        1000);
}

}  // namespace penstock
