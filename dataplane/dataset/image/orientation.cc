// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/image/orientation.h"

#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;  // the tag's type

// Reads numbers of a TIFF block in its own byte order. Numbers outside the block are 0.
class TiffReader {
 public:
  explicit TiffReader(std::string_view bytes) : bytes_(bytes), big_(bytes.starts_with("MM")) {}
  uint32_t Short(size_t at) const { return Number(at, 2); }
  uint32_t Long(size_t at) const { return Number(at, 4); }

 private:
  uint32_t Number(size_t at, size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const auto byte = static_cast<uint8_t>(bytes_[big_ ? at + i : at + size - 1 - i]);
      value = value << 8 | byte;
    }
    return value;
  }
  std::string_view bytes_;
  bool big_;
};

Turn TurnOfValue(uint32_t value) {
  switch (value) {
    case 2:
      return {.mirror_x = true};
    case 3:
      return {.mirror_x = true, .mirror_y = true};
    case 4:
      return {.mirror_y = true};
    case 5:
      return {.transpose = true};
    case 6:
      return {.mirror_x = true, .transpose = true};
    case 7:
      return {.mirror_x = true, .mirror_y = true, .transpose = true};
    case 8:
      return {.mirror_y = true, .transpose = true};
    default:
      return {};
  }
}

}  // namespace

Turn TurnOfExif(std::string_view tiff) {
  if (!tiff.starts_with(std::string_view("II*\0", 4)) &&
      !tiff.starts_with(std::string_view("MM\0*", 4)))
    return {};
  const TiffReader reader(tiff);
  const size_t directory = reader.Long(4);
  const uint32_t entries = reader.Short(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + size_t{12} * i;
    if (entry >= tiff.size()) break;
    if (reader.Short(entry) != kOrientationTag) continue;
    return reader.Short(entry + 2) == kShort ? TurnOfValue(reader.Short(entry + 8)) : Turn{};
  }
  return {};
}

Turn TurnOfJpeg(std::string_view file) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  constexpr uint8_t kApp1 = 0xE1, kStartOfScan = 0xDA;
  size_t at = 2;  // after the start of the image
  while (at + 4 <= file.size() && static_cast<uint8_t>(file[at]) == 0xFF) {
    const auto marker = static_cast<uint8_t>(file[at + 1]);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    if (marker == kStartOfScan) break;
    const size_t length =
        static_cast<uint8_t>(file[at + 2]) << 8 | static_cast<uint8_t>(file[at + 3]);
    const std::string_view segment = file.substr(at + 4, length < 2 ? 0 : length - 2);
    if (marker == kApp1 && segment.starts_with(kExif))
      return TurnOfExif(segment.substr(kExif.size()));
    at += 2 + length;
  }
  return {};
}

Region StoredRegion(const Region& upright, const ImageSize& size, const Turn& turn) {
  Region stored = upright;
  if (turn.mirror_x) stored.x = size.width - upright.x - upright.width;
  if (turn.mirror_y) stored.y = size.height - upright.y - upright.height;
  if (turn.transpose) {
    std::swap(stored.x, stored.y);
    std::swap(stored.width, stored.height);
  }
  return stored;
}

void CopyUpright(const Pixels& stored, const Turn& turn, const ImageSize& size, size_t pixel_bytes,
                 uint8_t* out) {
  const auto pixel = static_cast<int64_t>(pixel_bytes);
  const int64_t step_x = turn.transpose ? stored.row_bytes : pixel;
  const int64_t step_y = turn.transpose ? pixel : stored.row_bytes;
  for (int64_t y = 0; y < size.height; ++y) {
    const uint8_t* row = stored.first + (turn.mirror_y ? size.height - 1 - y : y) * step_y;
    for (int64_t x = 0; x < size.width; ++x, out += pixel)
      std::memcpy(out, row + (turn.mirror_x ? size.width - 1 - x : x) * step_x, pixel_bytes);
  }
}

}  // namespace penstock
