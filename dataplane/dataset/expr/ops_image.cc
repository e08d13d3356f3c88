// SPDX-License-Identifier: Apache-2.0
// Operations on images [height, width, channels], one by one. A chain of them
// behind DecodeJpegImage runs as one: jpeg_chain.cc.
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/expr/jpeg_decoder.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/random.h"
#include "dataplane/dataset/expr/resize.h"
#include "penstock/map.h"
#include "penstock/status.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

constexpr int64_t kMaxSide = 65536;  // pixels

absl::StatusOr<Shape> ImageShape(const TensorSpec& spec) {
  if (!spec.shape.has_rank()) return Shape({kUnknownDim, kUnknownDim, kUnknownDim});
  if (spec.shape.rank() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("argument 0 is ", spec.ToString(),
                                                   ", not an image [height, width, channels]"));
  }
  return spec.shape;
}

// The attributes height and width.
absl::StatusOr<Shape> TargetShape(const Attrs& attrs, const TensorSpec& image) {
  ASSIGN_OR_RETURN(const Shape shape, ImageShape(image));
  const int64_t height = Get<int64_t>(attrs, "height");
  const int64_t width = Get<int64_t>(attrs, "width");
  if (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide) {
    return absl::InvalidArgumentError(
        absl::StrCat("a size of ", height, " x ", width, "; sides are 1 to ", kMaxSide));
  }
  return Shape({height, width, shape.dim(2)});
}

absl::Status CheckPixels(const TensorSpec& spec, bool may_be_float) {
  if (spec.dtype == kUInt8 || (may_be_float && spec.dtype == kFloat32)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("argument 0 is ", Name(spec.dtype), "; it takes ",
                                                 may_be_float ? "uint8 or float32" : "uint8"));
}

absl::Status CheckNotEmpty(const Tensor& image) {
  if (image.rank() == 3 && image.element_count() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an image of ", image.ToString(0), "; it needs pixels in three dimensions"));
}

// --- DecodeJpegImage -----------------------------------------------------------

absl::StatusOr<Specs> InferDecodeJpeg(const Attrs& attrs, InputSpecs inputs) {
  if (inputs[0].dtype != kString || inputs[0].shape != Shape())
    return absl::InvalidArgumentError(
        absl::StrCat("argument 0 is ", inputs[0].ToString(), ", not a scalar string"));
  const int64_t channels = Get<int64_t>(attrs, "channels");
  if (channels != 1 && channels != 3)
    return absl::InvalidArgumentError(absl::StrCat("channels is ", channels, ", not 1 or 3"));
  const int64_t scaling = Get<int64_t>(attrs, "scaling");
  if (scaling < 0 || scaling > static_cast<int64_t>(JpegScaling::kDct))
    return absl::InvalidArgumentError(absl::StrCat("no scaling number ", scaling));
  return Specs{Dense(kUInt8, {kUnknownDim, kUnknownDim, channels})};
}

absl::StatusOr<Kernel> MakeDecodeJpeg(const OpDef& def, InputSpecs) {
  return Kernel([channels = Get<int64_t>(def.attrs, "channels")](OpRun& run) -> absl::Status {
    JpegDecoder& decoder = JpegDecoder::OfThisThread();
    ASSIGN_OR_RETURN(const JpegDecoder::Size size,
                     decoder.Open(run.input(0).string(), static_cast<int>(channels)));
    ASSIGN_OR_RETURN(uint8_t* const out,
                     run.PlaceAs<uint8_t>(0, {size.height, size.width, channels}));
    return decoder.ReadAll(out, run.arena());
  });
}

// --- Sizes -----------------------------------------------------------------------

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
  RETURN_IF_ERROR(CheckPixels(inputs[0], /*may_be_float=*/true));
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
  if (SizeOf(inputs[0].dtype) == 0) return absl::InvalidArgumentError("argument 0 is of strings");
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
  if (SizeOf(inputs[0].dtype) == 0) return absl::InvalidArgumentError("argument 0 is of strings");
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

// --- Normalize ---------------------------------------------------------------------

absl::StatusOr<Specs> InferNormalize(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckPixels(inputs[0], /*may_be_float=*/true));
  const auto& mean = Get<std::vector<double>>(attrs, "mean");
  const auto& std = Get<std::vector<double>>(attrs, "std");
  if (mean.empty() || mean.size() != std.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("mean has ", mean.size(), " channels and std ", std.size()));
  }
  for (double deviation : std)
    if (!(deviation > 0)) return absl::InvalidArgumentError(absl::StrCat("std is ", deviation));
  const Shape& shape = inputs[0].shape;
  const int64_t channels = static_cast<int64_t>(mean.size());
  if (shape.has_rank() && (shape.rank() == 0 || (shape.dim(shape.rank() - 1) != kUnknownDim &&
                                                 shape.dim(shape.rank() - 1) != channels))) {
    return absl::InvalidArgumentError(
        absl::StrCat("mean has ", channels, " channels for an image of ", inputs[0].ToString()));
  }
  return Specs{Dense(kFloat32, shape)};
}

