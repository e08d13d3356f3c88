// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/image_steps.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/random.h"

namespace penstock {
namespace {

constexpr double kMinAspect = 3.0 / 4.0;  // width to height
constexpr double kMaxAspect = 4.0 / 3.0;
constexpr int kAttempts = 10;

Region Middle(int64_t image_height, int64_t image_width, int64_t height, int64_t width) {
  return {(image_width - width) / 2, (image_height - height) / 2, width, height};
}

ImageSize SizeOfAttrs(const Attrs& attrs) {
  return {.height = Get<int64_t>(attrs, "height"), .width = Get<int64_t>(attrs, "width")};
}

absl::Status TooSmall(const ImageSize& image, const ImageSize& wanted) {
  return absl::InvalidArgumentError(absl::StrCat("an image of ", image.height, " x ", image.width,
                                                 " is too small for a crop of ", wanted.height,
                                                 " x ", wanted.width, "; Resize or PadTo first"));
}

}  // namespace

std::optional<DecodePlan> DecodePlanOf(const OpDef& op) {
  DecodePlan plan;
  if (op.op == "DecodeJpegImage")
    plan.format = ImageFormat::kJpeg;
  else if (op.op == "DecodePngImage")
    plan.format = ImageFormat::kPng;
  else if (op.op == "DecodeImage")
    plan.format = ImageFormat::kByContent;
  else
    return std::nullopt;
  plan.options.channels = static_cast<int>(Get<int64_t>(op.attrs, "channels"));
  if (Get<bool>(op.attrs, "upright")) plan.options.orientation = Orientation::kUpright;
  if (plan.format == ImageFormat::kPng)
    plan.options.dtype = Get<DType>(op.attrs, "dtype");
  else
    plan.options.scaling = static_cast<JpegScaling>(Get<int64_t>(op.attrs, "scaling"));
  return plan;
}

absl::StatusOr<Region> CropPlan::RegionIn(const ImageSize& image, const RandomKey& key) const {
  if (kind == Kind::kRandomArea) {
    return RandomRegion(KeyOfOp(key, random), image.height, image.width, min_area, max_area);
  }
  const int64_t below = image.height - size.height, beside = image.width - size.width;
  if (below < 0 || beside < 0) return TooSmall(image, size);
  if (kind == Kind::kCenter) return Middle(image.height, image.width, size.height, size.width);
  if (kind == Kind::kRandom) {
    const RandomKey own = KeyOfOp(key, random);
    return Region{RandomUpTo(own, 1, beside), RandomUpTo(own, 0, below), size.width, size.height};
  }
  if (top > below || left > beside) {
    return absl::InvalidArgumentError(
        absl::StrCat("a crop of ", size.height, " x ", size.width, " at row ", top, ", column ",
                     left, " extends outside an image of ", image.height, " x ", image.width));
  }
  return Region{left, top, size.width, size.height};
}

std::optional<CropPlan> CropPlanOf(const OpDef& op) {
  CropPlan plan;
  if (op.op == "Crop") {
    plan.kind = CropPlan::Kind::kAt;
    plan.top = Get<int64_t>(op.attrs, "top");
    plan.left = Get<int64_t>(op.attrs, "left");
  } else if (op.op == "CenterCrop") {
    plan.kind = CropPlan::Kind::kCenter;
  } else if (op.op == "RandomCrop") {
    plan.kind = CropPlan::Kind::kRandom;
    plan.random = Get<int64_t>(op.attrs, "random");
  } else if (op.op == "RandomResizedCrop") {
    plan.kind = CropPlan::Kind::kRandomArea;
    plan.min_area = Get<double>(op.attrs, "min_area");
    plan.max_area = Get<double>(op.attrs, "max_area");
    plan.random = Get<int64_t>(op.attrs, "random");
    return plan;
  } else {
    return std::nullopt;
  }
  plan.size = SizeOfAttrs(op.attrs);
  return plan;
}

ResizeOptions ResizeOptionsOf(const Attrs& attrs) {
  return {.interpolation = static_cast<Interpolation>(Get<int64_t>(attrs, "interpolation")),
          .antialias = Get<bool>(attrs, "antialias")};
}

std::optional<ResizePlan> ResizePlanOf(const OpDef& op) {
  if (op.op != "Resize" && op.op != "RandomResizedCrop") return std::nullopt;
  return ResizePlan{.size = SizeOfAttrs(op.attrs), .options = ResizeOptionsOf(op.attrs)};
}

bool FlipPlan::Flips(const RandomKey& key) const {
  return probability >= 1 || RandomMirror(KeyOfOp(key, random), probability);
}

std::optional<FlipPlan> FlipPlanOf(const OpDef& op) {
  if (op.op == "FlipLeftRight") return FlipPlan{};
  if (op.op == "FlipUpDown") return FlipPlan{.up_down = true};
  if (op.op != "RandomFlip" && op.op != "RandomFlipUpDown") return std::nullopt;
  return FlipPlan{.up_down = op.op == "RandomFlipUpDown",
                  .probability = Get<double>(op.attrs, "probability"),
                  .random = Get<int64_t>(op.attrs, "random")};
}

Normalization NormalizationOf(const Attrs& attrs) {
  return {Get<std::vector<double>>(attrs, "mean"), Get<std::vector<double>>(attrs, "std")};
}

Region RandomRegion(const RandomKey& key, int64_t image_height, int64_t image_width,
                    double min_area, double max_area) {
  const double area = static_cast<double>(image_height) * static_cast<double>(image_width);
  uint32_t draw = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt, draw += 4) {
    const double wanted = area * (min_area + (max_area - min_area) * RandomUnit(key, draw));
    const double low = std::log(kMinAspect), high = std::log(kMaxAspect);
    const double aspect = std::exp(low + (high - low) * RandomUnit(key, draw + 1));
    const int64_t width = std::llround(std::sqrt(wanted * aspect));
    const int64_t height = std::llround(std::sqrt(wanted / aspect));
    if (width < 1 || height < 1 || width > image_width || height > image_height) continue;
    return {RandomUpTo(key, draw + 2, image_width - width),
            RandomUpTo(key, draw + 3, image_height - height), width, height};
  }
  const double aspect = static_cast<double>(image_width) / static_cast<double>(image_height);
  int64_t width = image_width, height = image_height;
  if (aspect < kMinAspect) height = std::llround(static_cast<double>(width) / kMinAspect);
  if (aspect > kMaxAspect) width = std::llround(static_cast<double>(height) * kMaxAspect);
  return Middle(image_height, image_width, std::clamp<int64_t>(height, 1, image_height),
                std::clamp<int64_t>(width, 1, image_width));
}

bool RandomMirror(const RandomKey& key, double probability) {
  return RandomUnit(key, 0) < probability;
}

int64_t RandomUpTo(const RandomKey& key, uint32_t draw, int64_t most) {
  const auto drawn = static_cast<int64_t>(RandomUnit(key, draw) * static_cast<double>(most + 1));
  return std::min(drawn, most);
}

}  // namespace penstock
