// SPDX-License-Identifier: Apache-2.0
// Operations that move the pixels of images, one by one. A chain of them behind
// a decoder runs as one: image_chain.cc.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/image_checks.h"
#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/random.h"
#include "dataplane/dataset/expr/resize.h"
#include "penstock/image.h"
#include "penstock/status.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

template <class T>
ImageView<T> ViewOf(const Tensor& image) {
  return {.first = static_cast<const T*>(image.raw()),
          .height = image.dim(0),
          .width = image.dim(1),
          .channels = image.dim(2),
          .row_values = image.dim(1) * image.dim(2)};
}

template <class T>
ImageView<T> Part(const ImageView<T>& image, const Region& region) {
  return {.first = image.first + region.y * image.row_values + region.x * image.channels,
          .height = region.height,
          .width = region.width,
          .channels = image.channels,
          .row_values = image.row_values};
}

template <class T>
absl::Status ResizeTo(OpRun& run, const ImageView<T>& image, int64_t height, int64_t width) {
  ASSIGN_OR_RETURN(T* const out, run.PlaceAs<T>(0, {height, width, image.channels}));
  ResizeBilinear(image, height, width, /*mirror=*/false, run.arena(), out);
  return absl::OkStatus();
}

absl::StatusOr<Specs> InferResize(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckPixels(inputs[0]));
  ASSIGN_OR_RETURN(Shape shape, TargetShape(attrs, inputs[0]));
  return Specs{Dense(inputs[0].dtype, std::move(shape))};
}

template <class T>
Kernel ResizeKernel(int64_t height, int64_t width) {
  return [height, width](OpRun& run) -> absl::Status {
    RETURN_IF_ERROR(CheckNotEmpty(run.input(0)));
    return ResizeTo(run, ViewOf<T>(run.input(0)), height, width);
  };
}

absl::StatusOr<Kernel> MakeResize(const OpDef& def, InputSpecs inputs) {
  const int64_t height = Get<int64_t>(def.attrs, "height");
  const int64_t width = Get<int64_t>(def.attrs, "width");
  return inputs[0].dtype == kUInt8 ? ResizeKernel<uint8_t>(height, width)
                                   : ResizeKernel<float>(height, width);
}

absl::StatusOr<Specs> InferCenterCrop(const Attrs& attrs, InputSpecs inputs) {
  ASSIGN_OR_RETURN(Shape shape, TargetShape(attrs, inputs[0]));
  RETURN_IF_ERROR(CheckFixedSize(inputs[0]));
  ASSIGN_OR_RETURN(const Shape image, ImageShape(inputs[0]));
  const auto side = [](int64_t dim) { return dim == kUnknownDim ? kMaxSide : dim; };
  RETURN_IF_ERROR(
      CenterRegion(side(image.dim(0)), side(image.dim(1)), shape.dim(0), shape.dim(1)).status());
  return Specs{Dense(inputs[0].dtype, std::move(shape))};
}

