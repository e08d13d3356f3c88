// SPDX-License-Identifier: Apache-2.0
// PNG files of any bytes: whole, by region, upright, in all channels and depths.
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/image_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;  // NOLINT
  static const ImageFuzz& fuzz = *new ImageFuzz({
      [](auto x) { return DecodePngImage(x); },
      [](auto x) { return DecodePngImage(x, {.channels = 1, .dtype = kUInt16}); },
      [](auto x) { return DecodePngImage(x, {.channels = 2}); },
      [](auto x) {
        return DecodePngImage(
            x, {.channels = 4, .orientation = Orientation::kUpright, .dtype = kUInt16});
      },
      [](auto x) { return RandomFlip(RandomResizedCrop(DecodeImage(x), 9, 7)); },
      [](auto x) {
        return RandomCrop(DecodePngImage(x, {.channels = 4, .orientation = Orientation::kUpright}),
                          3, 3);
      },
  });
  fuzz.Run(data, size);
  return 0;
}
