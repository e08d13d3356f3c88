// SPDX-License-Identifier: Apache-2.0
// Parts of JPEG images as pixels, by libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/arena.h"
#include "dataplane/dataset/expr/pixels.h"

namespace penstock {

// Decodes one image after the other. One thread only. Greyscale, YCbCr, RGB,
// CMYK and YCCK (inverted, if Adobe's marker is there) come as RGB or grey.
// EXIF orientation is not applied.
class JpegDecoder {
 public:
  static JpegDecoder& OfThisThread();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `bytes` stay in use until the image has been read.
  // `channels` is 1 or 3. InvalidArgument if this is no JPEG image or it has
  // more than kMaxPixels, DataLoss if it has no end.
  absl::StatusOr<ImageSize> Open(std::string_view bytes, int channels);

  // The size when every 8 pixels become `eighths` (1, 2, 4 or 8) in decoding.
  ImageSize ScaledSize(int eighths);

  // Reads one region (of the scaled image), and as little around it as makes
  // its pixels those of the whole image. The pixels lie in `arena`. Once per
  // Open(). DataLoss with libjpeg's message for damaged data.
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
