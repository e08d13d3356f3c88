// SPDX-License-Identifier: Apache-2.0
// The decisions of image operations, without the pixels. They are the same whether the operations
// run one by one or in one pass over a file's region.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/image/color_steps.h"
#include "dataplane/dataset/image/image_decoder.h"
#include "dataplane/dataset/image/pixels.h"
#include "penstock/image.h"

namespace penstock {

// Returns nullopt if the operation does not decode images.
std::optional<DecodePlan> DecodePlanOf(const OpDef& op);

// Crop, CenterCrop, RandomCrop or RandomResizedCrop.
struct CropPlan {
  enum class Kind : uint8_t { kAt, kCenter, kRandom, kRandomArea };
  Kind kind = Kind::kAt;
  int64_t top = 0, left = 0;          // for kAt
  ImageSize size;                     // for all kinds except kRandomArea
  double min_area = 0, max_area = 0;  // for kRandomArea
  int64_t random = 0;                 // the operation's number, for the random kinds

  // InvalidArgument if the crop is not inside the image.
  absl::StatusOr<Region> RegionIn(const ImageSize& image, const RandomKey& key) const;
};
// Returns nullopt if the operation does not crop.
std::optional<CropPlan> CropPlanOf(const OpDef& op);

// Resize, or the second half of RandomResizedCrop.
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

// Returns the parameters of a Normalize.
Normalization NormalizationOf(const Attrs& attrs);

// Returns a random region whose area is `min_area` to `max_area` times the image's area, and whose
// aspect is 3/4 to 4/3 (logarithmically uniform). After ten draws that do not fit, returns the
// largest centred region with an aspect in these bounds. torchvision's RandomResizedCrop does the
// same.
Region RandomRegion(const RandomKey& key, int64_t image_height, int64_t image_width,
                    double min_area, double max_area);

bool RandomMirror(const RandomKey& key, double probability);

// Returns a random number from 0 to `most`, inclusive.
int64_t RandomUpTo(const RandomKey& key, uint32_t draw, int64_t most);

}  // namespace penstock
