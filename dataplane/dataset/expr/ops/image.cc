// SPDX-License-Identifier: Apache-2.0
// Operations that resize, crop, pad and flip images, where each operation runs as a separate step.
// A chain of such operations after a decoder runs as one step: image_chain.cc.
#include "penstock/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/dtype_dispatch.h"
#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/ops/image_checks.h"
#include "dataplane/dataset/image/resize.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

ImageSize SizeOfImage(const Tensor& image) {
  return {.height = image.dim(0), .width = image.dim(1)};
}

int64_t SideOr(int64_t dim, int64_t unknown) {
  return dim == kUnknownDim ? unknown : dim;
}

// --- Resize ------------------------------------------------------------------

absl::StatusOr<Specs> InferResize(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckPixels(inputs[0]));
  const int64_t interpolation = Get<int64_t>(attrs, "interpolation");
  if (interpolation < 0 || interpolation > static_cast<int64_t>(Interpolation::kArea))
    return absl::InvalidArgumentError(absl::StrCat("unknown interpolation number ", interpolation));
  ASSIGN_OR_RETURN(Shape shape, TargetShape(attrs, inputs[0]));
  return Specs{Dense(inputs[0].dtype, std::move(shape))};
}

// Resizes a region of the image.
template <class T>
absl::Status ResizeRegion(OpRun& run, const Region& region, const ResizePlan& plan) {
  const Tensor& image = run.input(0);
  const int64_t channels = image.dim(2), row_values = image.dim(1) * channels;
  const ImageView<T> view{
      .first = static_cast<const T*>(image.raw()) + region.y * row_values + region.x * channels,
      .height = region.height,
      .width = region.width,
      .channels = channels,
      .row_values = row_values};
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, {plan.size.height, plan.size.width, channels}));
  Resizer<T> resizer(view, plan.size, plan.options, /*mirror=*/false, run.arena());
  for (int64_t y = 0; y < plan.size.height; ++y)
    resizer.Row(y, out + y * plan.size.width * channels);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeResize(const OpDef& def, InputSpecs inputs) {
  return Kernel([plan = *ResizePlanOf(def), crop = CropPlanOf(def),
                 dtype = inputs[0].dtype](OpRun& run) -> absl::Status {
    const Tensor& image = run.input(0);
    RETURN_IF_ERROR(CheckNotEmpty(image));
    Region region{0, 0, image.dim(1), image.dim(0)};
    if (crop) {
      ASSIGN_OR_RETURN(region, crop->RegionIn(SizeOfImage(image), run.random()));
    }
    return dtype == kUInt8 ? ResizeRegion<uint8_t>(run, region, plan)
                           : ResizeRegion<float>(run, region, plan);
  });
}

absl::StatusOr<Specs> InferRandomResizedCrop(const Attrs& attrs, InputSpecs inputs) {
  const double min_area = Get<double>(attrs, "min_area");
  const double max_area = Get<double>(attrs, "max_area");
  if (!(min_area > 0 && min_area <= max_area && max_area <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the areas are ", min_area, " to ", max_area,
                     "; they must be fractions above 0 and up to 1, the smaller one first"));
  }
  return InferResize(attrs, inputs);
}

// --- Crops -------------------------------------------------------------------

absl::StatusOr<Specs> InferCrop(const Attrs& attrs, InputSpecs inputs) {
  ASSIGN_OR_RETURN(Shape shape, TargetShape(attrs, inputs[0]));
  RETURN_IF_ERROR(CheckFixedSize(inputs[0]));
  ASSIGN_OR_RETURN(const Shape image, ImageShape(inputs[0]));
  CropPlan plan{.size = {.height = shape.dim(0), .width = shape.dim(1)}};
  if (attrs.contains("top")) {
    plan.top = Get<int64_t>(attrs, "top");
    plan.left = Get<int64_t>(attrs, "left");
    if (plan.top < 0 || plan.left < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the crop is at row ", plan.top, ", column ",
                                                     plan.left, "; both must be 0 or more"));
    }
  }
  const ImageSize largest{.height = SideOr(image.dim(0), kMaxSide),
                          .width = SideOr(image.dim(1), kMaxSide)};
  RETURN_IF_ERROR(plan.RegionIn(largest, {}).status());
  return Specs{Dense(inputs[0].dtype, std::move(shape))};
}

absl::StatusOr<Kernel> MakeCrop(const OpDef& def, InputSpecs inputs) {
  return Kernel([plan = *CropPlanOf(def),
                 value_bytes = SizeOf(inputs[0].dtype)](OpRun& run) -> absl::Status {
    const Tensor& image = run.input(0);
    RETURN_IF_ERROR(CheckNotEmpty(image));
    ASSIGN_OR_RETURN(const Region region, plan.RegionIn(SizeOfImage(image), run.random()));
    ASSIGN_OR_RETURN(const absl::Span<std::byte> out,
                     run.Place(0, {region.height, region.width, image.dim(2)}));
    const size_t pixel = image.dim(2) * value_bytes;
    const auto* in = static_cast<const std::byte*>(image.raw());
    for (int64_t y = 0; y < region.height; ++y) {
      std::memcpy(out.data() + y * region.width * pixel,
                  in + ((region.y + y) * image.dim(1) + region.x) * pixel, region.width * pixel);
    }
    return absl::OkStatus();
  });
}

