// SPDX-License-Identifier: Apache-2.0
// Random draws and errors of operations on images. numpy_cases_test.cc compares their pixels with
// those of other libraries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "include/status_macros.h"
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<std::shared_ptr<const BoundFunction>> Bound(const MapFunction& fn,
                                                           const TensorSpec& input) {
  ASSIGN_OR_RETURN(const auto def, Trace(fn, input));
  return BoundFunction::Bind(def);
}

absl::Status Refusal(const MapFunction& fn, const TensorSpec& input) {
  return Trace(fn, input).status();
}

TEST(RandomResizedCrop, CoversAreasAndAspectsAsPromised) {
  // A gradient in x and y shows where a crop was taken.
  std::vector<float> gradient;
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 80; ++x) gradient.insert(gradient.end(), {float(x), float(y)});
  const Owned image = Values<float>({60, 80, 2}, gradient);
  const auto bound = *BoundFunction::Bind(*Trace(
      [](auto x) { return RandomResizedCrop(x, 2, 2, 0.25, 0.5); }, Dense(kFloat32, {60, 80, 2})));
  double least_area = 1, most_area = 0;
  for (uint64_t element = 0; element < 500; ++element) {
    const auto values = (*RunBound(*bound, {image}, {.element = element}))[0].values<float>();
    // Two pixels are at a quarter and three quarters of the region.
    const double width = 2 * (values[2] - values[0]), height = 2 * (values[5] - values[1]);
    const double area = width * height / (60 * 80);
    least_area = std::min(least_area, area);
    most_area = std::max(most_area, area);
    EXPECT_GT(width / height, 0.70);
    EXPECT_LT(width / height, 1.42);
  }
  EXPECT_NEAR(least_area, 0.25, 0.03);
  EXPECT_NEAR(most_area, 0.5, 0.03);
}

TEST(RandomFlip, MirrorsAboutAsOftenAsAsked) {
  const Owned image = Values<uint8_t>({1, 2, 1}, {1, 2});
  const auto bound = *BoundFunction::Bind(
      *Trace([](auto x) { return RandomFlip(x, 0.25); }, Dense(kUInt8, {1, 2, 1})));
  int mirrored = 0;
  for (uint64_t element = 0; element < 1000; ++element) {
    const auto values = (*RunBound(*bound, {image}, {.element = element}))[0].values<uint8_t>();
    EXPECT_THAT(values, testing::UnorderedElementsAre(1, 2));
    mirrored += values[0] == 2;
  }
  EXPECT_NEAR(mirrored, 250, 70);  // five standard deviations
}

TEST(RandomCrop, TakesEveryPlaceAboutAsOften) {
  std::vector<uint8_t> places(5 * 4);
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint8_t>(i);
  const Owned image = Values<uint8_t>({5, 4, 1}, places);
  const auto bound = *Bound([](auto x) { return RandomCrop(x, 3, 3); }, Dense(kUInt8, {5, 4, 1}));
  std::map<uint8_t, int> corners;
  for (uint64_t element = 0; element < 1200; ++element) {
    const auto values = (*RunBound(*bound, {image}, {.element = element}))[0].values<uint8_t>();
    EXPECT_THAT(values,
                ElementsAre(values[0], values[0] + 1, values[0] + 2, values[0] + 4, values[0] + 5,
                            values[0] + 6, values[0] + 8, values[0] + 9, values[0] + 10));
    ++corners[values[0]];
  }
  ASSERT_EQ(corners.size(), 6u);  // three rows, two columns
  for (const auto& [corner, count] : corners) EXPECT_NEAR(count, 200, 65) << int(corner);
}

TEST(RandomFlipUpDown, DrawsApartFromRandomFlip) {
  const Owned image = Values<uint8_t>({2, 2, 1}, {1, 2, 3, 4});
  const auto bound =
      *Bound([](auto x) { return RandomFlipUpDown(RandomFlip(x)); }, Dense(kUInt8, {2, 2, 1}));
  std::map<std::vector<uint8_t>, int> seen;
  for (uint64_t element = 0; element < 800; ++element)
    ++seen[(*RunBound(*bound, {image}, {.element = element}))[0].values<uint8_t>()];
  ASSERT_EQ(seen.size(), 4u);
  for (const auto& [pixels, count] : seen) EXPECT_NEAR(count, 200, 62);
}

// In a single pixel, each step alone shows the factor that was drawn.
TEST(ColorJitter, DrawsFactorsOfTheRangeAsked) {
  const Owned grey = Values<float>({1, 1, 3}, {0.25f, 0.25f, 0.25f});
  const auto bound = *Bound([](auto x) { return ColorJitter(x, {.brightness = 0.4}); },
                            Dense(kFloat32, {1, 1, 3}));
  float least = 9, most = 0;
  for (uint64_t element = 0; element < 500; ++element) {
    const auto values = (*RunBound(*bound, {grey}, {.element = element}))[0].values<float>();
    least = std::min(least, values[0] / 0.25f);
    most = std::max(most, values[0] / 0.25f);
  }
  EXPECT_NEAR(least, 0.6, 0.02);
  EXPECT_NEAR(most, 1.4, 0.02);
}

