// SPDX-License-Identifier: Apache-2.0
// The images of I1 and H1, and what one writes by hand to prepare them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>
// jpeglib.h needs size_t and FILE first.
#include <jpeglib.h>

#include "dataplane/dataset/expr/arena.h"
#include "dataplane/dataset/function.h"

namespace penstock::bench {

inline constexpr int kSide = 224;  // pixels
inline constexpr int64_t kImageBytes = int64_t{kSide} * kSide * 3;

// Of JPEGs (4:2:0). By default an image of ImageNet as MLPerf Storage has it.
struct ImageSize {
  int width = 500, height = 375;  // pixels
  int64_t bytes = 114'660;        // about
};
inline constexpr ImageSize kPhotograph = {.width = 2000, .height = 1500, .bytes = 1'000'000};

// `count` JPEGs of that size, in whole.
std::vector<std::string> MakeImages(int count, const ImageSize& size = {});

// Decodes a random region, resizes it to kSide × kSide and mirrors half of them,
// as DecodeJpeg("").RandomResizedCrop(224, 224).RandomFlip() does: the same
// pixels for the same key. One decompressor and one buffer for all images.
class BareLoop {
 public:
  BareLoop();
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;
  ~BareLoop();
  // Writes kImageBytes to `out`. REQUIRES: a JPEG of three components that is
  // not damaged; libjpeg ends the program otherwise.
  void Run(const std::string& jpeg, const RandomKey& key, uint8_t* out);

 private:
  jpeg_decompress_struct info_;
  jpeg_error_mgr errors_;
  std::vector<uint8_t> pixels_;
  Arena arena_;
};

}  // namespace penstock::bench
