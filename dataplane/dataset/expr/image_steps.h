// SPDX-License-Identifier: Apache-2.0
// What image operations decide, apart from the pixels they move: the same
// whether they run one by one or in one pass over a file's region.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/expr/color_steps.h"
#include "dataplane/dataset/expr/pixels.h"
#include "dataplane/dataset/function.h"
#include "penstock/image.h"

namespace penstock {

// Crop, CenterCrop, RandomCrop or RandomResizedCrop.
struct CropPlan {
  enum class Kind : uint8_t { kAt, kCenter, kRandom, kRandomArea };
  Kind kind = Kind::kAt;
  int64_t top = 0, left = 0;          // of kAt
  ImageSize size;                     // of all but kRandomArea
  double min_area = 0, max_area = 0;  // of kRandomArea
  int64_t random = 0;                 // the operation's number, of the random ones

  // InvalidArgument if it is not inside of the image.
  absl::StatusOr<Region> RegionIn(const ImageSize& image, const RandomKey& key) const;
};
// nullopt if the operation does not crop.
std::optional<CropPlan> CropPlanOf(const OpDef& op);

// Resize, or what RandomResizedCrop does after its crop.
struct ResizePlan {
  ImageSize size;
  ResizeOptions options;
};
std::optional<ResizePlan> ResizePlanOf(const OpDef& op);
ResizeOptions ResizeOptionsOf(const Attrs& attrs);

// A flip, always or at random.
struct FlipPlan {
  bool up_down = false;
  double probability = 1;
  int64_t random = 0;

  bool Flips(const RandomKey& key) const;
};
std::optional<FlipPlan> FlipPlanOf(const OpDef& op);

// What Normalize does.
Normalization NormalizationOf(const Attrs& attrs);

// A region of between `min_area` and `max_area` of the image and an aspect of
// 3/4 to 4/3 (logarithmically uniform); after ten misses the largest middle of
// an aspect in these bounds. As torchvision's RandomResizedCrop.
Region RandomRegion(const RandomKey& key, int64_t image_height, int64_t image_width,
                    double min_area, double max_area);

bool RandomMirror(const RandomKey& key, double probability);

// From 0 up to and with `most`.
int64_t RandomUpTo(const RandomKey& key, uint32_t draw, int64_t most);

}  // namespace penstock
