// SPDX-License-Identifier: Apache-2.0
// Synthetic PNG images of every kind, written by libpng itself.
#pragma once

#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace penstock {

struct PngKind {
  const char* name = "RGB";
  int type = PNG_COLOR_TYPE_RGB;
  int bits = 8;  // of a value
  bool interlaced = false;
  bool transparent_colour = false;  // whether some colours of a palette are transparent
  int width = 37;
  int height = 23;
};

inline std::vector<PngKind> AllPngKinds() {
  std::vector<PngKind> kinds;
  for (bool interlaced : {false, true}) {
    for (int bits : {1, 2, 4, 8, 16})
      kinds.push_back({"grey", PNG_COLOR_TYPE_GRAY, bits, interlaced});
    for (int bits : {1, 2, 4, 8})
      kinds.push_back({"palette", PNG_COLOR_TYPE_PALETTE, bits, interlaced});
    for (int bits : {8, 16}) {
      kinds.push_back({"RGB", PNG_COLOR_TYPE_RGB, bits, interlaced});
      kinds.push_back({"grey and alpha", PNG_COLOR_TYPE_GRAY_ALPHA, bits, interlaced});
      kinds.push_back({"RGBA", PNG_COLOR_TYPE_RGB_ALPHA, bits, interlaced});
    }
    kinds.push_back({"palette with alpha", PNG_COLOR_TYPE_PALETTE, 4, interlaced, true});
    kinds.push_back({"tiny", PNG_COLOR_TYPE_RGB, 8, interlaced, false, 1, 1});
  }
  return kinds;
}

// Returns the stored value at a place: from 0 to 2^bits - 1.
inline int PngValueAt(const PngKind& kind, int x, int y, int channel) {
  uint32_t value = (x * 73856093u) ^ (y * 19349663u) ^ ((channel + 1) * 83492791u);
  value = (value ^ (value >> 13)) * 0x5bd1e995u;
  return static_cast<int>((value ^ (value >> 15)) & ((1u << kind.bits) - 1));
}

inline png_color PngPaletteAt(int index) {
  return {static_cast<png_byte>(index * 7), static_cast<png_byte>(255 - index),
          static_cast<png_byte>(index * index)};
}
inline png_byte PngPaletteAlphaAt(int index) {
  return static_cast<png_byte>(index * 50);
}
inline constexpr int kPngPaletteAlphas = 4;  // all later colours are opaque

// The RGBA pixel at a place, in 16 bits; 8-bit values are multiplied by 257.
struct Rgba {
  uint16_t of[4];
};
inline Rgba PngPixelAt(const PngKind& kind, int x, int y) {
  const auto spread = [](int eight) { return static_cast<uint16_t>(eight * 257); };
  const auto value = [&](int channel) {
    const int stored = PngValueAt(kind, x, y, channel);
    return static_cast<uint16_t>(stored * (65535 / ((1 << kind.bits) - 1)));
  };
  switch (kind.type) {
    case PNG_COLOR_TYPE_GRAY:
      return {{value(0), value(0), value(0), 65535}};
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return {{value(0), value(0), value(0), value(1)}};
    case PNG_COLOR_TYPE_PALETTE: {
      const int index = PngValueAt(kind, x, y, 0);
      const png_color colour = PngPaletteAt(index);
      const bool opaque = !kind.transparent_colour || index >= kPngPaletteAlphas;
      return {{spread(colour.red), spread(colour.green), spread(colour.blue),
               opaque ? uint16_t{65535} : spread(PngPaletteAlphaAt(index))}};
    }
    case PNG_COLOR_TYPE_RGB:
      return {{value(0), value(1), value(2), 65535}};
    default:
      return {{value(0), value(1), value(2), value(3)}};
  }
}

inline std::string MakePng(const PngKind& kind) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp png, png_bytep data, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(png))
            ->append(reinterpret_cast<const char*>(data), size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, kind.width, kind.height, kind.bits, kind.type,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  int channels = 1;
  if (kind.type == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> palette;
    for (int i = 0; i < 1 << kind.bits; ++i) palette.push_back(PngPaletteAt(i));
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
    std::vector<png_byte> alphas;
    for (int i = 0; i < kPngPaletteAlphas; ++i) alphas.push_back(PngPaletteAlphaAt(i));
    if (kind.transparent_colour) png_set_tRNS(png, info, alphas.data(), kPngPaletteAlphas, nullptr);
  } else {
    channels = png_get_channels(png, info);
  }
  png_write_info(png, info);
  // Rows in the format of the file: values of fewer than 8 bits are packed, those of 16 have the
  // upper byte first.
  std::vector<std::vector<png_byte>> rows(kind.height);
  std::vector<png_bytep> pointers;
  for (int y = 0; y < kind.height; ++y) {
    rows[y].resize((static_cast<size_t>(kind.width) * channels * kind.bits + 7) / 8);
    for (int n = 0; n < kind.width * channels; ++n) {
      const int value = PngValueAt(kind, n / channels, y, n % channels);
      if (kind.bits == 16) {
        rows[y][2 * n] = static_cast<png_byte>(value >> 8);
        rows[y][2 * n + 1] = static_cast<png_byte>(value);
      } else {
        const int bit = n * kind.bits;
        rows[y][bit / 8] |= static_cast<png_byte>(value << (8 - kind.bits - bit % 8));
      }
    }
    pointers.push_back(rows[y].data());
  }
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

}  // namespace penstock
