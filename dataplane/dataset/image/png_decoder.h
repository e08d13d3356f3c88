// SPDX-License-Identifier: Apache-2.0
// Decodes parts of PNG images into pixels, with libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/image/orientation.h"
#include "dataplane/dataset/image/pixels.h"
#include "dataplane/memory/arena.h"
#include "penstock/dtype.h"

namespace penstock {

// Decodes one image after another. One thread only. Converts every colour type and depth to the
// requested one. Grey becomes RGB, and RGB becomes grey by its luma. Palettes are looked up. Values
// of fewer than 8 bits are scaled to 8 bits. If uint8 is requested, only the upper 8 of 16 bits are
// kept; if uint16 is requested, 8 bits are repeated. Alpha that is not requested is dropped;
// missing alpha is opaque. Gamma and colour profiles are not applied.
class PngDecoder {
 public:
  static PngDecoder& OfThisThread();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  static bool IsPng(std::string_view bytes);

  // Reads the part before the pixels. `bytes` and the memory of `arena` must stay valid until the
  // image is read. `channels` is 1 to 4, `dtype` kUInt8 or kUInt16. InvalidArgument if this is not
  // a PNG image or has more than kMaxPixels; DataLoss if it is damaged.
  absl::StatusOr<ImageSize> Open(std::string_view bytes, int channels, DType dtype, Arena& arena);

  // Returns the turn from the image's EXIF block.
  Turn turn() const;

  // Reads one region. Reads no row below the region if the image is not interlaced. The pixels are
  // in the arena. Called once per Open(). DataLoss with libpng's message for damaged data.
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
