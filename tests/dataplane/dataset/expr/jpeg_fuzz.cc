// SPDX-License-Identifier: Apache-2.0
// JPEG files of any bytes: whole, by region, upright, scaled, in grey.
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/image_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;  // NOLINT
  static const ImageFuzz& fuzz = *new ImageFuzz({
      [](auto x) { return DecodeJpegImage(x); },
      [](auto x) {
        return DecodeJpegImage(x, {.channels = 1, .orientation = Orientation::kUpright});
      },
      [](auto x) { return RandomFlip(RandomResizedCrop(DecodeImage(x), 9, 7)); },
      [](auto x) {
        const DecodeOptions options{.orientation = Orientation::kUpright,
                                    .scaling = JpegScaling::kDct};
        return FlipUpDown(Resize(DecodeJpegImage(x, options), 5, 8, {.antialias = true}));
      },
      [](auto x) { return RandomCrop(DecodeJpegImage(x, {.channels = 1}), 4, 4); },
  });
  fuzz.Run(data, size);
  return 0;
}
