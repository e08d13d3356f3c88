// SPDX-License-Identifier: Apache-2.0
// I1: JPEG images of 500 × 375 (4:2:0, about 115 kB). A random crop is resized to 224 × 224 and
// flipped half of the time. Measures images per CPU-second of one thread with a bound function,
// compared with a plain libjpeg-turbo loop that decodes the same regions and resizes them with the
// same routine. One iteration is a pair: a block of images with the function, then the same block
// with the loop.
//
// Scaled: the same with images of 2000 × 1500, decoded exactly and with scaling in the decoder.
// docs/images.md has the differences between the two results.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/jpeg.h"
#include "dataplane/dataset/expr/function.h"
#include "penstock/map.h"
#include "tests/dataplane/dataset/expr/make_jpeg.h"

namespace penstock::bench {
namespace {

constexpr int kBlock = 256;  // images; about half a second

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The rows of a batch in its own memory.
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

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::shared_ptr<const BoundFunction> CropWith(JpegScaling scaling) {
  return *BoundFunction::Bind(*Trace(
      DecodeJpeg("", {.scaling = scaling}).RandomResizedCrop(kSide, kSide).RandomFlip(), Bytes()));
}

void I1(benchmark::State& state) {
  const std::string jpeg = MakeImages(1).front();
  const auto function = CropWith(JpegScaling::kExact);
  BareLoop loop;
  std::vector<uint8_t> ours(kImageBytes), bare(kImageBytes);
  std::vector<double> ours_rate, bare_rate, ratio;
  uint64_t element = 0;
  for (auto _ : state) {
    const double start = CpuSeconds();
    for (int n = 0; n < kBlock; ++n) RunOurs(*function, jpeg, element + n, ours.data());
    const double middle = CpuSeconds();
    for (int n = 0; n < kBlock; ++n) loop.Run(jpeg, KeyOf(element + n), bare.data());
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

void Scaled(benchmark::State& state) {
  constexpr int kFew = 32;
  const std::string jpeg = MakeJpeg({.width = 2000, .height = 1500});
  const auto exact = CropWith(JpegScaling::kExact), scaled = CropWith(JpegScaling::kDct);
  std::vector<uint8_t> row(kImageBytes);
  std::vector<double> exact_rate, scaled_rate, ratio;
  uint64_t element = 0;
  for (auto _ : state) {
    const double start = CpuSeconds();
    for (int n = 0; n < kFew; ++n) RunOurs(*exact, jpeg, element + n, row.data());
    const double middle = CpuSeconds();
    for (int n = 0; n < kFew; ++n) RunOurs(*scaled, jpeg, element + n, row.data());
    const double end = CpuSeconds();
    element += kFew;
    exact_rate.push_back(kFew / (middle - start));
    scaled_rate.push_back(kFew / (end - middle));
    ratio.push_back((middle - start) / (end - middle));
  }
  state.counters["exact_per_cpu_s"] = Median(exact_rate);
  state.counters["scaled_per_cpu_s"] = Median(scaled_rate);
  state.counters["ratio"] = Median(ratio);
  state.counters["jpeg_bytes"] = static_cast<double>(jpeg.size());
}
BENCHMARK(Scaled)->Iterations(7)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::bench

BENCHMARK_MAIN();
