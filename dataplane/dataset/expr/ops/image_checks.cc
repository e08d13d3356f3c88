// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/ops/image_checks.h"

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {

absl::StatusOr<Shape> ImageShape(const TensorSpec& spec) {
  if (!spec.shape.has_rank()) return Shape({kUnknownDim, kUnknownDim, kUnknownDim});
  if (spec.shape.rank() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("argument 0 is ", spec.ToString(),
                                                   ", not an image [height, width, channels]"));
  }
  return spec.shape;
}

absl::StatusOr<Shape> TargetShape(const Attrs& attrs, const TensorSpec& image) {
  ASSIGN_OR_RETURN(const Shape shape, ImageShape(image));
  const int64_t height = Get<int64_t>(attrs, "height");
  const int64_t width = Get<int64_t>(attrs, "width");
  if (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide) {
    return absl::InvalidArgumentError(
        absl::StrCat("the size is ", height, " x ", width, "; each side must be 1 to ", kMaxSide));
  }
  return Shape({height, width, shape.dim(2)});
}

absl::Status CheckPixels(const TensorSpec& spec) {
  if (spec.dtype == kUInt8 || spec.dtype == kFloat32) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("argument 0 is ", Name(spec.dtype), "; it must be uint8 or float32"));
}

absl::Status CheckFixedSize(const TensorSpec& spec) {
  if (SizeOf(spec.dtype) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("argument 0 must not be string");
}

absl::Status CheckProbability(const Attrs& attrs) {
  const double probability = Get<double>(attrs, "probability");
  if (probability >= 0 && probability <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("probability must be 0 to 1, not ", probability));
}

absl::Status CheckNotEmpty(const Tensor& image) {
  if (image.rank() == 3 && image.element_count() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the image is ", image.ToString(0), "; it must have three dimensions, none of size 0"));
}

}  // namespace penstock
