// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/resize.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

// A result lies between two sources: lower + (upper - lower) * weight.
struct Between {
  int64_t lower = 0, upper = 0;
  float weight = 0;
};

Between Sources(int64_t result, int64_t from, int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  const float at = (static_cast<float>(result) + 0.5f) * scale - 0.5f;
  const float floor = std::floor(at);
  const auto lower = static_cast<int64_t>(floor);
  return {.lower = std::clamp<int64_t>(lower, 0, from - 1),
          .upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, from - 1),
          .weight = at - floor};
}

void Store(float value, float* out) {
  *out = value;
}
void Store(float value, uint8_t* out) {
  *out = static_cast<uint8_t>(value + 0.5f);
}

// One row between two others, over all columns.
template <class T>
void BlendRows(const T* lower, const T* upper, float weight, int64_t count, float* out) {
  for (int64_t n = 0; n < count; ++n) {
    const float from = static_cast<float>(lower[n]);
    out[n] = from + (static_cast<float>(upper[n]) - from) * weight;
  }
}

template <int kChannels, class T>
void BlendColumns(const float* row, const Between* columns, int64_t width, int64_t channels,
                  T* out) {
  const int64_t count = kChannels > 0 ? kChannels : channels;
  for (int64_t x = 0; x < width; ++x, out += count) {
    const float* lower = row + columns[x].lower;
    const float* upper = row + columns[x].upper;
    const float weight = columns[x].weight;
    for (int64_t c = 0; c < count; ++c) Store(lower[c] + (upper[c] - lower[c]) * weight, out + c);
  }
}

// Rows first, since that runs over neighbours in memory; then columns of the
// one row that came of it.
template <class T>
void Resize(const ImageView<T>& image, int64_t height, int64_t width, bool mirror, Arena& arena,
            T* out) {
  ArenaScope scope(arena);
  auto* columns = arena.AllocateArray<Between>(width);
  for (int64_t x = 0; x < width; ++x) {
    Between between = Sources(x, image.width, width);
    between.lower *= image.channels;
    between.upper *= image.channels;
    columns[mirror ? width - 1 - x : x] = between;
  }
  const int64_t row_values = image.width * image.channels;
  auto* row = arena.AllocateArray<float>(row_values);
  for (int64_t y = 0; y < height; ++y) {
    const Between rows = Sources(y, image.height, height);
    BlendRows(image.first + rows.lower * image.row_values,
              image.first + rows.upper * image.row_values, rows.weight, row_values, row);
    T* const to = out + y * width * image.channels;
    if (image.channels == 3)
      BlendColumns<3>(row, columns, width, 3, to);
    else if (image.channels == 1)
      BlendColumns<1>(row, columns, width, 1, to);
    else
      BlendColumns<0>(row, columns, width, image.channels, to);
  }
}

}  // namespace

void ResizeBilinear(const ImageView<uint8_t>& image, int64_t height, int64_t width, bool mirror,
                    Arena& arena, uint8_t* out) {
  Resize(image, height, width, mirror, arena, out);
}
void ResizeBilinear(const ImageView<float>& image, int64_t height, int64_t width, bool mirror,
                    Arena& arena, float* out) {
  Resize(image, height, width, mirror, arena, out);
}

}  // namespace penstock
