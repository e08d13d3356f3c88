// SPDX-License-Identifier: Apache-2.0
#include "bench/jpeg.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/expr/random.h"
#include "dataplane/dataset/image/resize.h"
#include "tests/dataplane/dataset/expr/make_jpeg.h"

namespace penstock::bench {

std::vector<std::string> MakeImages(int count, const ImageSize& size) {
  std::multimap<int64_t, std::string> by_distance;  // distance from the wanted size
  for (int quality = 50; quality <= 98; ++quality) {
    std::string jpeg = MakeJpeg({.width = size.width, .height = size.height, .quality = quality});
    const int64_t distance = std::abs(static_cast<int64_t>(jpeg.size()) - size.bytes);
    by_distance.emplace(distance, std::move(jpeg));
  }
  std::vector<std::string> images;
  for (auto& [distance, jpeg] : by_distance) {
    if (static_cast<int>(images.size()) < count) images.push_back(std::move(jpeg));
  }
  return images;
}

BareLoop::BareLoop() {
  info_.err = jpeg_std_error(&errors_);
  jpeg_create_decompress(&info_);
}

BareLoop::~BareLoop() {
  jpeg_destroy_decompress(&info_);
}

void BareLoop::Run(const std::string& jpeg, const RandomKey& key, uint8_t* out) {
  jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&info_, TRUE);
  const Region region =
      RandomRegion(KeyOfOp(key, 0), info_.image_height, info_.image_width, 0.08, 1.0);
  jpeg_start_decompress(&info_);
  constexpr int64_t kMcu = 16;  // pixels, for 4:2:0
  JDIMENSION left = static_cast<JDIMENSION>(std::max<int64_t>(0, region.x - kMcu));
  JDIMENSION width = static_cast<JDIMENSION>(
      std::min<int64_t>(info_.output_width, region.x + region.width + kMcu) - left);
  if (region.width < info_.output_width) jpeg_crop_scanline(&info_, &left, &width);
  const int64_t row_bytes = int64_t{info_.output_width} * 3;
  pixels_.resize(row_bytes * (region.height + 1));
  const int64_t skipped = std::max<int64_t>(0, region.y / kMcu * kMcu - kMcu);
  if (skipped > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(skipped));
  while (info_.output_scanline < region.y + region.height) {
    const int64_t y = int64_t{info_.output_scanline} - region.y;
    JSAMPROW row = pixels_.data() + (y < 0 ? region.height : y) * row_bytes;
    jpeg_read_scanlines(&info_, &row, 1);
  }
  jpeg_abort_decompress(&info_);
  ArenaScope scope(arena_);
  const ImageView<uint8_t> view{.first = pixels_.data() + (region.x - left) * 3,
                                .height = region.height,
                                .width = region.width,
                                .channels = 3,
                                .row_values = row_bytes};
  Resizer<uint8_t> resizer(view, {.height = kSide, .width = kSide}, {},
                           RandomMirror(KeyOfOp(key, 1), 0.5), arena_);
  for (int64_t y = 0; y < kSide; ++y) resizer.Row(y, out + y * kSide * 3);
}

}  // namespace penstock::bench