absl::StatusOr<Kernel> MakeCenterCrop(const OpDef& def, InputSpecs inputs) {
  return Kernel([height = Get<int64_t>(def.attrs, "height"),
                 width = Get<int64_t>(def.attrs, "width"),
                 value_bytes = SizeOf(inputs[0].dtype)](OpRun& run) -> absl::Status {
    const Tensor& image = run.input(0);
    RETURN_IF_ERROR(CheckNotEmpty(image));
    ASSIGN_OR_RETURN(const Region region, CenterRegion(image.dim(0), image.dim(1), height, width));
    ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, {height, width, image.dim(2)}));
    const size_t pixel = image.dim(2) * value_bytes;
    const auto* in = static_cast<const std::byte*>(image.raw());
    for (int64_t y = 0; y < height; ++y) {
      std::memcpy(out.data() + y * width * pixel,
                  in + ((region.y + y) * image.dim(1) + region.x) * pixel, width * pixel);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Specs> InferRandomResizedCrop(const Attrs& attrs, InputSpecs inputs) {
  const double min_area = Get<double>(attrs, "min_area");
  const double max_area = Get<double>(attrs, "max_area");
  if (!(min_area > 0 && min_area <= max_area && max_area <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("areas from ", min_area, " to ", max_area,
                                                   "; they are parts above 0, up to 1"));
  }
  return InferResize(attrs, inputs);
}

absl::StatusOr<Kernel> MakeRandomResizedCrop(const OpDef& def, InputSpecs inputs) {
  const auto make = [&]<class T>() {
    return Kernel([height = Get<int64_t>(def.attrs, "height"),
                   width = Get<int64_t>(def.attrs, "width"),
                   min_area = Get<double>(def.attrs, "min_area"),
                   max_area = Get<double>(def.attrs, "max_area"),
                   number = Get<int64_t>(def.attrs, "random")](OpRun& run) -> absl::Status {
      const Tensor& image = run.input(0);
      RETURN_IF_ERROR(CheckNotEmpty(image));
      const Region region = RandomRegion(KeyOfOp(run.random(), number), image.dim(0), image.dim(1),
                                         min_area, max_area);
      return ResizeTo(run, Part(ViewOf<T>(image), region), height, width);
    });
  };
  return inputs[0].dtype == kUInt8 ? make.template operator()<uint8_t>()
                                   : make.template operator()<float>();
}

// --- RandomFlip --------------------------------------------------------------------

absl::StatusOr<Specs> InferRandomFlip(const Attrs& attrs, InputSpecs inputs) {
  const double probability = Get<double>(attrs, "probability");
  if (!(probability >= 0 && probability <= 1))
    return absl::InvalidArgumentError(absl::StrCat("probability is ", probability));
  RETURN_IF_ERROR(CheckFixedSize(inputs[0]));
  ASSIGN_OR_RETURN(Shape shape, ImageShape(inputs[0]));
  return Specs{Dense(inputs[0].dtype, std::move(shape))};
}

absl::StatusOr<Kernel> MakeRandomFlip(const OpDef& def, InputSpecs inputs) {
  return Kernel([probability = Get<double>(def.attrs, "probability"),
                 number = Get<int64_t>(def.attrs, "random"),
                 value_bytes = SizeOf(inputs[0].dtype)](OpRun& run) -> absl::Status {
    const Tensor& image = run.input(0);
    if (image.rank() != 3) return CheckNotEmpty(image);
    if (!RandomMirror(KeyOfOp(run.random(), number), probability)) return run.View(0, image);
    ASSIGN_OR_RETURN(const absl::Span<std::byte> out, run.Place(0, image.dims()));
    const size_t pixel = image.dim(2) * value_bytes;
    const int64_t width = image.dim(1);
    if (out.empty()) return absl::OkStatus();
    const auto* in = static_cast<const std::byte*>(image.raw());
    for (int64_t y = 0; y < image.dim(0); ++y)
      for (int64_t x = 0; x < width; ++x)
        std::memcpy(out.data() + (y * width + x) * pixel, in + (y * width + width - 1 - x) * pixel,
                    pixel);
    return absl::OkStatus();
  });
}

}  // namespace

std::vector<OpRow> ImageOps() {
  constexpr size_t kInt = kAttrIndex<int64_t>;
  constexpr size_t kDouble = kAttrIndex<double>;
  return {
      {.name = "Resize",
       .attrs = {{"height", kInt}, {"width", kInt}},
       .infer = InferResize,
       .make = MakeResize},
      {.name = "CenterCrop",
       .attrs = {{"height", kInt}, {"width", kInt}},
       .infer = InferCenterCrop,
       .make = MakeCenterCrop},
      {.name = "RandomResizedCrop",
       .attrs = {{"height", kInt},
                 {"width", kInt},
                 {"min_area", kDouble},
                 {"max_area", kDouble},
                 {"random", kInt}},
       .infer = InferRandomResizedCrop,
       .make = MakeRandomResizedCrop,
       .random = true},
      {.name = "RandomFlip",
       .attrs = {{"probability", kDouble}, {"random", kInt}},
       .infer = InferRandomFlip,
       .make = MakeRandomFlip,
       .random = true},
  };
}

Expr Resize(const Expr& image, int64_t height, int64_t width, ResizeOptions options) {
  if (options.interpolation != Interpolation::kBilinear || options.antialias)
    return Mistake(absl::UnimplementedError("Resize: bilinear without antialias alone"));
  return Apply1("Resize", {{"height", height}, {"width", width}}, {image});
}
Expr CenterCrop(const Expr& image, int64_t height, int64_t width) {
  return Apply1("CenterCrop", {{"height", height}, {"width", width}}, {image});
}
Expr RandomResizedCrop(const Expr& image, int64_t height, int64_t width, double min_area,
                       double max_area, ResizeOptions options) {
  if (options.interpolation != Interpolation::kBilinear || options.antialias)
    return Mistake(absl::UnimplementedError("RandomResizedCrop: bilinear without antialias alone"));
  return Apply1(
      "RandomResizedCrop",
      {{"height", height}, {"width", width}, {"min_area", min_area}, {"max_area", max_area}},
      {image});
}
Expr RandomFlip(const Expr& image, double probability) {
  return Apply1("RandomFlip", {{"probability", probability}}, {image});
}

}  // namespace penstock
