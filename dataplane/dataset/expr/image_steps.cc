// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/image_steps.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr double kMinAspect = 3.0 / 4.0;  // width to height
constexpr double kMaxAspect = 4.0 / 3.0;
constexpr int kAttempts = 10;

// From 0 up to and with `most`.
int64_t RandomUpTo(const RandomKey& key, uint32_t draw, int64_t most) {
  const auto drawn = static_cast<int64_t>(RandomUnit(key, draw) * static_cast<double>(most + 1));
  return std::min(drawn, most);
}

Region Middle(int64_t image_height, int64_t image_width, int64_t height, int64_t width) {
  return {(image_width - width) / 2, (image_height - height) / 2, width, height};
}

}  // namespace

absl::StatusOr<Region> CenterRegion(int64_t image_height, int64_t image_width, int64_t height,
                                    int64_t width) {
  if (height > image_height || width > image_width) {
    return absl::InvalidArgumentError(absl::StrCat("an image of ", image_height, " x ", image_width,
                                                   " has no middle of ", height, " x ", width,
                                                   "; Resize first"));
  }
  return Middle(image_height, image_width, height, width);
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

}  // namespace penstock
