// SPDX-License-Identifier: Apache-2.0
// How a camera was held, as EXIF notes it, and what makes its image upright.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/dataset/expr/pixels.h"

namespace penstock {

// From upright to stored: pixel (x, y) of the upright image is mirrored within
// it, then x and y change places.
struct Turn {
  bool mirror_x = false, mirror_y = false;
  bool transpose = false;

  bool IsNothing() const { return !mirror_x && !mirror_y && !transpose; }
};

// The turn that the tag 0x0112 of an EXIF block ("II*" or "MM*" first) asks for;
// none if the block has no such tag, or nonsense in it (EXIF 2.32, 4.6.4).
Turn TurnOfExif(std::string_view tiff);
// The same of a JPEG file's APP1 segment.
Turn TurnOfJpeg(std::string_view file);

// Where a region of the upright image of this size lies in the stored one.
Region StoredRegion(const Region& upright, const ImageSize& size, const Turn& turn);

// Writes the pixels of a region to `out` without gaps, upright. `size` is
// that of the result.
void CopyUpright(const Pixels& stored, const Turn& turn, const ImageSize& size, size_t pixel_bytes,
                 uint8_t* out);

}  // namespace penstock
