// SPDX-License-Identifier: Apache-2.0
// Measures copies of elements to a GPU, compared with raw copies from page-locked memory, and steps
// of a device stage, compared with a kernel that only copies. Prints one JSON object a line.
// Without a GPU, prints one line with the reason why nothing was measured. The compared cases
// alternate. Times are from the host's clock, over windows long enough that reading the clock costs
// nothing and the GPU runs at its full clock rate.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/device/device_copy_engine.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"
#include "penstock/device_stage.h"

namespace penstock {
namespace {

constexpr int kRounds = 5;        // of each measurement; the median is printed
constexpr int kRepetitions = 50;  // between two readings of the clock
constexpr absl::Duration kWindow = absl::Milliseconds(60);
constexpr int kPlaces = 4;

// Work that is queued on the meter's stream repeatedly and moves `bytes` bytes each time.
struct Work {
  std::string what;
  double bytes;
  std::function<absl::Status()> repetition;
};

struct Meter {
  static absl::StatusOr<Meter> Create(DeviceBackend& gpu) {
    Meter meter;
    ASSIGN_OR_RETURN(meter.stream, gpu.MakeStream(0));
    ASSIGN_OR_RETURN(meter.done, gpu.MakeEvent(0));
    return meter;
  }

  // Returns the bytes per second over a window.
  absl::StatusOr<double> Rate(const Work& work) {
    const absl::Time begun = absl::Now();
    absl::Duration took;
    double bytes = 0;
    do {
      for (int i = 0; i < kRepetitions; ++i) RETURN_IF_ERROR(work.repetition());
      RETURN_IF_ERROR(stream->Record(*done));
      RETURN_IF_ERROR(done->Wait());
      bytes += work.bytes * kRepetitions;
      took = absl::Now() - begun;
    } while (took < kWindow);
    return bytes / absl::ToDoubleSeconds(took);
  }

  // Prints the median of each work. The first one is the reference for the others.
  absl::Status Measure(const std::vector<Work>& works) {
    std::vector<std::vector<double>> rates(works.size());
    for (int round = 0; round <= kRounds; ++round) {
      for (size_t i = 0; i < works.size(); ++i) {
        ASSIGN_OR_RETURN(const double rate, Rate(works[i]));
        if (round > 0) rates[i].push_back(rate);  // round 0 warms up
      }
    }
    for (size_t i = 0; i < works.size(); ++i) {
      std::sort(rates[i].begin(), rates[i].end());
      std::printf(
          "{\"what\": \"%s\", \"beside\": \"%s\", \"gb_per_second\": %.2f, \"least\": %.2f, "
          "\"most\": %.2f}\n",
          works[i].what.c_str(), i == 0 ? "" : works[0].what.c_str(), rates[i][kRounds / 2] / 1e9,
          rates[i].front() / 1e9, rates[i].back() / 1e9);
    }
    return absl::OkStatus();
  }

  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<DeviceEvent> done;
};

absl::Status MeasureLanding(DeviceBackend& gpu, Meter& meter, int64_t bytes) {
  const std::vector<uint8_t> values(static_cast<size_t>(bytes), 7);
  const int64_t dims[] = {bytes};
  ASSIGN_OR_RETURN(const Element element,
                   MakeElement(DefaultPool(), {Tensor(kUInt8, dims, values.data())},
                               Spec(Dense(kUInt8, {bytes}))));
  ASSIGN_OR_RETURN(const std::unique_ptr<Registration> locked,
                   gpu.page_lock().Register(element.block()));
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                   gpu.Allocate(0, static_cast<size_t>(bytes)));
  const std::string size = std::to_string(bytes >> 10) + " KiB";
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceCopyEngine> engine,
                   DeviceCopyEngine::Create(
                       gpu, {.places = kPlaces, .place_bytes = static_cast<size_t>(bytes)}));
  const auto copy = [&] {
    return meter.stream->CopyToDevice(memory->address(), element.tensor(0).raw(),
                                      static_cast<size_t>(bytes));
  };
  const auto copy_element = [&]() -> absl::Status {
    while (engine->counters().places_in_use == kPlaces) engine->Progress();
    ASSIGN_OR_RETURN(const DeviceElement on_device, engine->CopyToDevice(element.Share()));
    return on_device.ReadyOn(*meter.stream);
  };
  const auto moved = static_cast<double>(bytes);
  return meter.Measure(
      {{"raw copy of " + size, moved, copy}, {"landing of " + size, moved, copy_element}});
}

absl::Status MeasureStage(DeviceBackend& gpu, Meter& meter) {
  constexpr int64_t kBatch = 256, kSide = 224, kChannels = 3;
  constexpr int64_t kValues = kBatch * kSide * kSide * kChannels;
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> in, gpu.Allocate(0, kValues * 4));
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> out, gpu.Allocate(0, kValues * 4));
  std::vector<int64_t> indices(kBatch);
  for (int64_t i = 0; i < kBatch; ++i) indices[static_cast<size_t>(i)] = i;
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> numbers,
                   gpu.Allocate(0, indices.size() * sizeof(int64_t)));
  RETURN_IF_ERROR(meter.stream->CopyToDevice(numbers->address(), indices.data(),
                                             indices.size() * sizeof(int64_t)));
  const auto launch = [&](const StageStep& step) {
    return LaunchStage(0, meter.stream->native(), step);
  };
  const GatherRows copy{.rows = in->address(),
                        .num_rows = kBatch,
                        .row_bytes = kValues / kBatch * 4,
                        .indices = static_cast<const int64_t*>(numbers->address()),
                        .count = kBatch,
                        .out = out->address()};
  std::vector<Work> works{{"a kernel that copies (gather of all rows)", 8.0 * kValues,
                           [&launch, copy] { return launch(copy); }}};
  for (const DType dtype : {kFloat16, kBFloat16, kFloat32}) {
    const ImagesToPlanes images{.images = in->address(),
                                .batch = kBatch,
                                .height = kSide,
                                .width = kSide,
                                .channels = kChannels,
                                .dtype = dtype,
                                .planes = out->address()};
    works.push_back({"images to planes of " + Name(dtype),
                     static_cast<double>(kValues) * (1 + SizeOf(dtype)),
                     [&launch, images] { return launch(images); }});
  }
  return meter.Measure(works);
}

absl::Status MeasureAll() {
  DeviceBackend& gpu = LinkedDeviceBackend();
  RETURN_IF_ERROR(gpu.Count().status());
  ASSIGN_OR_RETURN(Meter meter, Meter::Create(gpu));
  for (const int64_t bytes : {int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20})
    RETURN_IF_ERROR(MeasureLanding(gpu, meter, bytes));
  return MeasureStage(gpu, meter);
}

}  // namespace
}  // namespace penstock

int main() {
  const absl::Status status = penstock::MeasureAll();
  if (status.ok()) return 0;
  std::printf("{\"not_measured\": \"%s\"}\n", std::string(status.message()).c_str());
  return absl::IsNotFound(status) ? 0 : 1;
}