// --- PadTo -------------------------------------------------------------------

template <class T>
bool HoldsExactly(double value) {
  if constexpr (kIsInteger<T>) {
    return value == std::trunc(value) &&
           value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
           value < std::ldexp(1.0, std::numeric_limits<T>::digits);
  } else {
    return true;
  }
}

absl::Status CheckFits(const ImageSize& image, const ImageSize& target) {
  if (image.height <= target.height && image.width <= target.width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("an image of ", image.height, " x ", image.width,
                                                 " is larger than ", target.height, " x ",
                                                 target.width, "; Crop or Resize first"));
}

absl::StatusOr<Specs> InferPadTo(const Attrs& attrs, InputSpecs inputs) {
  const DType dtype = inputs[0].dtype;
  RETURN_IF_ERROR(CheckTakes(Takes::kReal, dtype, 0));
  const double value = Get<double>(attrs, "value");
  if (!ForReal(dtype, [&]<class T>() { return HoldsExactly<T>(value); }))
    return absl::InvalidArgumentError(
        absl::StrCat("value is ", value, ", which does not fit ", Name(dtype)));
  const int64_t side = Get<int64_t>(attrs, "side");
  if (side < 0 || side > static_cast<int64_t>(PadSide::kAfter))
    return absl::InvalidArgumentError(absl::StrCat("unknown side number ", side));
  ASSIGN_OR_RETURN(Shape shape, TargetShape(attrs, inputs[0]));
  ASSIGN_OR_RETURN(const Shape image, ImageShape(inputs[0]));
  RETURN_IF_ERROR(CheckFits({.height = SideOr(image.dim(0), 0), .width = SideOr(image.dim(1), 0)},
                            {.height = shape.dim(0), .width = shape.dim(1)}));
  return Specs{Dense(dtype, std::move(shape))};
}

template <class T>
absl::Status RunPadTo(OpRun& run, const ImageSize& target, PadSide side, T value) {
  const Tensor& image = run.input(0);
  if (image.rank() != 3) return CheckNotEmpty(image);
  const ImageSize size = SizeOfImage(image);
  RETURN_IF_ERROR(CheckFits(size, target));
  const int64_t channels = image.dim(2);
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, {target.height, target.width, channels}));
  std::fill_n(out, target.height * target.width * channels, value);
  if (image.element_count() == 0) return absl::OkStatus();
  const bool around = side == PadSide::kAround;
  const int64_t top = around ? (target.height - size.height) / 2 : 0;
  const int64_t left = around ? (target.width - size.width) / 2 : 0;
  const T* in = static_cast<const T*>(image.raw());
  const int64_t row = size.width * channels;
  for (int64_t y = 0; y < size.height; ++y, in += row)
    std::memcpy(out + ((top + y) * target.width + left) * channels, in, row * sizeof(T));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakePadTo(const OpDef& def, InputSpecs inputs) {
  const ImageSize target{.height = Get<int64_t>(def.attrs, "height"),
                         .width = Get<int64_t>(def.attrs, "width")};
  const auto side = static_cast<PadSide>(Get<int64_t>(def.attrs, "side"));
  const double number = Get<double>(def.attrs, "value");
  return ForReal(inputs[0].dtype, [&]<class T>() {
    const T value = static_cast<T>(static_cast<ComputedIn<T>>(number));
    return Kernel([=](OpRun& run) { return RunPadTo<T>(run, target, side, value); });
  });
}

// --- Flips -------------------------------------------------------------------

absl::StatusOr<Specs> InferFlip(const Attrs& attrs, InputSpecs inputs) {
  if (attrs.contains("probability")) RETURN_IF_ERROR(CheckProbability(attrs));
  RETURN_IF_ERROR(CheckFixedSize(inputs[0]));
  ASSIGN_OR_RETURN(Shape shape, ImageShape(inputs[0]));
  return Specs{Dense(inputs[0].dtype, std::move(shape))};
}

void MirrorRow(const std::byte* in, int64_t width, size_t pixel, std::byte* out) {
  for (int64_t x = 0; x < width; ++x)
    std::memcpy(out + x * pixel, in + (width - 1 - x) * pixel, pixel);
}

