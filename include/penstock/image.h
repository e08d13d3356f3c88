// SPDX-License-Identifier: Apache-2.0
// Operations on images, for lambdas over Expr. MapChain in map.h has the same operations as steps.
// docs/images.md states the convention that each operation follows.
//
// An image is [height, width, channels]. Operations that only move pixels take any dtype of fixed
// size. All other operations take uint8 (0 to 255) and float32 (0 to 1, where the range matters).
// Sizes are in pixels. An argument that does not fit is InvalidArgument. If the shape is known when
// the function is traced, the error comes then; otherwise it comes in place of the element.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/expr.h"

#pragma GCC visibility push(default)
namespace penstock {

// --- Decoding ----------------------------------------------------------------

enum class JpegScaling : uint8_t {
  kExact,  // decode in full resolution, then resize
  kDct,    // let the decoder scale by powers of two first: faster, not exact
};

// What happens to the camera's orientation, as stored in EXIF.
enum class Orientation : uint8_t {
  kAsStored,  // it is ignored, as by default in tf.io.decode_image and torchvision
  kUpright,   // the image is rotated and mirrored; crops are of the upright image
};

struct DecodeOptions {
  int channels = 3;  // 1: grey, 3: RGB; for PNG also 2 and 4: with alpha
  Orientation orientation = Orientation::kAsStored;
  JpegScaling scaling = JpegScaling::kExact;  // for JPEG that is resized
  DType dtype = kUInt8;                       // for PNG also kUInt16
};

// Decodes a file's contents to an image. InvalidArgument for bytes that are not such an image,
// DataLoss for an image that is cut short or damaged. The error names the file if the bytes come
// from ReadFile.
Expr DecodeJpegImage(const Expr& bytes, DecodeOptions options = {});
Expr DecodePngImage(const Expr& bytes, DecodeOptions options = {});
// Decodes JPEG or PNG, whichever the first bytes show, to 1 or 3 channels of uint8.
Expr DecodeImage(const Expr& bytes, DecodeOptions options = {});

// --- Sizes -------------------------------------------------------------------

enum class Interpolation : uint8_t {
  kNearest,   // for masks
  kBilinear,  // a triangle filter
  kBicubic,   // Keys' filter, a = -0.5
  kArea,      // the mean over the area that a result pixel covers
};

struct ResizeOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  // When shrinking, kBilinear and kBicubic use all pixels under a result pixel, not only its
  // neighbours.
  bool antialias = false;
};

enum class PadSide : uint8_t {
  kAround,  // the image is in the middle, or half a pixel above or to the left of it
  kAfter,   // the image is at the top left
};

struct PadOptions {
  double value = 0;  // for all channels, cast to the image's dtype
  PadSide side = PadSide::kAround;
};

// Resizes with half-pixel centres; uint8 is rounded to the nearest.
Expr Resize(const Expr& image, int64_t height, int64_t width, ResizeOptions options = {});
Expr Crop(const Expr& image, int64_t top, int64_t left, int64_t height, int64_t width);
Expr CenterCrop(const Expr& image, int64_t height, int64_t width);
Expr RandomCrop(const Expr& image, int64_t height, int64_t width);
// Crops a random region with min_area to max_area of the image's area and an aspect of 3/4 to 4/3,
// then resizes it.
Expr RandomResizedCrop(const Expr& image, int64_t height, int64_t width, double min_area = 0.08,
                       double max_area = 1.0, ResizeOptions options = {});
Expr PadTo(const Expr& image, int64_t height, int64_t width, PadOptions options = {});
Expr FlipLeftRight(const Expr& image);
Expr FlipUpDown(const Expr& image);
Expr RandomFlip(const Expr& image, double probability = 0.5);  // left to right
Expr RandomFlipUpDown(const Expr& image, double probability = 0.5);

// --- Colours: for 3 channels, like torchvision's functions of the same names ---

// Blends with black: multiplies values by `factor` and clips them to the range.
Expr AdjustBrightness(const Expr& image, double factor);
// Blends with the mean of the grey image.
Expr AdjustContrast(const Expr& image, double factor);
// Blends with the grey image.
Expr AdjustSaturation(const Expr& image, double factor);
// Rotates the hue by `delta` of the full circle, -0.5 to 0.5.
Expr AdjustHue(const Expr& image, double delta);

// For a member with value x, the factor is drawn from 1 - x to 1 + x (but not below 0); the hue is
// drawn from -x to x. 0 leaves the step out.
struct ColorJitterOptions {
  double brightness = 0, contrast = 0, saturation = 0;
  double hue = 0;  // up to 0.5
};
// Applies the steps above in a random order.
Expr ColorJitter(const Expr& image, ColorJitterOptions options);
// Makes the image grey, with the same number of channels.
Expr RandomGrayscale(const Expr& image, double probability = 0.1);
// Computes (x - mean) / std by channel, as float32. Does not divide by 255 first.
Expr Normalize(const Expr& image, std::vector<float> mean, std::vector<float> std);

}  // namespace penstock
#pragma GCC visibility pop
