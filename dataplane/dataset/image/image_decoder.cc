// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/image/image_decoder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "include/status_macros.h"

namespace penstock {
namespace {

// Returns the smallest scale, in eighths, at which the region is still at least as large as the
// result.
int EighthsFor(const Region& region, const ImageSize& wanted) {
  for (int eighths : {1, 2, 4}) {
    if (region.height * eighths >= wanted.height * 8 && region.width * eighths >= wanted.width * 8)
      return eighths;
  }
  return 8;
}

// Returns the region of an image scaled to `size` that contains every pixel touched by `region`.
Region Scaled(const Region& region, int eighths, const ImageSize& size) {
  const int64_t x = region.x * eighths / 8;
  const int64_t y = region.y * eighths / 8;
  const int64_t right = std::min(size.width, ((region.x + region.width) * eighths + 7) / 8);
  const int64_t bottom = std::min(size.height, ((region.y + region.height) * eighths + 7) / 8);
  return {x, y, right - x, bottom - y};
}

ImageSize Turned(const ImageSize& size, const Turn& turn) {
  return turn.transpose ? ImageSize{.height = size.width, .width = size.height} : size;
}

}  // namespace

absl::StatusOr<ImageDecoder> ImageDecoder::Open(std::string_view bytes, const DecodePlan& plan,
                                                Arena& arena) {
  ImageDecoder decoder(plan, arena);
  const bool upright = plan.options.orientation == Orientation::kUpright;
  decoder.is_png_ = plan.format == ImageFormat::kPng ||
                    (plan.format == ImageFormat::kByContent && PngDecoder::IsPng(bytes));
  ImageSize stored;
  if (decoder.is_png_) {
    PngDecoder& png = PngDecoder::OfThisThread();
    ASSIGN_OR_RETURN(stored, png.Open(bytes, plan.options.channels, plan.options.dtype, arena));
    if (upright) decoder.turn_ = png.turn();
  } else {
    if (plan.format == ImageFormat::kByContent && !bytes.starts_with("\xFF\xD8"))
      return absl::InvalidArgumentError(
          "neither a JPEG nor a PNG image: its first bytes do not match");
    ASSIGN_OR_RETURN(stored, JpegDecoder::OfThisThread().Open(bytes, plan.options.channels));
    if (upright) decoder.turn_ = TurnOfJpeg(bytes);
  }
  decoder.size_ = Turned(stored, decoder.turn_);
  return decoder;
}

absl::StatusOr<Pixels> ImageDecoder::ReadStored(const Region& region, int eighths) {
  if (is_png_) return PngDecoder::OfThisThread().Read(region);
  return JpegDecoder::OfThisThread().Read(region, eighths, *arena_);
}

absl::StatusOr<ImageDecoder::Part> ImageDecoder::Read(const Region& region,
                                                      const ImageSize& wanted) {
  Region stored = StoredRegion(region, size_, turn_);
  int eighths = 8;
  if (!is_png_ && options_.scaling == JpegScaling::kDct) {
    eighths = EighthsFor(stored, Turned(wanted, turn_));
    stored = Scaled(stored, eighths, JpegDecoder::OfThisThread().ScaledSize(eighths));
  }
  Part part;
  part.size = Turned({.height = stored.height, .width = stored.width}, turn_);
  ASSIGN_OR_RETURN(part.pixels, ReadStored(stored, eighths));
  if (turn_.IsNothing()) return part;
  const auto pixel_bytes = options_.channels * SizeOf(options_.dtype);
  const int64_t row_bytes = part.size.width * static_cast<int64_t>(pixel_bytes);
  auto* upright = reinterpret_cast<uint8_t*>(arena_->Allocate(part.size.height * row_bytes));
  CopyUpright(part.pixels, turn_, part.size, pixel_bytes, upright);
  part.pixels = {upright, row_bytes};
  return part;
}

absl::Status ImageDecoder::ReadAll(uint8_t* out) {
  if (!is_png_ && turn_.IsNothing()) return JpegDecoder::OfThisThread().ReadAll(out, *arena_);
  const ImageSize stored = Turned(size_, turn_);
  ASSIGN_OR_RETURN(const Pixels pixels, ReadStored({0, 0, stored.width, stored.height}, 8));
  CopyUpright(pixels, turn_, size_, options_.channels * SizeOf(options_.dtype), out);
  return absl::OkStatus();
}

}  // namespace penstock
