// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG images of every kind. By region: jpeg_regions_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/make_jpeg.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::vector<uint8_t> DecodeWhole(const std::string& jpeg, int channels) {
  const auto results =
      RunOn([=](auto x) { return DecodeJpegImage(x, {.channels = channels}); }, {String(jpeg)});
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0].values<uint8_t>() : std::vector<uint8_t>();
}

// Returns the RGB pixel that the pattern had before compression.
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
    // Compression with subsampled colours causes some error; wrong colours cause far more.
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
    // Colours out of range were clipped in RGB, so single pixels may differ.
    EXPECT_LT(error / static_cast<double>(grey.size()), 4);
  }
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
    // The decoder works as before after a failure.
    EXPECT_TRUE(RunBound(*bound, {String(good)}).ok());
  }
  // Cut, but with an end marker: noticed where the data end too soon.
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

}  // namespace
}  // namespace penstock
