// SPDX-License-Identifier: Apache-2.0
// I1: JPEG images of 500 × 375 (4:2:0, about 115 kB), a random crop resized to
// 224 × 224 and flipped half of the time: images per CPU-second of one thread
// through a bound function, beside a bare libjpeg-turbo loop that decodes the
// same regions and resizes them by the same routine. One iteration is a pair:
// a block of images through the one, then the same through the other.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
// jpeglib.h needs size_t and FILE first.
#include <jpeglib.h>

#include "dataplane/dataset/expr/arena.h"
#include "dataplane/dataset/expr/image_steps.h"
#include "dataplane/dataset/expr/random.h"
#include "dataplane/dataset/expr/resize.h"
#include "dataplane/dataset/function.h"
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/make_jpeg.h"

namespace penstock {
namespace {

constexpr int kSide = 224;
constexpr size_t kImageBytes = size_t{kSide} * kSide * 3;
constexpr size_t kWantedBytes = 115'000;
constexpr int kBlock = 256;  // images; about half a second

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The image whose size is nearest to the wanted one.
std::string I1Image() {
  std::string best;
  for (int quality = 50; quality <= 98; ++quality) {
    std::string jpeg = MakeJpeg({.width = 500, .height = 375, .quality = quality});
    const auto distance = [](const std::string& image) {
      return std::abs(static_cast<double>(image.size()) - static_cast<double>(kWantedBytes));
    };
    if (best.empty() || distance(jpeg) < distance(best)) best = std::move(jpeg);
  }
  return best;
}

// Rows of a batch in memory of its own.
class Rows final : public ResultSink {
 public:
  absl::StatusOr<absl::Span<std::byte>> Place(size_t, DType, absl::Span<const int64_t>) override {
    return absl::MakeSpan(reinterpret_cast<std::byte*>(bytes), kImageBytes);
  }
  absl::Status Copy(size_t, const Tensor&) override {
    return absl::InternalError("the image was not made in place");
  }
  uint8_t* bytes = nullptr;
};

RandomKey KeyOf(uint64_t element) {
  return {.seed = 17, .element = element};
}

void RunOurs(const BoundFunction& function, const std::string& jpeg, uint64_t element,
             uint8_t* out) {
  const uint64_t offsets[] = {0, jpeg.size()};
  const Tensor input(kString, {}, offsets, jpeg.data());
  Rows sink;
  sink.bytes = out;
  const absl::Status status = function.Run({&input, 1}, KeyOf(element), sink);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    std::exit(1);
  }
}

// What one writes by hand: one decompressor and one buffer for all images.
class BareLoop {
 public:
  BareLoop() {
    info_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&info_);
  }
  ~BareLoop() { jpeg_destroy_decompress(&info_); }

  void Run(const std::string& jpeg, uint64_t element, uint8_t* out) {
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&info_, TRUE);
    const RandomKey key = KeyOf(element);
    const Region region =
        RandomRegion(KeyOfOp(key, 0), info_.image_height, info_.image_width, 0.08, 1.0);
    jpeg_start_decompress(&info_);
    constexpr int64_t kMcu = 16;  // pixels, of 4:2:0
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
    ResizeBilinear({.first = pixels_.data() + (region.x - left) * 3,
                    .height = region.height,
                    .width = region.width,
                    .channels = 3,
                    .row_values = row_bytes},
                   kSide, kSide, RandomMirror(KeyOfOp(key, 1), 0.5), arena_, out);
  }

 private:
  jpeg_decompress_struct info_;
  jpeg_error_mgr errors_;
  std::vector<uint8_t> pixels_;
  Arena arena_;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void I1(benchmark::State& state) {
  const std::string jpeg = I1Image();
  const auto function = *BoundFunction::Bind(
      *Trace(DecodeJpeg("").RandomResizedCrop(kSide, kSide).RandomFlip(), Bytes()));
  BareLoop loop;
  std::vector<uint8_t> ours(kImageBytes), bare(kImageBytes);
  std::vector<double> ours_rate, bare_rate, ratio;
  uint64_t element = 0;
  for (auto _ : state) {
    const double start = CpuSeconds();
    for (int n = 0; n < kBlock; ++n) RunOurs(*function, jpeg, element + n, ours.data());
    const double middle = CpuSeconds();
    for (int n = 0; n < kBlock; ++n) loop.Run(jpeg, element + n, bare.data());
    const double end = CpuSeconds();
    element += kBlock;
    if (ours != bare) {
      state.SkipWithError("the two made different pixels");
      return;
    }
    ours_rate.push_back(kBlock / (middle - start));
    bare_rate.push_back(kBlock / (end - middle));
    ratio.push_back((end - middle) / (middle - start));
  }
  state.counters["ours_per_cpu_s"] = Median(ours_rate);
  state.counters["loop_per_cpu_s"] = Median(bare_rate);
  state.counters["ratio"] = Median(ratio);
  state.counters["ratio_min"] = *std::min_element(ratio.begin(), ratio.end());
  state.counters["jpeg_bytes"] = static_cast<double>(jpeg.size());
}
BENCHMARK(I1)->Iterations(15)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
