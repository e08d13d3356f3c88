// SPDX-License-Identifier: Apache-2.0
// Needs a real GPU: a graph that the trainer captures while our threads work on the same device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "dataplane/memory/device/device.h"

namespace penstock {
namespace {

TEST(CaptureOnGpu, SurvivesTheWorkOfOurOtherThreads) {
  DeviceBackend& gpu = LinkedDeviceBackend();
  if (!gpu.Count().ok() && DeviceRequired()) FAIL() << DescribeDevices(gpu);
  if (!gpu.Count().ok()) GTEST_SKIP() << DescribeDevices(gpu);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([&] {
    EXPECT_TRUE(gpu.Allocate(0, 1 << 20).ok());
    const auto event = gpu.MakeEvent(0);
    ASSERT_TRUE(event.ok()) << event.status();
    EXPECT_TRUE((*event)->Done().ok());
    std::vector<std::byte> memory(1 << 20);
    EXPECT_TRUE(gpu.page_lock().Register(absl::MakeSpan(memory)).ok());
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  if (graph != nullptr) {
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace penstock
