// SPDX-License-Identifier: Apache-2.0
// Decodes parts of JPEG images into pixels, with libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "dataplane/dataset/image/pixels.h"
#include "dataplane/memory/arena.h"

namespace penstock {

// Decodes one image after another. One thread only. Greyscale, YCbCr, RGB, CMYK and YCCK (the last
// two inverted if the file has Adobe's marker) become RGB or grey. EXIF orientation is not applied.
class JpegDecoder {
 public:
  static JpegDecoder& OfThisThread();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `bytes` must stay valid until the image is read. `channels` is 1 or 3.
  // InvalidArgument if this is not a JPEG image or has more than kMaxPixels; DataLoss if its end
  // marker is missing.
  absl::StatusOr<ImageSize> Open(std::string_view bytes, int channels);

  // Returns the size of the image if it is decoded at `eighths` eighths of its full size. `eighths`
  // is 1, 2, 4 or 8.
  ImageSize ScaledSize(int eighths);

  // Reads one region of the scaled image, and as few pixels around the region as are needed to give
  // the region the same pixels as if the whole image were read. The pixels are in `arena`. Called
  // once per Open(). DataLoss with libjpeg's message for damaged data.
  absl::StatusOr<Pixels> Read(const Region& region, int eighths, Arena& arena);

  // Reads the whole image into `out`, row after row without gaps.
  absl::Status ReadAll(uint8_t* out, Arena& arena);

 private:
  struct Impl;
  JpegDecoder();
  bool ReadRows(const Region& wanted, int64_t row_bytes, uint8_t* out, uint8_t* unwanted);
  absl::Status Failure() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
