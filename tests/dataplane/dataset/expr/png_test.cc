// SPDX-License-Identifier: Apache-2.0
// Decodes PNG images of every kind, whole and by region.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/dataset/image/png_decoder.h"
#include "dataplane/memory/arena.h"
#include "include/status_macros.h"
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/make_png.h"
#include "tests/dataplane/dataset/expr/run_function.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::string NameOf(const PngKind& kind) {
  return absl::StrCat(kind.name, " of ", kind.bits, " bits", kind.interlaced ? ", interlaced" : "");
}

// Returns the pixel in this many channels and bits.
std::vector<uint16_t> Expected(const Rgba& pixel, int channels, bool wide) {
  uint32_t of[4];
  for (int c = 0; c < 4; ++c) of[c] = wide ? pixel.of[c] : pixel.of[c] >> 8;
  const uint32_t grey = (299 * of[0] + 587 * of[1] + 114 * of[2] + 500) / 1000;
  std::vector<uint16_t> values;
  if (channels < 3)
    values.push_back(static_cast<uint16_t>(grey));
  else
    values.assign(of, of + 3);
  if (channels % 2 == 0) values.push_back(static_cast<uint16_t>(of[3]));
  return values;
}

std::vector<uint16_t> ExpectedPart(const PngKind& kind, const Region& region, int channels,
                                   bool wide) {
  std::vector<uint16_t> all;
  for (int64_t y = region.y; y < region.y + region.height; ++y)
    for (int64_t x = region.x; x < region.x + region.width; ++x) {
      const auto pixel = PngPixelAt(kind, static_cast<int>(x), static_cast<int>(y));
      for (uint16_t value : Expected(pixel, channels, wide)) all.push_back(value);
    }
  return all;
}

absl::StatusOr<std::vector<uint16_t>> ReadPart(const std::string& png, const Region& region,
                                               int channels, bool wide) {
  Arena arena;
  PngDecoder& decoder = PngDecoder::OfThisThread();
  RETURN_IF_ERROR(decoder.Open(png, channels, wide ? kUInt16 : kUInt8, arena).status());
  ASSIGN_OR_RETURN(const Pixels pixels, decoder.Read(region));
  std::vector<uint16_t> all;
  for (int64_t y = 0; y < region.height; ++y) {
    const uint8_t* row = pixels.first + y * pixels.row_bytes;
    for (int64_t n = 0; n < region.width * channels; ++n) {
      uint16_t value = row[n];
      if (wide) std::memcpy(&value, row + 2 * n, 2);
      all.push_back(value);
    }
  }
  return all;
}

TEST(PngDecoder, GivesThePixelsOfEveryKindInEveryForm) {
  for (const PngKind& kind : AllPngKinds()) {
    const std::string png = MakePng(kind);
    const Region all{0, 0, kind.width, kind.height};
    for (int channels : {1, 2, 3, 4}) {
      for (bool wide : {false, true}) {
        SCOPED_TRACE(absl::StrCat(NameOf(kind), " in ", channels, wide ? " wide" : ""));
        const auto pixels = ReadPart(png, all, channels, wide);
        ASSERT_TRUE(pixels.ok()) << pixels.status();
        EXPECT_EQ(*pixels, ExpectedPart(kind, all, channels, wide));
      }
    }
  }
}

TEST(PngDecoder, RegionsEqualTheWholeImage) {
  for (const PngKind& kind : AllPngKinds()) {
    SCOPED_TRACE(NameOf(kind));
    const std::string png = MakePng(kind);
    for (int n = 0; n < 40; ++n) {
      const int width = 1 + n * 17 % kind.width, height = 1 + n * 13 % kind.height;
      const Region region{n * 29 % (kind.width - width + 1), n * 31 % (kind.height - height + 1),
                          width, height};
      const auto pixels = ReadPart(png, region, 3, false);
      ASSERT_TRUE(pixels.ok()) << pixels.status();
      EXPECT_EQ(*pixels, ExpectedPart(kind, region, 3, false)) << n;
    }
  }
}

TEST(DecodePng, DamagedFilesAreErrorsWholeAndInChains) {
  const std::vector<MapFunction> functions = {
      [](auto x) { return DecodePngImage(x); }, [](auto x) { return DecodeImage(x); },
      [](auto x) { return RandomResizedCrop(DecodePngImage(x), 16, 16, 0.9); }};
  for (const PngKind& kind : AllPngKinds()) {
    const std::string good = MakePng(kind);
    for (const MapFunction& fn : functions) {
      const auto bound = *BoundFunction::Bind(*Trace(fn, Bytes()));
      const auto error = [&](const std::string& bytes) {
        return RunBound(*bound, {String(bytes)}).status();
      };
      for (size_t cut = 8; cut + 12 < good.size(); cut += 7)
        EXPECT_EQ(error(good.substr(0, cut)).code(), absl::StatusCode::kDataLoss) << cut;
      EXPECT_THAT(error(good.substr(0, good.size() - 12)).message(), HasSubstr("cut short"));
      EXPECT_TRUE(RunBound(*bound, {String(good)}).ok());
    }
  }
}

TEST(DecodePng, ErrorsNameDataThatIsNoPng) {
  const auto error = [](const MapFunction& fn, const std::string& bytes) {
    return RunOn(fn, {String(bytes)}).status();
  };
  const auto png = error([](auto x) { return DecodePngImage(x); }, "\xFF\xD8 or so");
  EXPECT_EQ(png.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(png.message(), HasSubstr("DecodePngImage: not a PNG image"));
  const auto image = error([](auto x) { return DecodeImage(x); }, "GIF89a");
  EXPECT_EQ(image.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(image.message(), HasSubstr("DecodeImage: neither a JPEG nor a PNG image"));
}

TEST(DecodePng, ByteAfterByteOfNonsenseNeverAborts) {
  for (const PngKind& kind : AllPngKinds()) {
    const std::string good = MakePng(kind);
    const auto bound = *BoundFunction::Bind(*Trace(
        [](auto x) { return DecodePngImage(x, {.channels = 4, .dtype = kUInt16}); }, Bytes()));
    int failed = 0;
    for (size_t at = 8; at < good.size(); at += 3) {
      std::string broken = good;
      broken[at] = static_cast<char>(broken[at] ^ 0x5A);
      failed += !RunBound(*bound, {String(broken)}).ok();
    }
    EXPECT_GT(failed, 0);
  }
}

TEST(DecodePng, TakesTheFormsItHas) {
  const auto inferred = [](DecodeOptions options) {
    return Trace([=](auto x) { return DecodePngImage(x, options); }, Bytes()).status();
  };
  EXPECT_TRUE(inferred({.channels = 2, .dtype = kUInt16}).ok());
  EXPECT_THAT(inferred({.channels = 5}).message(), HasSubstr("channels must be 1 to 4, not 5"));
  EXPECT_THAT(inferred({.dtype = kFloat32}).message(), HasSubstr("not float32"));
  EXPECT_THAT(
      Trace([](auto x) { return DecodeImage(x, {.dtype = kUInt16}); }, Bytes()).status().message(),
      HasSubstr("only DecodePng"));
}

}  // namespace
}  // namespace penstock
