// SPDX-License-Identifier: Apache-2.0
// Decodes one image file of any supported format, upright on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/image/jpeg_decoder.h"
#include "dataplane/dataset/image/orientation.h"
#include "dataplane/dataset/image/pixels.h"
#include "dataplane/dataset/image/png_decoder.h"
#include "dataplane/memory/arena.h"
#include "penstock/image.h"

namespace penstock {

enum class ImageFormat : uint8_t { kJpeg, kPng, kByContent };

struct DecodePlan {
  ImageFormat format = ImageFormat::kByContent;
  DecodeOptions options;
};

// Uses the thread's decoders, so a thread can use only one ImageDecoder at a time.
class ImageDecoder {
 public:
  // Reads the part before the pixels. `bytes` and `arena` must outlive this. Errors are those of
  // JpegDecoder and PngDecoder.
  static absl::StatusOr<ImageDecoder> Open(std::string_view bytes, const DecodePlan& plan,
                                           Arena& arena);

  const ImageSize& size() const { return size_; }

  struct Part {
    Pixels pixels;
    ImageSize size;
  };
  // Reads one region, once. With JpegScaling::kDct the region may be returned at a half, a quarter
  // or an eighth of its size, though not smaller than `wanted`. The result includes every pixel
  // that the region touches.
  absl::StatusOr<Part> Read(const Region& region, const ImageSize& wanted);
  // Reads the whole image into `out` without gaps.
  absl::Status ReadAll(uint8_t* out);

 private:
  ImageDecoder(const DecodePlan& plan, Arena& arena) : options_(plan.options), arena_(&arena) {}
  absl::StatusOr<Pixels> ReadStored(const Region& region, int eighths);

  DecodeOptions options_;
  Arena* arena_;
  bool is_png_ = false;
  Turn turn_;
  ImageSize size_;  // upright
};

}  // namespace penstock
