// SPDX-License-Identifier: Apache-2.0
// Synthetic JPEG images of every kind, written by libjpeg itself.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
// jpeglib.h needs size_t and FILE first.
#include <jpeglib.h>

namespace penstock {

struct JpegKind {
  const char* name = "4:2:0";
  int width = 131;
  int height = 97;
  int components = 3;  // 1: grey, 3: YCbCr, 4: CMYK
  J_COLOR_SPACE stored = JCS_YCbCr;
  int horizontal = 2;  // luma samples per chroma sample
  int vertical = 2;
  bool progressive = false;
  bool adobe_inverted = false;
  int quality = 85;
  int restart_rows = 0;
  bool arithmetic = false;
};

// Returns a smooth pattern with some noise: neither flat nor incompressible.
inline uint8_t PatternAt(int x, int y, int channel) {
  uint32_t noise = (x * 73856093u) ^ (y * 19349663u) ^ (channel * 83492791u);
  noise = (noise ^ (noise >> 13)) * 0x5bd1e995u;
  const int wave = (x * (2 + channel) + y * (3 - channel)) % 256;
  const int edge = (x / 17 + y / 11) % 2 * 60;
  return static_cast<uint8_t>((wave * 2 / 3 + edge + static_cast<int>(noise >> 27)) & 0xFF);
}

inline std::string MakeJpeg(const JpegKind& kind) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long bytes = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&info, &memory, &bytes);
  info.image_width = kind.width;
  info.image_height = kind.height;
  info.input_components = kind.components;
  info.in_color_space = kind.components == 1   ? JCS_GRAYSCALE
                        : kind.components == 3 ? JCS_RGB
                                               : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kind.quality, TRUE);
  jpeg_set_colorspace(&info, kind.stored);
  if (kind.components == 3) {
    info.comp_info[0].h_samp_factor = kind.horizontal;
    info.comp_info[0].v_samp_factor = kind.vertical;
  }
  if (kind.components == 4) info.write_Adobe_marker = kind.adobe_inverted;
  if (kind.progressive) jpeg_simple_progression(&info);
  info.restart_in_rows = kind.restart_rows;
  info.arith_code = kind.arithmetic;
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(kind.width) * kind.components);
  while (info.next_scanline < info.image_height) {
    for (int x = 0; x < kind.width; ++x)
      for (int c = 0; c < kind.components; ++c)
        row[static_cast<size_t>(x) * kind.components + c] =
            PatternAt(x, static_cast<int>(info.next_scanline), c);
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string result(reinterpret_cast<char*>(memory), bytes);
  std::free(memory);
  return result;
}

inline std::vector<JpegKind> AllJpegKinds() {
  return {
      {.name = "4:2:0"},
      {.name = "4:2:2", .vertical = 1},
      {.name = "4:4:0", .horizontal = 1},
      {.name = "4:4:4", .horizontal = 1, .vertical = 1},
      {.name = "4:1:1", .horizontal = 4, .vertical = 1},
      {.name = "4:1:0", .horizontal = 4},
      {.name = "4:4:1", .horizontal = 1, .vertical = 4},
      {.name = "arithmetic 4:2:0", .arithmetic = true},
      {.name = "arithmetic progressive 4:2:2",
       .vertical = 1,
       .progressive = true,
       .arithmetic = true},
      {.name = "progressive 4:2:0", .progressive = true},
      {.name = "progressive 4:4:4", .horizontal = 1, .vertical = 1, .progressive = true},
      {.name = "4:2:0 with restarts", .restart_rows = 1},
      {.name = "RGB", .stored = JCS_RGB, .horizontal = 1, .vertical = 1},
      {.name = "grey", .components = 1, .stored = JCS_GRAYSCALE},
      {.name = "CMYK", .components = 4, .stored = JCS_CMYK},
      {.name = "CMYK inverted", .components = 4, .stored = JCS_CMYK, .adobe_inverted = true},
      {.name = "YCCK inverted", .components = 4, .stored = JCS_YCCK, .adobe_inverted = true},
      {.name = "4:2:0 tiny", .width = 5, .height = 3},
      {.name = "4:2:0 of whole blocks", .width = 128, .height = 96},
  };
}

}  // namespace penstock