template <class T>
Kernel NormalizeKernel(const Attrs& attrs) {
  const auto& mean = Get<std::vector<double>>(attrs, "mean");
  const auto& std = Get<std::vector<double>>(attrs, "std");
  return [mean = std::vector<float>(mean.begin(), mean.end()),
          std = std::vector<float>(std.begin(), std.end())](OpRun& run) -> absl::Status {
    const Tensor& image = run.input(0);
    const auto channels = static_cast<int64_t>(mean.size());
    if (image.rank() == 0 || image.dim(image.rank() - 1) != channels) {
      return absl::InvalidArgumentError(
          absl::StrCat("mean has ", channels, " channels for ", image.ToString(0)));
    }
    ASSIGN_OR_RETURN(float* const out, run.PlaceAs<float>(0, image.dims()));
    const T* in = static_cast<const T*>(image.raw());
    const int64_t count = image.element_count();
    for (int64_t n = 0; n < count; n += channels)
      for (int64_t c = 0; c < channels; ++c)
        out[n + c] = (static_cast<float>(in[n + c]) - mean[c]) / std[c];
    return absl::OkStatus();
  };
}

absl::StatusOr<Kernel> MakeNormalize(const OpDef& def, InputSpecs inputs) {
  return inputs[0].dtype == kUInt8 ? NormalizeKernel<uint8_t>(def.attrs)
                                   : NormalizeKernel<float>(def.attrs);
}

}  // namespace

std::vector<OpRow> ImageOps() {
  constexpr size_t kInt = kAttrIndex<int64_t>;
  constexpr size_t kDouble = kAttrIndex<double>;
  constexpr size_t kDoubles = kAttrIndex<std::vector<double>>;
  return {
      {.name = "DecodeJpegImage",
       .attrs = {{"channels", kInt}, {"scaling", kInt}},
       .infer = InferDecodeJpeg,
       .make = MakeDecodeJpeg},
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
      {.name = "Normalize",
       .attrs = {{"mean", kDoubles}, {"std", kDoubles}},
       .infer = InferNormalize,
       .make = MakeNormalize},
  };
}

Expr DecodeJpegImage(const Expr& bytes, int channels) {
  return Apply1(
      "DecodeJpegImage",
      {{"channels", int64_t{channels}}, {"scaling", static_cast<int64_t>(JpegScaling::kExact)}},
      {bytes});
}
Expr Resize(const Expr& image, int64_t height, int64_t width) {
  return Apply1("Resize", {{"height", height}, {"width", width}}, {image});
}
Expr CenterCrop(const Expr& image, int64_t height, int64_t width) {
  return Apply1("CenterCrop", {{"height", height}, {"width", width}}, {image});
}
Expr RandomResizedCrop(const Expr& image, int64_t height, int64_t width, double min_area,
                       double max_area) {
  return Apply1(
      "RandomResizedCrop",
      {{"height", height}, {"width", width}, {"min_area", min_area}, {"max_area", max_area}},
      {image});
}
Expr RandomFlip(const Expr& image, double probability) {
  return Apply1("RandomFlip", {{"probability", probability}}, {image});
}
Expr Normalize(const Expr& image, std::vector<float> mean, std::vector<float> std) {
  return Apply1("Normalize",
                {{"mean", std::vector<double>(mean.begin(), mean.end())},
                 {"std", std::vector<double>(std.begin(), std.end())}},
                {image});
}

}  // namespace penstock
