// SPDX-License-Identifier: Apache-2.0
// Decoding and the operations after it as one step: the result is the same as one at a time.
#include "dataplane/dataset/expr/image_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/make_jpeg.h"
#include "tests/dataplane/dataset/expr/make_png.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

TEST(ImageChain, IsFoundWhereOnlyTheNextUsesAnImage) {
  const auto chains = [](const MapFunction& fn) { return FindImageChains(*Traced(fn)); };
  EXPECT_THAT(
      chains([](auto x) { return RandomFlip(Resize(CenterCrop(DecodeJpegImage(x), 9, 9), 4, 4)); }),
      ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(
      chains([](auto x) { return Cast(RandomResizedCrop(DecodeJpegImage(x), 4, 4), kFloat32); }),
      ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(chains([](auto x) {
                return Normalize(FlipUpDown(RandomFlip(Crop(DecodePngImage(x), 0, 0, 4, 4))),
                                 {1, 2, 3}, {1, 1, 1});
              }),
              ElementsAre(ElementsAre(0, 1, 2, 3, 4)));
  EXPECT_THAT(chains([](auto x) { return RandomCrop(FlipUpDown(DecodeImage(x)), 4, 4); }),
              ElementsAre(ElementsAre(0, 1)));
  // A second crop, and a resize after a random crop, are not part of the chain.
  EXPECT_THAT(chains([](auto x) { return CenterCrop(Resize(DecodeJpegImage(x), 8, 8), 4, 4); }),
              ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(
      chains([](auto x) { return Resize(RandomResizedCrop(DecodeJpegImage(x), 4, 4), 2, 2); }),
      ElementsAre(ElementsAre(0, 1)));
  EXPECT_TRUE(chains([](auto x) {
                Expr image = DecodeJpegImage(x);
                return Tuple({image, Resize(image, 4, 4)});
              }).empty());
  EXPECT_TRUE(chains([](auto x) {
                Expr image = DecodeJpegImage(x);
                return Tuple({CenterCrop(image, 2, 2), Resize(image, 4, 4)});
              }).empty());
}

using Step = std::function<Expr(Expr)>;

struct NamedStep {
  const char* name;
  Step step;
};

// Returns the largest difference between values at the same place; both have the same shape.
template <class T>
double Furthest(const Owned& a, const Owned& b) {
  const std::vector<T> ours = a.values<T>();
  const std::vector<T> theirs = b.values<T>();
  double furthest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    furthest = std::max(furthest,
                        std::fabs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i])));
  }
  return furthest;
}

// Runs the steps as a chain, and on an image that is also a result, so that no chain is made.
// Expects equal values up to `within`, in units of 0 to 255.
void ExpectSame(const Step& decode, const std::string& file, const NamedStep& steps,
                double within) {
  const auto chain =
      *BoundFunction::Bind(Traced([&](auto x) { return Tuple({steps.step(decode(x))}); }));
  const auto single = *BoundFunction::Bind(Traced([&](auto x) {
    Expr image = decode(x);
    return Tuple({steps.step(image), image});
  }));
  ASSERT_EQ(FindImageChains(chain->def()).size(), 1u);
  for (uint64_t element = 0; element < 6; ++element) {
    SCOPED_TRACE(absl::StrCat(steps.name, ", ", element));
    const RandomKey key{.seed = 3, .element = element};
    const auto a = RunBound(*chain, {String(file)}, key);
    const auto b = RunBound(*single, {String(file)}, key);
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    ASSERT_EQ((*a)[0].dims, (*b)[0].dims);
    ASSERT_EQ((*a)[0].dtype, (*b)[0].dtype);
    EXPECT_TRUE((*a)[0].placed);
    const double worst = (*a)[0].dtype == kFloat32 ? Furthest<float>((*a)[0], (*b)[0])
                                                   : Furthest<uint8_t>((*a)[0], (*b)[0]);
    EXPECT_LE(worst, within + 1e-5);
  }
}

std::vector<NamedStep> AllSteps(int channels) {
  const std::vector<float> mean(channels, 120), std(channels, 1);
  const ResizeOptions cubic{.interpolation = Interpolation::kBicubic};
  const ResizeOptions smooth{.antialias = true};
  return {
      {"random", [=](Expr x) { return RandomResizedCrop(x, 24, 20); }},
      {"random+flip", [=](Expr x) { return RandomFlip(RandomResizedCrop(x, 24, 20)); }},
      {"random+flip always", [=](Expr x) { return RandomFlip(RandomResizedCrop(x, 24, 20), 1); }},
      {"random smooth", [=](Expr x) { return RandomResizedCrop(x, 9, 8, 0.5, 1, smooth); }},
      {"center", [=](Expr x) { return CenterCrop(x, 3, 5); }},
      {"center+flip", [=](Expr x) { return RandomFlip(CenterCrop(x, 3, 4), 1); }},
      {"center+resize", [=](Expr x) { return Resize(CenterCrop(x, 2, 3), 7, 9); }},
      {"crop", [=](Expr x) { return Crop(x, 1, 2, 2, 3); }},
      {"random crop+flips",
       [=](Expr x) { return RandomFlip(RandomFlipUpDown(RandomFlip(RandomCrop(x, 3, 3)))); }},
      {"resize", [=](Expr x) { return Resize(x, 40, 200); }},
      {"resize+upside down", [=](Expr x) { return FlipUpDown(Resize(x, 10, 20, cubic)); }},
      {"resize+center", [=](Expr x) { return CenterCrop(Resize(x, 40, 50), 32, 32); }},
      {"flip", [=](Expr x) { return RandomFlip(x); }},
      {"normalize", [=](Expr x) { return Normalize(x, mean, std); }},
      {"everything",
       [=](Expr x) {
         return Normalize(FlipUpDown(RandomFlip(RandomResizedCrop(x, 24, 20))), mean, std);
       }},
  };
}

