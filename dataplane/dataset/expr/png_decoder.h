// SPDX-License-Identifier: Apache-2.0
// Parts of PNG images as pixels, by libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/arena.h"
#include "dataplane/dataset/expr/orientation.h"
#include "dataplane/dataset/expr/pixels.h"
#include "penstock/dtype.h"

namespace penstock {

// Decodes one image after the other. One thread only. Every colour type and
// depth comes as wished: grey as RGB and back (by luma), palettes looked up,
// fewer than 8 bits spread over 8, 16 bits cut to their upper 8 or 8 repeated
// in 16. Alpha that is not wished is dropped, what is not there is opaque.
// Gamma and colour profiles are not applied.
class PngDecoder {
 public:
  static PngDecoder& OfThisThread();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  static bool IsPng(std::string_view bytes);

  // Reads all that stands before the pixels. `bytes` stay in use until the
  // image has been read, and so does memory of `arena`. `channels` is 1 to 4,
  // `dtype` kUInt8 or kUInt16. InvalidArgument if this is no PNG image or it
  // has more than kMaxPixels, DataLoss if it is damaged.
  absl::StatusOr<ImageSize> Open(std::string_view bytes, int channels, DType dtype, Arena& arena);

  // As its EXIF block says.
  Turn turn() const;

  // Reads one region; no row below it is looked at, if the image is not
  // interlaced. The pixels lie in the arena. Once per Open(). DataLoss with
  // libpng's message for damaged data.
  absl::StatusOr<Pixels> Read(const Region& region);

 private:
  struct Impl;
  PngDecoder();
  bool Begin();
  bool ReadRows(const Region& region, uint8_t* out);
  absl::Status Failure() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
