// SPDX-License-Identifier: Apache-2.0
// Operations on the values of pixels.
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/image_checks.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "penstock/image.h"
#include "penstock/status.h"

namespace penstock {
namespace {

using Specs = std::vector<TensorSpec>;

absl::StatusOr<Specs> InferNormalize(const Attrs& attrs, InputSpecs inputs) {
  RETURN_IF_ERROR(CheckPixels(inputs[0]));
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

std::vector<OpRow> ColorOps() {
  constexpr size_t kDoubles = kAttrIndex<std::vector<double>>;
  return {
      {.name = "Normalize",
       .attrs = {{"mean", kDoubles}, {"std", kDoubles}},
       .infer = InferNormalize,
       .make = MakeNormalize},
  };
}

Expr Normalize(const Expr& image, std::vector<float> mean, std::vector<float> std) {
  return Apply1("Normalize",
                {{"mean", std::vector<double>(mean.begin(), mean.end())},
                 {"std", std::vector<double>(std.begin(), std.end())}},
                {image});
}

}  // namespace penstock
