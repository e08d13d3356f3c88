// SPDX-License-Identifier: Apache-2.0
// What all operations on images ask of their arguments.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/attr.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

inline constexpr int64_t kMaxSide = 65536;  // pixels

// [height, width, channels] as far as the spec knows them. InvalidArgument if
// it cannot be an image.
absl::StatusOr<Shape> ImageShape(const TensorSpec& spec);

// That of the image, with the attributes "height" and "width".
absl::StatusOr<Shape> TargetShape(const Attrs& attrs, const TensorSpec& image);

// The dtypes of operations that compute with pixels.
absl::Status CheckPixels(const TensorSpec& spec);
// Those of operations that move them.
absl::Status CheckFixedSize(const TensorSpec& spec);

// The attribute "probability".
absl::Status CheckProbability(const Attrs& attrs);

// An image of an element that is to be run.
absl::Status CheckNotEmpty(const Tensor& image);

}  // namespace penstock
