// SPDX-License-Identifier: Apache-2.0
// Operations on images, for lambdas over Expr; MapChain in map.h has them as
// steps. docs/images.md says which convention each follows.
//
// An image is [height, width, channels]. What only moves pixels takes any
// dtype of fixed size; the others take uint8 (0 to 255) and float32, and where
// they must know the range of float32 it is 0 to 1. Sizes are in pixels. An
// argument that does not fit is InvalidArgument, when the function is traced
// where the shape is known then, else with the element.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/expr.h"

namespace penstock {

// --- Decoding ----------------------------------------------------------------

enum class JpegScaling : uint8_t {
  kExact,  // decode in full resolution, then resize
  kDct,    // let the decoder scale by powers of two first: faster, not exact
};

// What becomes of EXIF's note of how the camera was held.
enum class Orientation : uint8_t {
  kAsStored,  // nothing, as tf.io.decode_image and torchvision do unless asked
  kUpright,   // the image is turned and mirrored; crops are of the upright image
};

struct DecodeOptions {
  int channels = 3;  // 1: grey, 3: RGB; of PNG also 2 and 4: with alpha
  Orientation orientation = Orientation::kAsStored;
  JpegScaling scaling = JpegScaling::kExact;  // of JPEG that is resized
  DType dtype = kUInt8;                       // of PNG also kUInt16
};

// A file's contents as an image. Bytes that are no such image are
// InvalidArgument, one that is cut short or damaged DataLoss. The error names
// the file if the bytes come from ReadFile.
Expr DecodeJpegImage(const Expr& bytes, DecodeOptions options = {});
Expr DecodePngImage(const Expr& bytes, DecodeOptions options = {});
// JPEG or PNG, by its first bytes; 1 or 3 channels of uint8.
Expr DecodeImage(const Expr& bytes, DecodeOptions options = {});

// --- Sizes -------------------------------------------------------------------

enum class Interpolation : uint8_t {
  kNearest,   // for masks
  kBilinear,  // a triangle
  kBicubic,   // Keys, a = -0.5
  kArea,      // the mean over the area of a result's pixel
};

struct ResizeOptions {
  Interpolation interpolation = Interpolation::kBilinear;
  // When shrinking, kBilinear and kBicubic take all pixels beneath a result's,
  // not its neighbours alone.
  bool antialias = false;
};

enum class PadSide : uint8_t {
  kAround,  // the image in the middle, rounded up and to the left
  kAfter,   // the image above and to the left
};

struct PadOptions {
  double value = 0;  // of all channels, cast to the image's dtype
  PadSide side = PadSide::kAround;
};

// Half-pixel centres; uint8 is rounded to the nearest.
Expr Resize(const Expr& image, int64_t height, int64_t width, ResizeOptions options = {});
Expr Crop(const Expr& image, int64_t top, int64_t left, int64_t height, int64_t width);
Expr CenterCrop(const Expr& image, int64_t height, int64_t width);
Expr RandomCrop(const Expr& image, int64_t height, int64_t width);
// A region of between these parts of the area and an aspect of 3/4 to 4/3.
Expr RandomResizedCrop(const Expr& image, int64_t height, int64_t width, double min_area = 0.08,
                       double max_area = 1.0, ResizeOptions options = {});
Expr PadTo(const Expr& image, int64_t height, int64_t width, PadOptions options = {});
Expr FlipLeftRight(const Expr& image);
Expr FlipUpDown(const Expr& image);
Expr RandomFlip(const Expr& image, double probability = 0.5);  // left to right
Expr RandomFlipUpDown(const Expr& image, double probability = 0.5);

// --- Colours: of 3 channels, as torchvision's functions of these names ---------

// Blends with black: values times `factor`, cut at the range's ends.
Expr AdjustBrightness(const Expr& image, double factor);
// Blends with the mean of the image in grey.
Expr AdjustContrast(const Expr& image, double factor);
// Blends with the image in grey.
Expr AdjustSaturation(const Expr& image, double factor);
// Turns the hue by `delta` of the whole circle, -0.5 to 0.5.
Expr AdjustHue(const Expr& image, double delta);

// Factors are drawn from 1 - x to 1 + x (not below 0), hue from -x to x; 0
// leaves a step out.
struct ColorJitterOptions {
  double brightness = 0, contrast = 0, saturation = 0;
  double hue = 0;  // up to 0.5
};
// The steps above in a random order.
Expr ColorJitter(const Expr& image, ColorJitterOptions options);
// Grey, in as many channels.
Expr RandomGrayscale(const Expr& image, double probability = 0.1);
// (x - mean) / std by channel, as float32; it does not divide by 255 first.
Expr Normalize(const Expr& image, std::vector<float> mean, std::vector<float> std);

}  // namespace penstock
