// SPDX-License-Identifier: Apache-2.0
// The images of I1 and H1, and the hand-written code that prepares them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>
// jpeglib.h needs size_t and FILE first.
#include <jpeglib.h>

#include "dataplane/dataset/expr/function.h"
#include "dataplane/memory/arena.h"

namespace penstock::bench {

inline constexpr int kSide = 224;  // pixels
inline constexpr int64_t kImageBytes = int64_t{kSide} * kSide * 3;

// The size of a JPEG (4:2:0). The default is that of an ImageNet image in MLPerf Storage.
struct ImageSize {
  int width = 500, height = 375;  // pixels
  int64_t bytes = 114'660;        // approximate
};
inline constexpr ImageSize kPhotograph = {.width = 2000, .height = 1500, .bytes = 1'000'000};

// Returns `count` JPEGs of that size.
std::vector<std::string> MakeImages(int count, const ImageSize& size = {});

// Decodes a random region, resizes it to kSide × kSide and mirrors half of the images, like
// DecodeJpeg("").RandomResizedCrop(224, 224).RandomFlip(): the same key gives the same pixels. Uses
// one decompressor and one buffer for all images.
class BareLoop {
 public:
  BareLoop();
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;
  ~BareLoop();
  // Writes kImageBytes to `out`. REQUIRES: an undamaged JPEG of three components; libjpeg ends the
  // program otherwise.
  void Run(const std::string& jpeg, const RandomKey& key, uint8_t* out);

 private:
  jpeg_decompress_struct info_;
  jpeg_error_mgr errors_;
  std::vector<uint8_t> pixels_;
  Arena arena_;
};

}  // namespace penstock::bench