absl::StatusOr<Kernel> MakeFlip(const OpDef& def, InputSpecs inputs) {
  return Kernel(
      [plan = *FlipPlanOf(def), value_bytes = SizeOf(inputs[0].dtype)](OpRun& run) -> absl::Status {
        const Tensor& image = run.input(0);
        if (image.rank() != 3) return CheckNotEmpty(image);
        if (!plan.Flips(run.random())) return run.View(0, image);
        ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, image.dims()));
        if (out.empty()) return absl::OkStatus();
        const size_t pixel = image.dim(2) * value_bytes;
        const int64_t height = image.dim(0), width = image.dim(1);
        const size_t row = width * pixel;
        const auto* in = static_cast<const std::byte*>(image.raw());
        for (int64_t y = 0; y < height; ++y) {
          if (plan.up_down)
            std::memcpy(out.data() + y * row, in + (height - 1 - y) * row, row);
          else
            MirrorRow(in + y * row, width, pixel, out.data() + y * row);
        }
        return absl::OkStatus();
      });
}

}  // namespace

std::vector<OpRow> ImageOps() {
  const AttrRow height{"height", kAttrIndex<int64_t>}, width{"width", kAttrIndex<int64_t>};
  const AttrRow interpolation{"interpolation", kAttrIndex<int64_t>};
  const AttrRow antialias{"antialias", kAttrIndex<bool>};
  const AttrRow min_area{"min_area", kAttrIndex<double>}, max_area{"max_area", kAttrIndex<double>};
  const AttrRow probability{"probability", kAttrIndex<double>};
  const AttrRow random{"random", kAttrIndex<int64_t>};
  return {
      {.name = "Resize",
       .attrs = {height, width, interpolation, antialias},
       .infer = InferResize,
       .make = MakeResize},
      {.name = "RandomResizedCrop",
       .attrs = {height, width, interpolation, antialias, min_area, max_area, random},
       .infer = InferRandomResizedCrop,
       .make = MakeResize,
       .random = true},
      {.name = "Crop",
       .attrs = {{"top", kAttrIndex<int64_t>}, {"left", kAttrIndex<int64_t>}, height, width},
       .infer = InferCrop,
       .make = MakeCrop},
      {.name = "CenterCrop", .attrs = {height, width}, .infer = InferCrop, .make = MakeCrop},
      {.name = "RandomCrop",
       .attrs = {height, width, random},
       .infer = InferCrop,
       .make = MakeCrop,
       .random = true},
      {.name = "PadTo",
       .attrs = {height, width, {"value", kAttrIndex<double>}, {"side", kAttrIndex<int64_t>}},
       .infer = InferPadTo,
       .make = MakePadTo},
      {.name = "FlipLeftRight", .attrs = {}, .infer = InferFlip, .make = MakeFlip},
      {.name = "FlipUpDown", .attrs = {}, .infer = InferFlip, .make = MakeFlip},
      {.name = "RandomFlip",
       .attrs = {probability, random},
       .infer = InferFlip,
       .make = MakeFlip,
       .random = true},
      {.name = "RandomFlipUpDown",
       .attrs = {probability, random},
       .infer = InferFlip,
       .make = MakeFlip,
       .random = true},
  };
}

namespace {

Attrs ResizeAttrs(int64_t height, int64_t width, const ResizeOptions& options) {
  return {{"height", height},
          {"width", width},
          {"interpolation", static_cast<int64_t>(options.interpolation)},
          {"antialias", options.antialias}};
}

}  // namespace

Expr Resize(const Expr& image, int64_t height, int64_t width, ResizeOptions options) {
  return Apply1("Resize", ResizeAttrs(height, width, options), {image});
}
Expr RandomResizedCrop(const Expr& image, int64_t height, int64_t width, double min_area,
                       double max_area, ResizeOptions options) {
  Attrs attrs = ResizeAttrs(height, width, options);
  attrs["min_area"] = min_area;
  attrs["max_area"] = max_area;
  return Apply1("RandomResizedCrop", std::move(attrs), {image});
}
Expr Crop(const Expr& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  return Apply1("Crop", {{"top", top}, {"left", left}, {"height", height}, {"width", width}},
                {image});
}
Expr CenterCrop(const Expr& image, int64_t height, int64_t width) {
  return Apply1("CenterCrop", {{"height", height}, {"width", width}}, {image});
}
Expr RandomCrop(const Expr& image, int64_t height, int64_t width) {
  return Apply1("RandomCrop", {{"height", height}, {"width", width}}, {image});
}
Expr PadTo(const Expr& image, int64_t height, int64_t width, PadOptions options) {
  return Apply1("PadTo",
                {{"height", height},
                 {"width", width},
                 {"value", options.value},
                 {"side", static_cast<int64_t>(options.side)}},
                {image});
}
Expr FlipLeftRight(const Expr& image) {
  return Apply1("FlipLeftRight", {}, {image});
}
Expr FlipUpDown(const Expr& image) {
  return Apply1("FlipUpDown", {}, {image});
}
Expr RandomFlip(const Expr& image, double probability) {
  return Apply1("RandomFlip", {{"probability", probability}}, {image});
}
Expr RandomFlipUpDown(const Expr& image, double probability) {
  return Apply1("RandomFlipUpDown", {{"probability", probability}}, {image});
}

}  // namespace penstock
