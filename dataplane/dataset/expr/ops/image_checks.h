// SPDX-License-Identifier: Apache-2.0
// Checks of arguments, shared by all image operations.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/attr.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

inline constexpr int64_t kMaxSide = 65536;  // pixels

// Returns [height, width, channels] as far as the spec gives them. InvalidArgument if no tensor of
// this spec can be an image.
absl::StatusOr<Shape> ImageShape(const TensorSpec& spec);

// Returns the shape of `image` with the attributes "height" and "width" as its size.
absl::StatusOr<Shape> TargetShape(const Attrs& attrs, const TensorSpec& image);

// InvalidArgument unless an operation can compute with pixels of this dtype.
absl::Status CheckPixels(const TensorSpec& spec);
// InvalidArgument unless an operation can copy pixels of this dtype.
absl::Status CheckFixedSize(const TensorSpec& spec);

// Checks the attribute "probability".
absl::Status CheckProbability(const Attrs& attrs);

// InvalidArgument unless `image` has three dimensions, none of size 0.
absl::Status CheckNotEmpty(const Tensor& image);

}  // namespace penstock
