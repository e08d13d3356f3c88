// SPDX-License-Identifier: Apache-2.0
// Decoding JPEG images of every kind, whole and by region, one operation at a
// time and as one chain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "dataplane/dataset/expr/arena.h"
#include "dataplane/dataset/expr/image_chain.h"
#include "dataplane/dataset/expr/jpeg_decoder.h"
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/make_jpeg.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<uint8_t> DecodeWhole(const std::string& jpeg, int channels) {
  const auto results =
      RunOn([=](auto x) { return DecodeJpegImage(x, {.channels = channels}); }, {String(jpeg)});
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0].values<uint8_t>() : std::vector<uint8_t>();
}

// The RGB pixel that the pattern had before it was compressed.
int OriginalAt(const JpegKind& kind, int x, int y, int channel) {
  if (kind.components < 4) return PatternAt(x, y, kind.components == 1 ? 0 : channel);
  const int flip = kind.adobe_inverted ? 0 : 255;
  return (PatternAt(x, y, channel) ^ flip) * (PatternAt(x, y, 3) ^ flip) / 255;
}

TEST(DecodeJpeg, GivesThePictureOfEveryKind) {
  for (const JpegKind& kind : AllJpegKinds()) {
    SCOPED_TRACE(kind.name);
    const std::vector<uint8_t> pixels = DecodeWhole(MakeJpeg(kind), 3);
    ASSERT_EQ(pixels.size(), size_t(kind.width) * kind.height * 3);
    double error = 0;
    for (int y = 0; y < kind.height; ++y)
      for (int x = 0; x < kind.width; ++x)
        for (int c = 0; c < 3; ++c)
          error +=
              std::abs(OriginalAt(kind, x, y, c) - pixels[(size_t(y) * kind.width + x) * 3 + c]);
    // Compression with subsampled colours costs some; wrong colours far more.
    EXPECT_LT(error / static_cast<double>(pixels.size()), 30);
  }
}

TEST(DecodeJpeg, GreyIsTheLumaOfEveryKind) {
  for (const JpegKind& kind : AllJpegKinds()) {
    SCOPED_TRACE(kind.name);
    const std::string jpeg = MakeJpeg(kind);
    const std::vector<uint8_t> colour = DecodeWhole(jpeg, 3);
    const std::vector<uint8_t> grey = DecodeWhole(jpeg, 1);
    ASSERT_EQ(grey.size() * 3, colour.size());
    double error = 0;
    for (size_t i = 0; i < grey.size(); ++i) {
      const double luma =
          0.299 * colour[3 * i] + 0.587 * colour[3 * i + 1] + 0.114 * colour[3 * i + 2];
      error += std::fabs(luma - grey[i]);
    }
    // Colours out of range were cut off in RGB, so single pixels may differ.
    EXPECT_LT(error / static_cast<double>(grey.size()), 4);
  }
}

TEST(DecodeJpeg, RegionsEqualTheWholeImage) {
  for (const JpegKind& kind : AllJpegKinds()) {
    for (int channels : {1, 3}) {
      const std::string jpeg = MakeJpeg(kind);
      const std::vector<uint8_t> whole = DecodeWhole(jpeg, channels);
      int worst = 0;
      for (int n = 0; n < 60; ++n) {
        // Regions all over, at the edges too.
        const int width = 1 + n * 37 % kind.width, height = 1 + n * 53 % kind.height;
        const Region region{n * 29 % (kind.width - width + 1), n * 31 % (kind.height - height + 1),
                            width, height};
        Arena arena;
        JpegDecoder& decoder = JpegDecoder::OfThisThread();
        ASSERT_TRUE(decoder.Open(jpeg, channels).ok());
        const auto pixels = decoder.Read(region, 8, arena);
        ASSERT_TRUE(pixels.ok()) << pixels.status();
        for (int64_t y = 0; y < height; ++y)
          for (int64_t x = 0; x < width * channels; ++x)
            worst = std::max(
                worst, std::abs(pixels->first[y * pixels->row_bytes + x] -
                                whole[((region.y + y) * kind.width + region.x) * channels + x]));
      }
      EXPECT_LE(worst, 1) << kind.name << " in " << channels;
    }
  }
}

