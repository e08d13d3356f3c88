// SPDX-License-Identifier: Apache-2.0
// The orientation of a camera, as EXIF stores it, and how to make an image upright.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/dataset/image/pixels.h"

namespace penstock {

// How the stored image is made from the upright one: each pixel (x, y) is mirrored (mirror_x,
// mirror_y), then x and y change places (transpose).
struct Turn {
  bool mirror_x = false, mirror_y = false;
  bool transpose = false;

  bool IsNothing() const { return !mirror_x && !mirror_y && !transpose; }
};

// Returns the turn that the tag 0x0112 of an EXIF block ("II*" or "MM*" first) asks for; none if
// the tag is missing or invalid (EXIF 2.32, 4.6.4).
Turn TurnOfExif(std::string_view tiff);
// The same as TurnOfExif(), for the APP1 segment of a JPEG file.
Turn TurnOfJpeg(std::string_view file);

// Returns the region of the stored image that a region of the upright image becomes. `size` is the
// size of the upright image.
Region StoredRegion(const Region& upright, const ImageSize& size, const Turn& turn);

// Writes the pixels of a region to `out` without gaps, upright. `size` is the size of the result.
void CopyUpright(const Pixels& stored, const Turn& turn, const ImageSize& size, size_t pixel_bytes,
                 uint8_t* out);

}  // namespace penstock
