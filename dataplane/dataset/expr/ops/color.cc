// SPDX-License-Identifier: Apache-2.0
// Operations on the values of pixels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/ops/image_checks.h"
#include "dataplane/dataset/expr/random.h"
#include "dataplane/dataset/image/color_steps.h"
#include "include/status_macros.h"
#include "penstock/image.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

constexpr double kMostHue = 0.5;     // fraction of the hue circle
constexpr double kMostFactor = 1e6;  // a larger factor destroys the image, and floats overflow

// Checks that the image has three channels.
absl::StatusOr<Specs> InferColours(InputSpecs inputs) {
  RETURN_IF_ERROR(CheckPixels(inputs[0]));
  ASSIGN_OR_RETURN(Shape shape, ImageShape(inputs[0]));
  if (shape.dim(2) != 3 && shape.dim(2) != kUnknownDim) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument 0 is ", inputs[0].ToString(), "; a colour image has 3 channels"));
  }
  return Specs{Dense(inputs[0].dtype, {shape.dim(0), shape.dim(1), 3})};
}

absl::Status CheckFactor(absl::string_view name, double value) {
  if (value >= 0 && value <= kMostFactor) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; it must be 0 to ", kMostFactor));
}

// Copies the image to the result and runs `steps(pixels, rgb)` on the copy.
template <class T, class F>
absl::Status RunInPlace(OpRun& run, const F& steps) {
  const Tensor& image = run.input(0);
  if (image.rank() != 3 || image.dim(2) != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("the image is ", image.ToString(0), "; expected [height, width, 3]"));
  }
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, image.dims()));
  if (image.element_count() == 0) return absl::OkStatus();
  std::memcpy(out, image.raw(), image.byte_count());
  steps(image.dim(0) * image.dim(1), out);
  return absl::OkStatus();
}

// Returns a kernel that runs `steps`, which accepts pixels of any dtype, in place.
template <class F>
Kernel InPlace(DType dtype, F steps) {
  if (dtype == kUInt8)
    return [steps](OpRun& run) {
      return RunInPlace<uint8_t>(run, [&](int64_t n, uint8_t* rgb) { steps(run, n, rgb); });
    };
  return [steps](OpRun& run) {
    return RunInPlace<float>(run, [&](int64_t n, float* rgb) { steps(run, n, rgb); });
  };
}

// --- One step ----------------------------------------------------------------

absl::StatusOr<Specs> InferFactor(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckFactor("the factor", Get<double>(attrs, "factor")));
  return InferColours(inputs);
}

absl::StatusOr<Specs> InferDelta(const Attrs& attrs, InputSpecs inputs) {
  const double delta = Get<double>(attrs, "delta");
  if (!(std::fabs(delta) <= kMostHue)) {
    return absl::InvalidArgumentError(
        absl::StrCat("delta is ", delta, "; it must be -0.5 to 0.5, a fraction of the hue circle"));
  }
  return InferColours(inputs);
}

template <ColorStep kStep>
absl::StatusOr<Kernel> MakeStep(const OpDef& def, InputSpecs inputs) {
  const char* const name = kStep == ColorStep::kHue ? "delta" : "factor";
  const auto amount = static_cast<float>(Get<double>(def.attrs, name));
  return InPlace(inputs[0].dtype, [amount](OpRun&, int64_t pixels, auto* rgb) {
    RunColorStep(kStep, amount, pixels, rgb);
  });
}

// --- ColorJitter -------------------------------------------------------------

struct JitterStep {
  const char* attr;
  ColorStep step;
};
constexpr JitterStep kJitterSteps[] = {{"brightness", ColorStep::kBrightness},
                                       {"contrast", ColorStep::kContrast},
                                       {"saturation", ColorStep::kSaturation},
                                       {"hue", ColorStep::kHue}};
constexpr int kJitters = std::size(kJitterSteps);

absl::StatusOr<Specs> InferJitter(const Attrs& attrs, InputSpecs inputs) {
  for (const JitterStep& step : kJitterSteps)
    RETURN_IF_ERROR(CheckFactor(step.attr, Get<double>(attrs, step.attr)));
  const double hue = Get<double>(attrs, "hue");
  if (hue > kMostHue)
    return absl::InvalidArgumentError(absl::StrCat("hue must be 0 to 0.5, not ", hue));
  return InferColours(inputs);
}

// Draw n gives the amount of step n; the draws after these give the order of the steps.
template <class T>
void Jitter(const double (&ranges)[kJitters], const RandomKey& key, int64_t pixels, T* rgb) {
  int order[kJitters] = {0, 1, 2, 3};
  for (int last = kJitters - 1; last > 0; --last)
    std::swap(order[last], order[RandomUpTo(key, static_cast<uint32_t>(kJitters + last), last)]);
  for (int n : order) {
    const double range = ranges[n];
    if (range == 0) continue;
    const ColorStep step = kJitterSteps[n].step;
    const double low = step == ColorStep::kHue ? -range : std::max(0.0, 1 - range);
    const double high = step == ColorStep::kHue ? range : 1 + range;
    const double amount = low + (high - low) * RandomUnit(key, static_cast<uint32_t>(n));
    RunColorStep(step, static_cast<float>(amount), pixels, rgb);
  }
}

absl::StatusOr<Kernel> MakeJitter(const OpDef& def, InputSpecs inputs) {
  struct Ranges {
    double of[kJitters];
  } ranges;
  for (int n = 0; n < kJitters; ++n) ranges.of[n] = Get<double>(def.attrs, kJitterSteps[n].attr);
  return InPlace(inputs[0].dtype, [ranges, number = Get<int64_t>(def.attrs, "random")](
                                      OpRun& run, int64_t pixels, auto* rgb) {
    Jitter(ranges.of, KeyOfOp(run.random(), number), pixels, rgb);
  });
}