std::shared_ptr<const FunctionDef> Traced(const MapFunction& fn) {
  return *Trace(fn, Bytes());
}

TEST(ImageChain, IsFoundWhereOnlyTheNextUsesAnImage) {
  const auto chains = [](const MapFunction& fn) { return FindImageChains(*Traced(fn)); };
  EXPECT_THAT(
      chains([](auto x) { return RandomFlip(Resize(CenterCrop(DecodeJpegImage(x), 9, 9), 4, 4)); }),
      ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(
      chains([](auto x) { return Cast(RandomResizedCrop(DecodeJpegImage(x), 4, 4), kFloat32); }),
      ElementsAre(ElementsAre(0, 1)));
  // A second crop, and a resize after a random crop, stand alone.
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

// The same steps on an image that also is a result, so that no chain is made.
MapFunction OneByOne(std::function<Expr(Expr)> steps, int channels) {
  return [=](auto x) {
    Expr image = DecodeJpegImage(x, {.channels = channels});
    return Tuple({steps(image), image});
  };
}
MapFunction AsChain(std::function<Expr(Expr)> steps, int channels) {
  return [=](auto x) { return Tuple({steps(DecodeJpegImage(x, {.channels = channels}))}); };
}

TEST(ImageChain, GivesWhatTheStepsGive) {
  const std::vector<std::pair<const char*, std::function<Expr(Expr)>>> all_steps = {
      {"random", [](Expr x) { return RandomResizedCrop(x, 24, 20); }},
      {"random+flip", [](Expr x) { return RandomFlip(RandomResizedCrop(x, 24, 20)); }},
      {"random+flip always", [](Expr x) { return RandomFlip(RandomResizedCrop(x, 24, 20), 1); }},
      {"center", [](Expr x) { return CenterCrop(x, 3, 5); }},
      {"center+flip", [](Expr x) { return RandomFlip(CenterCrop(x, 3, 4), 1); }},
      {"center+resize", [](Expr x) { return Resize(CenterCrop(x, 2, 3), 7, 9); }},
      {"resize", [](Expr x) { return Resize(x, 40, 200); }},
      {"resize+center", [](Expr x) { return CenterCrop(Resize(x, 40, 50), 32, 32); }},
      {"flip", [](Expr x) { return RandomFlip(x); }},
  };
  for (const JpegKind& kind : AllJpegKinds()) {
    const std::string jpeg = MakeJpeg(kind);
    for (const auto& [name, steps] : all_steps) {
      for (int channels : {1, 3}) {
        const auto chain = *BoundFunction::Bind(Traced(AsChain(steps, channels)));
        const auto single = *BoundFunction::Bind(Traced(OneByOne(steps, channels)));
        for (uint64_t element = 0; element < 6; ++element) {
          SCOPED_TRACE(absl::StrCat(kind.name, ", ", name, ", ", channels, ", ", element));
          const RandomKey key{.seed = 3, .element = element};
          const auto a = RunBound(*chain, {String(jpeg)}, key);
          const auto b = RunBound(*single, {String(jpeg)}, key);
          ASSERT_TRUE(a.ok()) << a.status();
          ASSERT_TRUE(b.ok()) << b.status();
          ASSERT_EQ((*a)[0].dims, (*b)[0].dims);
          EXPECT_TRUE((*a)[0].placed);
          const auto ours = (*a)[0].values<uint8_t>(), theirs = (*b)[0].values<uint8_t>();
          int worst = 0;
          for (size_t i = 0; i < ours.size(); ++i)
            worst = std::max(worst, std::abs(ours[i] - theirs[i]));
          EXPECT_LE(worst, 1);
        }
      }
    }
  }
}

TEST(ImageChain, ScalingInTheDecoderStaysNear) {
  const std::string jpeg = MakeJpeg({.width = 512, .height = 384});
  const auto run = [&](JpegScaling scaling) {
    const auto bound = *BoundFunction::Bind(
        Traced(DecodeJpeg("", {.scaling = scaling}).RandomResizedCrop(32, 32, 0.9)));
    return (*RunBound(*bound, {String(jpeg)}))[0].values<uint8_t>();
  };
  const auto exact = run(JpegScaling::kExact), scaled = run(JpegScaling::kDct);
  ASSERT_EQ(exact.size(), scaled.size());
  EXPECT_NE(exact, scaled);  // it took effect
  double error = 0;
  for (size_t i = 0; i < exact.size(); ++i) error += std::abs(exact[i] - scaled[i]);
  EXPECT_LT(error / static_cast<double>(exact.size()), 40);
}

TEST(DecodeJpeg, DamagedFilesAreErrorsWholeAndInChains) {
  const std::string good = MakeJpeg({});
  const std::vector<MapFunction> functions = {
      [](auto x) { return DecodeJpegImage(x); },
      [](auto x) { return Resize(DecodeJpegImage(x), 16, 16); },
      [](auto x) { return RandomResizedCrop(DecodeJpegImage(x), 16, 16); }};
  for (const MapFunction& fn : functions) {
    const auto bound = *BoundFunction::Bind(Traced(fn));
    const auto error = [&](const std::string& bytes) {
      return RunBound(*bound, {String(bytes)}).status();
    };
    EXPECT_EQ(error("").code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(error("no image at all").code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(error("no image at all").message(), HasSubstr("not a JPEG image: Not a JPEG file"));
    for (size_t cut = 0; cut < good.size(); cut += 97) {
      const absl::StatusCode code = error(good.substr(0, cut)).code();
      EXPECT_TRUE(code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kDataLoss)
          << cut;
    }
    EXPECT_THAT(error(good.substr(0, good.size() - 100)).message(), HasSubstr("cut short"));
    // The decoder is as good as new after a failure.
    EXPECT_TRUE(RunBound(*bound, {String(good)}).ok());
  }
  // Cut, but with an end: found where the data end too soon.
  std::string ended = good.substr(0, good.size() / 2) + "\xFF\xD9";
  const auto status = RunOn(functions[0], {String(ended)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("damaged JPEG image: "));
}

TEST(DecodeJpeg, ByteAfterByteOfNonsenseNeverAborts) {
  for (const JpegKind& kind : AllJpegKinds()) {
    const std::string good = MakeJpeg(kind);
    const auto bound = *BoundFunction::Bind(
        Traced([](auto x) { return RandomFlip(RandomResizedCrop(DecodeJpegImage(x), 8, 8)); }));
    int failed = 0;
    for (size_t at = 0; at < std::min<size_t>(good.size(), 700); at += 3) {
      std::string broken = good;
      broken[at] = static_cast<char>(broken[at] ^ 0x5A);
      failed += !RunBound(*bound, {String(broken)}, {.element = at}).ok();
    }
    EXPECT_GT(failed, 0);
  }
}

TEST(DecodeJpeg, RefusesImagesThatAreAllHeader) {
  std::string jpeg = MakeJpeg({});
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\xFD';  // 65021 × 65021
  const auto results = RunOn([](auto x) { return DecodeJpegImage(x); }, {String(jpeg)});
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(results.status().message(), HasSubstr("65021 x 65021 pixels"));
}

TEST(RandomResizedCrop, CoversAreasAndAspectsAsPromised) {
  // A gradient in x and y tells where a crop was taken.
  std::vector<float> gradient;
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 80; ++x) gradient.insert(gradient.end(), {float(x), float(y)});
  const Owned image = Values<float>({60, 80, 2}, gradient);
  const auto bound = *BoundFunction::Bind(*Trace(
      [](auto x) { return RandomResizedCrop(x, 2, 2, 0.25, 0.5); }, Dense(kFloat32, {60, 80, 2})));
  double least_area = 1, most_area = 0;
  for (uint64_t element = 0; element < 500; ++element) {
    const auto values = (*RunBound(*bound, {image}, {.element = element}))[0].values<float>();
    // Two pixels lie at a quarter and three quarters of the region.
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

}  // namespace
}  // namespace penstock