TEST(ImageChain, EqualsTheSingleStepsOnJpeg) {
  for (const JpegKind& kind : AllJpegKinds()) {
    for (int channels : {1, 3}) {
      SCOPED_TRACE(absl::StrCat(kind.name, " in ", channels));
      const std::string jpeg = MakeJpeg(kind);
      for (const NamedStep& steps : AllSteps(channels)) {
        ExpectSame([=](auto x) { return DecodeJpegImage(x, {.channels = channels}); }, jpeg, steps,
                   1);
      }
    }
  }
}

TEST(ImageChain, EqualsTheSingleStepsOnPng) {
  for (const PngKind& kind : AllPngKinds()) {
    if (kind.width < 5) continue;  // too small for some of the crops
    for (int channels : {1, 3, 4}) {
      SCOPED_TRACE(absl::StrCat(kind.name, ", ", kind.bits, " bits, in ", channels));
      const std::string png = MakePng(kind);
      for (const NamedStep& steps : AllSteps(channels)) {
        ExpectSame([=](auto x) { return DecodePngImage(x, {.channels = channels}); }, png, steps,
                   0);
      }
    }
  }
}

// Returns the file with an EXIF block of this orientation.
std::string Held(const std::string& jpeg, int orientation) {
  std::string exif(
      "\xFF\xE1\x00\x22"
      "Exif\0\0"
      "II*\0\x08\0\0\0\x01\0"
      "\x12\x01\x03\0\x01\0\0\0",
      28);
  exif += static_cast<char>(orientation);
  exif.append(7, '\0');  // the rest of the value, and no other directory
  return jpeg.substr(0, 2) + exif + jpeg.substr(2);
}

TEST(ImageChain, CropsTheUprightImage) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const std::string jpeg = Held(MakeJpeg({}), orientation);
    for (const NamedStep& steps : AllSteps(3)) {
      ExpectSame([](auto x) { return DecodeImage(x, {.orientation = Orientation::kUpright}); },
                 jpeg, steps, 1);
    }
    const auto turned =
        RunOn([](auto x) { return DecodeJpegImage(x, {.orientation = Orientation::kUpright}); },
              {String(jpeg)});
    const std::vector<int64_t> wide = {97, 131, 3}, high = {131, 97, 3};
    EXPECT_EQ((*turned)[0].dims, orientation < 5 ? wide : high);
  }
}

std::string ContentsOf(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the peak signal-to-noise ratio in dB.
double Psnr(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(a[i] - b[i], 2);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / sum);
}

// The bounds are the values in docs/images.md for these photographs, less 1 dB.
TEST(ImageChain, ScalingInTheDecoderStaysNear) {
  struct Case {
    const char* photo;
    int64_t side;          // of the result; the photographs are 640 x 427
    double plain, smooth;  // dB, against resizing without and with antialias
  };
  for (const Case& c : {Case{"china.jpg", 200, 24, 31.5}, Case{"china.jpg", 100, 21.8, 35},
                        Case{"flower.jpg", 200, 32.5, 37.4}, Case{"flower.jpg", 100, 28.5, 39}}) {
    const std::string jpeg = ContentsOf(absl::StrCat(PHOTOS, "/", c.photo));
    const auto run = [&](JpegScaling scaling, ResizeOptions options) {
      const auto bound = *BoundFunction::Bind(
          Traced(DecodeJpeg("", {.scaling = scaling}).Resize(c.side, c.side, options)));
      return (*RunBound(*bound, {String(jpeg)}))[0].values<uint8_t>();
    };
    for (bool antialias : {false, true}) {
      const ResizeOptions options{.antialias = antialias};
      const auto exact = run(JpegScaling::kExact, options),
                 scaled = run(JpegScaling::kDct, options);
      ASSERT_EQ(exact.size(), scaled.size());
      EXPECT_NE(exact, scaled);  // scaling took effect
      const double psnr = Psnr(exact, scaled);
      std::printf("%s to %d, %s: %.1f dB\n", c.photo, static_cast<int>(c.side),
                  antialias ? "antialias" : "plain", psnr);
      EXPECT_GE(psnr, antialias ? c.smooth : c.plain);
    }
  }
}

TEST(ImageChain, ErrorsNameTheFile) {
  const std::string folder = testing::TempDir() + "images_named";
  std::filesystem::create_directories(folder);
  const std::string good = MakeJpeg({});
  const std::string name = folder + "/cut.jpg";
  std::ofstream(name, std::ios::binary) << good.substr(0, good.size() / 2);
  for (const Step& steps : std::vector<Step>{
           [](Expr x) { return DecodeJpegImage(ReadFile(x)); },
           [](Expr x) { return RandomResizedCrop(DecodeImage(ReadFile(x)), 8, 8); }}) {
    const auto status = RunOn(steps, {String(name)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("cut short"));
    EXPECT_THAT(std::string(status.message()), EndsWith(absl::StrCat("; file '", name, "'")));
  }
}

}  // namespace
}  // namespace penstock