// --- RandomGrayscale ---------------------------------------------------------

absl::StatusOr<Specs> InferGrayscale(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckProbability(attrs));
  return InferColours(inputs);
}

absl::StatusOr<Kernel> MakeGrayscale(const OpDef& def, InputSpecs inputs) {
  return InPlace(inputs[0].dtype, [probability = Get<double>(def.attrs, "probability"),
                                   number = Get<int64_t>(def.attrs, "random")](
                                      OpRun& run, int64_t pixels, auto* rgb) {
    if (RandomMirror(KeyOfOp(run.random(), number), probability)) MakeGrey(pixels, rgb);
  });
}

// --- Normalize ---------------------------------------------------------------

absl::StatusOr<Specs> InferNormalize(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckPixels(inputs[0]));
  const auto& mean = Get<std::vector<double>>(attrs, "mean");
  const auto& std = Get<std::vector<double>>(attrs, "std");
  if (mean.empty() || mean.size() != std.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("mean has ", mean.size(), " channels, but std has ", std.size()));
  }
  for (double deviation : std)
    if (!(deviation > 0))
      return absl::InvalidArgumentError(absl::StrCat("std must be above 0, not ", deviation));
  const Shape& shape = inputs[0].shape;
  const int64_t channels = static_cast<int64_t>(mean.size());
  if (shape.has_rank() && (shape.rank() == 0 || (shape.dim(shape.rank() - 1) != kUnknownDim &&
                                                 shape.dim(shape.rank() - 1) != channels))) {
    return absl::InvalidArgumentError(
        absl::StrCat("mean has ", channels, " channels, but the image is ", inputs[0].ToString()));
  }
  return Specs{Dense(kFloat32, shape)};
}

template <class T>
absl::Status RunNormalize(const Normalization& normalization, OpRun& run) {
  const Tensor& image = run.input(0);
  const int64_t channels = normalization.channels();
  if (image.rank() == 0 || image.dim(image.rank() - 1) != channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("mean has ", channels, " channels, but the image is ", image.ToString(0)));
  }
  ASSIGN_OR_RETURN(float* const out, run.PlaceAs<float>(0, image.dims()));
  normalization.Run(static_cast<const T*>(image.raw()), image.element_count() / channels, out);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeNormalize(const OpDef& def, InputSpecs inputs) {
  const Normalization normalization = NormalizationOf(def.attrs);
  if (inputs[0].dtype == kUInt8)
    return Kernel([=](OpRun& run) { return RunNormalize<uint8_t>(normalization, run); });
  return Kernel([=](OpRun& run) { return RunNormalize<float>(normalization, run); });
}

}  // namespace

std::vector<OpRow> ColorOps() {
  constexpr size_t kInt = kAttrIndex<int64_t>;
  constexpr size_t kDouble = kAttrIndex<double>;
  constexpr size_t kDoubles = kAttrIndex<std::vector<double>>;
  return {
      {.name = "AdjustBrightness",
       .attrs = {{"factor", kDouble}},
       .infer = InferFactor,
       .make = MakeStep<ColorStep::kBrightness>},
      {.name = "AdjustContrast",
       .attrs = {{"factor", kDouble}},
       .infer = InferFactor,
       .make = MakeStep<ColorStep::kContrast>},
      {.name = "AdjustSaturation",
       .attrs = {{"factor", kDouble}},
       .infer = InferFactor,
       .make = MakeStep<ColorStep::kSaturation>},
      {.name = "AdjustHue",
       .attrs = {{"delta", kDouble}},
       .infer = InferDelta,
       .make = MakeStep<ColorStep::kHue>},
      {.name = "ColorJitter",
       .attrs = {{"brightness", kDouble},
                 {"contrast", kDouble},
                 {"saturation", kDouble},
                 {"hue", kDouble},
                 {"random", kInt}},
       .infer = InferJitter,
       .make = MakeJitter,
       .random = true},
      {.name = "RandomGrayscale",
       .attrs = {{"probability", kDouble}, {"random", kInt}},
       .infer = InferGrayscale,
       .make = MakeGrayscale,
       .random = true},
      {.name = "Normalize",
       .attrs = {{"mean", kDoubles}, {"std", kDoubles}},
       .infer = InferNormalize,
       .make = MakeNormalize},
  };
}

Expr AdjustBrightness(const Expr& image, double factor) {
  return Apply1("AdjustBrightness", {{"factor", factor}}, {image});
}
Expr AdjustContrast(const Expr& image, double factor) {
  return Apply1("AdjustContrast", {{"factor", factor}}, {image});
}
Expr AdjustSaturation(const Expr& image, double factor) {
  return Apply1("AdjustSaturation", {{"factor", factor}}, {image});
}
Expr AdjustHue(const Expr& image, double delta) {
  return Apply1("AdjustHue", {{"delta", delta}}, {image});
}
Expr ColorJitter(const Expr& image, ColorJitterOptions options) {
  return Apply1("ColorJitter",
                {{"brightness", options.brightness},
                 {"contrast", options.contrast},
                 {"saturation", options.saturation},
                 {"hue", options.hue}},
                {image});
}
Expr RandomGrayscale(const Expr& image, double probability) {
  return Apply1("RandomGrayscale", {{"probability", probability}}, {image});
}
Expr Normalize(const Expr& image, std::vector<float> mean, std::vector<float> std) {
  return Apply1("Normalize",
                {{"mean", std::vector<double>(mean.begin(), mean.end())},
                 {"std", std::vector<double>(std.begin(), std.end())}},
                {image});
}

}  // namespace penstock