TEST(ColorJitter, TakesItsStepsInEveryOrder) {
  // Brightness first would clip bright values, so that contrast after it sees others.
  const Owned image = Values<float>({1, 2, 3}, {0.9f, 0.8f, 0.7f, 0.1f, 0.2f, 0.3f});
  const TensorSpec spec = Dense(kFloat32, {1, 2, 3});
  const ColorJitterOptions options{
      .brightness = 0.9, .contrast = 0.9, .saturation = 0.9, .hue = 0.5};
  const auto jitter = *Bound([=](auto x) { return ColorJitter(x, options); }, spec);
  std::set<std::vector<float>> results;
  for (uint64_t element = 0; element < 50; ++element) {
    const auto once = (*RunBound(*jitter, {image}, {.element = element}))[0].values<float>();
    const auto again = (*RunBound(*jitter, {image}, {.element = element}))[0].values<float>();
    EXPECT_EQ(once, again);
    for (float value : once) {
      EXPECT_GE(value, 0);
      EXPECT_LE(value, 1);
    }
    results.insert(once);
  }
  EXPECT_EQ(results.size(), 50u);
}

TEST(ColorJitter, OfNothingLeavesTheImageAsItIs) {
  const Owned image = Values<uint8_t>({1, 2, 3}, {9, 8, 7, 100, 200, 30});
  const auto results = RunOn([](auto x) { return ColorJitter(x, {}); }, {image});
  EXPECT_EQ((*results)[0].values<uint8_t>(), image.values<uint8_t>());
}

TEST(RandomGrayscale, MakesGreyAboutAsOftenAsAsked) {
  const Owned image = Values<uint8_t>({1, 1, 3}, {200, 100, 50});
  const auto bound =
      *Bound([](auto x) { return RandomGrayscale(x, 0.25); }, Dense(kUInt8, {1, 1, 3}));
  int grey = 0;
  for (uint64_t element = 0; element < 1000; ++element) {
    const auto values = (*RunBound(*bound, {image}, {.element = element}))[0].values<uint8_t>();
    if (values[0] == 200) continue;
    EXPECT_THAT(values, ElementsAre(124, 124, 124));
    ++grey;
  }
  EXPECT_NEAR(grey, 250, 70);  // five standard deviations
}

TEST(ImageOps, NameMismatchesWhenTraced) {
  const TensorSpec image = Dense(kUInt8, {4, 6, 3});
  EXPECT_THAT(
      Refusal([](auto x) { return Crop(x, 2, 0, 3, 3); }, image).message(),
      HasSubstr("Crop: a crop of 3 x 3 at row 2, column 0 extends outside an image of 4 x 6"));
  EXPECT_THAT(Refusal([](auto x) { return Crop(x, -1, 0, 3, 3); }, image).message(),
              HasSubstr("the crop is at row -1"));
  EXPECT_THAT(Refusal([](auto x) { return RandomCrop(x, 5, 3); }, image).message(),
              HasSubstr("an image of 4 x 6 is too small for a crop of 5 x 3"));
  EXPECT_THAT(Refusal([](auto x) { return PadTo(x, 8, 5); }, image).message(),
              HasSubstr("an image of 4 x 6 is larger than 8 x 5"));
  EXPECT_THAT(Refusal([](auto x) { return PadTo(x, 8, 8, {.value = 256}); }, image).message(),
              HasSubstr("value is 256, which does not fit uint8"));
  EXPECT_THAT(Refusal([](auto x) { return PadTo(x, 8, 8, {.value = 0.5}); }, image).message(),
              HasSubstr("value is 0.5, which does not fit uint8"));
  EXPECT_THAT(Refusal([](auto x) { return RandomFlip(x, 1.5); }, image).message(),
              HasSubstr("probability must be 0 to 1, not 1.5"));
  EXPECT_THAT(Refusal([](auto x) { return AdjustHue(x, 0.6); }, image).message(),
              HasSubstr("delta is 0.6"));
  EXPECT_THAT(Refusal([](auto x) { return ColorJitter(x, {.contrast = -1}); }, image).message(),
              HasSubstr("contrast is -1"));
  EXPECT_THAT(Refusal([](auto x) { return AdjustSaturation(x, 1e300); }, image).message(),
              HasSubstr("the factor is 1e+300; it must be 0 to 1e+06"));
  EXPECT_THAT(
      Refusal([](auto x) { return AdjustBrightness(x, 1); }, Dense(kUInt8, {4, 6, 1})).message(),
      HasSubstr("a colour image has 3 channels"));
  EXPECT_THAT(
      Refusal([](auto x) { return AdjustBrightness(x, 1); }, Dense(kInt32, {4, 6, 3})).message(),
      HasSubstr("it must be uint8 or float32"));
}

TEST(ImageOps, NameMismatchesWhenRun) {
  const TensorSpec unknown = Dense(kUInt8, {kUnknownDim, kUnknownDim, kUnknownDim});
  const Owned image = Values<uint8_t>({1, 2, 1}, {1, 2});
  const auto error = [&](const MapFunction& fn) {
    return RunBound(**Bound(fn, unknown), {image}).status();
  };
  EXPECT_THAT(error([](auto x) { return RandomCrop(x, 2, 2); }).message(),
              HasSubstr("an image of 1 x 2 is too small for a crop of 2 x 2"));
  EXPECT_THAT(error([](auto x) { return Crop(x, 0, 1, 1, 2); }).message(),
              HasSubstr("extends outside an image of 1 x 2"));
  EXPECT_THAT(error([](auto x) { return PadTo(x, 1, 1); }).message(),
              HasSubstr("is larger than 1 x 1"));
  EXPECT_THAT(error([](auto x) { return AdjustHue(x, 0.1); }).message(),
              HasSubstr("expected [height, width, 3]"));
}

}  // namespace
}  // namespace penstock
