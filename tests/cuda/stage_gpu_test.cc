// SPDX-License-Identifier: Apache-2.0
// Compares the kernels of a stage with its host form, on a real GPU. Copies are bitwise equal;
// normalised values differ by at most one unit in the last place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "dataplane/memory/device/device.h"
#include "penstock/device_stage.h"
#include "tests/dataplane/memory/device_conformance.h"
#include "tests/dataplane/memory/stage_samples.h"

namespace penstock {
namespace {

class DeviceStageOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const bool there = gpu_.Count().ok();
    if (!there && DeviceRequired()) FAIL() << DescribeDevices(gpu_);
    if (!there) GTEST_SKIP() << DescribeDevices(gpu_);
    stream_ = gpu_.MakeStream(0).value();
    done_ = gpu_.MakeEvent(0).value();
  }

  // Memory on the device with `values` in it.
  template <class T>
  T* OnGpu(const std::vector<T>& values) {
    memory_.push_back(gpu_.Allocate(0, std::max<size_t>(values.size() * sizeof(T), 1)).value());
    void* const address = memory_.back()->address();
    EXPECT_TRUE(stream_->CopyToDevice(address, values.data(), values.size() * sizeof(T)).ok());
    Wait();
    return static_cast<T*>(address);
  }
  std::vector<uint8_t> FromGpu(const void* address, size_t bytes) {
    std::vector<uint8_t> values(bytes);
    EXPECT_TRUE(stream_->CopyToHost(values.data(), address, bytes).ok());
    Wait();
    return values;
  }
  void Launch(const StageStep& step) {
    const absl::Status launched = LaunchStage(0, stream_->native(), step);
    ASSERT_TRUE(launched.ok()) << launched;
  }
  void Wait() {
    ASSERT_TRUE(stream_->Record(*done_).ok());
    ASSERT_TRUE(done_->Wait().ok());
  }

  DeviceBackend& gpu_ = LinkedDeviceBackend();
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceEvent> done_;
};

// Returns the rank of a floating-point number of this many bytes among all numbers of its format.
int64_t PlaceOf(const uint8_t* at, size_t bytes) {
  int64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  const int64_t sign = int64_t{1} << (bytes * 8 - 1);
  return (bits & sign) != 0 ? sign - bits : bits;
}

TEST_F(DeviceStageOnGpu, ImagesBecomePlanesWithinOneUnitInTheLastPlace) {
  for (const ImagesSample& sample : ImagesSamples()) {
    const int64_t count = sample.batch * sample.height * sample.width * sample.channels;
    const size_t bytes = SizeOf(sample.dtype);
    const std::vector<uint8_t> images = RandomBytes(count);
    std::vector<uint8_t> expected(static_cast<size_t>(count) * bytes);
    const ImagesToPlanes step =
        ImagesToPlanes{images.data(),   sample.batch, sample.height,  sample.width,
                       sample.channels, sample.dtype, expected.data()}
            .Normalized(kMean, kDeviation);
    ASSERT_TRUE(RunStage(step).ok());
    ImagesToPlanes on_gpu = step;
    on_gpu.images = OnGpu(images);
    on_gpu.planes = OnGpu(std::vector<uint8_t>(expected.size()));
    Launch(on_gpu);
    const std::vector<uint8_t> planes = FromGpu(on_gpu.planes, expected.size());
    for (size_t i = 0; i < planes.size(); i += bytes) {
      ASSERT_LE(std::abs(PlaceOf(&planes[i], bytes) - PlaceOf(&expected[i], bytes)), 1)
          << Name(sample.dtype) << " value " << i / bytes;
    }
  }
}

TEST_F(DeviceStageOnGpu, RaggedRowsArePaddedBitByBit) {
  constexpr int64_t kRows = 1000;
  const std::vector<int64_t> splits = SampleSplits(kRows);
  for (const size_t bytes : {1, 2, 4, 8}) {
    const std::vector<uint8_t> values = RandomBytes(splits.back() * static_cast<int64_t>(bytes));
    std::vector<uint8_t> expected(kRows * kSampleWidth * bytes);
    RaggedToPadded step{values.data(),   splits.data(),     kRows, kSampleWidth, bytes,
                        expected.data(), 0x0807060504030201};
    ASSERT_TRUE(RunStage(step).ok());
    step.values = OnGpu(values);
    step.row_splits = OnGpu(splits);
    step.padded = OnGpu(std::vector<uint8_t>(expected.size()));
    Launch(step);
    EXPECT_EQ(FromGpu(step.padded, expected.size()), expected);
  }
}

TEST_F(DeviceStageOnGpu, RowsAreGatheredBitByBit) {
  const std::vector<int64_t> indices = {99, 0, -1, 100, 7, 7};
  for (const size_t bytes : {1, 3, 4, 12, 16, 4096}) {
    const std::vector<uint8_t> rows = RandomBytes(100 * static_cast<int64_t>(bytes));
    std::vector<uint8_t> expected(indices.size() * bytes);
    GatherRows step{
        rows.data(),    100, bytes, indices.data(), static_cast<int64_t>(indices.size()),
        expected.data()};
    ASSERT_TRUE(RunStage(step).ok());
    step.rows = OnGpu(rows);
    step.indices = OnGpu(indices);
    step.out = OnGpu(std::vector<uint8_t>(expected.size()));
    Launch(step);
    EXPECT_EQ(FromGpu(step.out, expected.size()), expected) << bytes;
  }
}

}  // namespace
}  // namespace penstock
