// SPDX-License-Identifier: Apache-2.0
// What image operations decide, apart from the pixels they move: the same
// whether they run one by one or in one pass over a JPEG's region.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/expr/jpeg_decoder.h"
#include "dataplane/dataset/function.h"

namespace penstock {

// The middle of an image, rounded up and to the left. InvalidArgument if the
// image is smaller.
absl::StatusOr<Region> CenterRegion(int64_t image_height, int64_t image_width, int64_t height,
                                    int64_t width);

// A region of between `min_area` and `max_area` of the image and an aspect of
// 3/4 to 4/3 (logarithmically uniform); after ten misses the largest middle of
// an aspect in these bounds. As torchvision's RandomResizedCrop.
Region RandomRegion(const RandomKey& key, int64_t image_height, int64_t image_width,
                    double min_area, double max_area);

bool RandomMirror(const RandomKey& key, double probability);

}  // namespace penstock
