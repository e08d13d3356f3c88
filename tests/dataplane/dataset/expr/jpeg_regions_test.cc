// SPDX-License-Identifier: Apache-2.0
// Random regions of random JPEG images of every kind equal those of the whole image: within 1,
// because libjpeg's SIMD code rounds some columns differently.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/image/jpeg_decoder.h"
#include "dataplane/memory/arena.h"
#include "tests/dataplane/dataset/expr/make_jpeg.h"

namespace penstock {
namespace {

constexpr int kCropsOfAnImage = 5;

class Regions : public testing::TestWithParam<int> {
 protected:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  template <class T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Below(static_cast<int>(values.size()))];
  }

  JpegKind AnyKind() {
    JpegKind kind{.width = 1 + Below(OneOf({24, 90, 330})),
                  .height = 1 + Below(OneOf({24, 90, 330}))};
    kind.components = OneOf({1, 3, 3, 3, 3, 4});
    kind.horizontal = OneOf({1, 2, 2, 4});
    kind.vertical = OneOf({1, 2, 2, kind.horizontal == 4 ? 1 : 4});  // an MCU has up to ten blocks
    if (kind.components == 1) kind.stored = JCS_GRAYSCALE;
    if (kind.components == 4) kind.stored = OneOf({JCS_CMYK, JCS_YCCK});
    if (kind.components == 3 && Below(8) == 0) kind.stored = JCS_RGB;
    kind.adobe_inverted = Below(2) == 0;
    kind.progressive = Below(3) == 0;
    kind.arithmetic = Below(6) == 0;
    kind.restart_rows = OneOf({0, 0, 1, 2});
    kind.quality = OneOf({40, 85, 98});
    return kind;
  }

  std::mt19937 random_{7};
};

std::string Describe(const JpegKind& kind) {
  return absl::StrCat(
      kind.width, " x ", kind.height, ", ", kind.components, " components stored as ",
      static_cast<int>(kind.stored), ", ", kind.horizontal, " x ", kind.vertical,
      kind.progressive ? ", progressive" : "", kind.arithmetic ? ", arithmetic" : "", ", restarts ",
      kind.restart_rows, ", quality ", kind.quality);
}

TEST_P(Regions, EqualTheWholeImage) {
  JpegDecoder& decoder = JpegDecoder::OfThisThread();
  for (int n = 0; n < GetParam(); n += kCropsOfAnImage) {
    const JpegKind kind = AnyKind();
    SCOPED_TRACE(Describe(kind));
    const std::string jpeg = MakeJpeg(kind);
    const int channels = OneOf({1, 3});
    const int eighths = OneOf({8, 8, 8, 4, 2, 1});
    Arena arena;
    ASSERT_TRUE(decoder.Open(jpeg, channels).ok());
    const ImageSize size = decoder.ScaledSize(eighths);
    const auto whole = decoder.Read({0, 0, size.width, size.height}, eighths, arena);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (int crop = 0; crop < kCropsOfAnImage; ++crop) {
      const int64_t width = 1 + Below(static_cast<int>(size.width));
      const int64_t height = 1 + Below(static_cast<int>(size.height));
      const Region region{Below(static_cast<int>(size.width - width + 1)),
                          Below(static_cast<int>(size.height - height + 1)), width, height};
      SCOPED_TRACE(absl::StrCat(region.width, " x ", region.height, " at ", region.x, ", ",
                                region.y, " in ", eighths, " eighths, ", channels, " channels"));
      ASSERT_TRUE(decoder.Open(jpeg, channels).ok());
      const auto part = decoder.Read(region, eighths, arena);
      ASSERT_TRUE(part.ok()) << part.status();
      int worst = 0;
      std::pair<int64_t, int64_t> at;
      for (int64_t y = 0; y < height; ++y) {
        const uint8_t* a = part->first + y * part->row_bytes;
        const uint8_t* b = whole->first + (region.y + y) * whole->row_bytes + region.x * channels;
        for (int64_t x = 0; x < width * channels; ++x) {
          const int apart = std::abs(a[x] - b[x]);
          if (apart > worst) at = {region.x + x / channels, region.y + y};
          worst = std::max(worst, apart);
        }
      }
      ASSERT_LE(worst, 1) << "at " << at.first << ", " << at.second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Few, Regions, testing::Values(500));
INSTANTIATE_TEST_SUITE_P(Many, Regions, testing::Values(5000));

}  // namespace
}  // namespace penstock
