// SPDX-License-Identifier: Apache-2.0
// Breaks each rule once on purpose, and makes the correct call beside it.
#include "tests/cuda/pretended_cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace penstock::pretended_cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr size_t kBytes = 64;

class PretendedCuda : public testing::Test {
 protected:
  // There are two devices. The program names device 1, which is current on this thread.
  PretendedCuda() {
    Begin({.devices = 2, .named = {1}});
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaHostRegister(locked_.data(), kBytes, cudaHostRegisterPortable), cudaSuccess);
    EXPECT_THAT(Violations(), IsEmpty());
  }
  // Each case takes its own violations.
  ~PretendedCuda() override { EXPECT_THAT(Violations(), IsEmpty()); }

  cudaError_t CopyToDevice(const void* host) {
    return cudaMemcpyAsync(memory_, host, kBytes, cudaMemcpyHostToDevice, stream_);
  }
  cudaError_t CopyToHost(void* host) {
    return cudaMemcpyAsync(host, memory_, kBytes, cudaMemcpyDeviceToHost, stream_);
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  void* memory_ = nullptr;
  std::array<std::byte, kBytes> locked_{}, pageable_{};
};

TEST_F(PretendedCuda, RecordsAnAsynchronousCopyOfPageableMemory) {
  EXPECT_EQ(CopyToDevice(locked_.data()), cudaSuccess);
  EXPECT_EQ(CopyToHost(locked_.data()), cudaSuccess);
  EXPECT_THAT(Violations(), IsEmpty());

  EXPECT_EQ(CopyToDevice(pageable_.data()), cudaSuccess);
  EXPECT_EQ(CopyToHost(pageable_.data()), cudaSuccess);
  EXPECT_THAT(TakeViolations(), ElementsAre("cudaMemcpyAsync from pageable memory",
                                            "cudaMemcpyAsync to pageable memory"));
}

TEST_F(PretendedCuda, RecordsACopyOfMemoryThatAnotherDeviceAloneHasPageLocked) {
  Begin({.devices = 2, .named = {0, 1}});
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  std::array<std::byte, kBytes> portable;
  EXPECT_EQ(cudaHostRegister(pageable_.data(), kBytes, cudaHostRegisterDefault), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(portable.data(), kBytes, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
  EXPECT_EQ(CopyToDevice(portable.data()), cudaSuccess);
  EXPECT_THAT(Violations(), IsEmpty());
  EXPECT_EQ(CopyToDevice(pageable_.data()), cudaSuccess);
  EXPECT_THAT(TakeViolations(), ElementsAre("cudaMemcpyAsync from pageable memory"));
}

TEST_F(PretendedCuda, RecordsACallThatACaptureForbids) {
  const auto capture = [&](auto call) {
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    std::thread([&] {
      EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
      call();
    }).join();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return ended;
  };
  EXPECT_EQ(capture([&] {
              cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
              EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
              EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
              EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
              void* more = nullptr;
              EXPECT_EQ(cudaMalloc(&more, kBytes), cudaSuccess);
              EXPECT_EQ(cudaFree(more), cudaSuccess);
            }),
            cudaSuccess);
  EXPECT_THAT(Violations(), IsEmpty());

  EXPECT_EQ(capture([&] { EXPECT_EQ(cudaEventQuery(event_), cudaErrorStreamCaptureUnsupported); }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(capture([&] {
              void* more = nullptr;
              EXPECT_EQ(cudaMalloc(&more, kBytes), cudaErrorStreamCaptureUnsupported);
            }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(capture([&] {
              EXPECT_EQ(cudaHostUnregister(locked_.data()), cudaErrorStreamCaptureUnsupported);
            }),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_THAT(TakeViolations(),
              ElementsAre(HasSubstr("cudaEventQuery while another thread captures"),
                          HasSubstr("cudaMalloc while another thread captures"),
                          HasSubstr("cudaHostUnregister while another thread captures")));
}

TEST_F(PretendedCuda, RecordsConflictsWithACaptureInAnyMode) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  cudaEvent_t inside = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&inside, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(inside, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, inside, 0), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
  EXPECT_THAT(Violations(), IsEmpty());

  EXPECT_EQ(cudaEventQuery(inside), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_, 0), cudaErrorStreamCaptureIsolation);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_THAT(TakeViolations(),
              ElementsAre("cudaEventQuery of an event that was recorded in a capture",
                          HasSubstr("cudaStreamWaitEvent in a capture")));
}

TEST_F(PretendedCuda, RecordsACallWithoutACurrentContext) {
  std::thread([&] {
    CUcontext context = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPushCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
    EXPECT_EQ(cuCtxPopCurrent(&context), CUDA_SUCCESS);
    EXPECT_THAT(Violations(), IsEmpty());
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);  // on device 0, which it did not name
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0);
  }).join();
  EXPECT_THAT(TakeViolations(), ElementsAre("cudaMalloc without a current context",
                                            HasSubstr("cudaMalloc made a context on device 0")));
}

TEST_F(PretendedCuda, RecordsUsesUnderAnotherDevicesContext) {
  Begin({.devices = 2, .named = {0, 1}});
  void* memory = nullptr;
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_THAT(Violations(), IsEmpty());

  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t its = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&its, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(its, event_, 0), cudaSuccess);  // across devices, which CUDA allows
  EXPECT_THAT(Violations(), IsEmpty());
  cudaEventRecord(event_, its);
  cudaStreamWaitEvent(stream_, event_, 0);
  cudaFree(memory);
  EXPECT_THAT(
      TakeViolations(),
      ElementsAre("cudaEventRecord under the context of device 1: the event is of device 0",
                  "cudaStreamWaitEvent under the context of device 1: the stream is of device 0",
                  "cudaFree under the context of device 1: the memory is of device 0"));
}

TEST_F(PretendedCuda, RecordsWaitsForTheDeviceInsideAStep) {
  const auto wait = [&] {
    void* more = nullptr;
    EXPECT_EQ(cudaMalloc(&more, kBytes), cudaSuccess);
    EXPECT_EQ(cudaFree(more), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaHostRegister(pageable_.data(), kBytes, cudaHostRegisterPortable), cudaSuccess);
    EXPECT_EQ(cudaHostUnregister(pageable_.data()), cudaSuccess);
    EXPECT_EQ(cudaHostAlloc(&more, kBytes, cudaHostAllocPortable), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(more), cudaSuccess);
  };
  wait();
  {
    const Step step;
    EXPECT_EQ(CopyToDevice(locked_.data()), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  }
  EXPECT_THAT(Violations(), IsEmpty());
  {
    const Step step;
    wait();
  }
  const std::vector<std::string> violations = TakeViolations();
  EXPECT_THAT(violations, SizeIs(9));
  EXPECT_THAT(violations, testing::Each(HasSubstr(" inside a step")));
}

TEST_F(PretendedCuda, RecordsAContextOnADeviceThatIsNotNamed) {
  cudaDeviceProp properties;
  char address[32];
  CUdevice device;
  unsigned flags;
  int active;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetPCIBusId(address, sizeof(address), 0), cudaSuccess);
  EXPECT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxGetState(device, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_FALSE(HasContext(0));
  EXPECT_TRUE(HasContext(1));
  EXPECT_THAT(Violations(), IsEmpty());

  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
  EXPECT_TRUE(HasContext(0));
  EXPECT_THAT(TakeViolations(),
              ElementsAre("cuDevicePrimaryCtxRetain made a context on device 0, which the program "
                          "has not named"));
}

TEST_F(PretendedCuda, RecordsMemoryThatGoesUnderACopy) {
  EXPECT_EQ(CopyToDevice(locked_.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(locked_.data()), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(locked_.data(), kBytes, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(CopyToHost(locked_.data()), cudaSuccess);
  EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  EXPECT_THAT(TakeViolations(),
              ElementsAre("cudaHostUnregister of memory that a copy which is not done uses",
                          "cudaFree of memory that a copy which is not done uses"));

  EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
  EXPECT_EQ(CopyToDevice(locked_.data()), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);  // its work is done all the same
  EXPECT_EQ(Pending(), 1);
  RunAll();
  EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(locked_.data()), cudaSuccess);
}

// Not rules, but behaviour that reveals mistakes with events.
TEST_F(PretendedCuda, DoesWorkAfterTheCallThatAsksForIt) {
  locked_.fill(std::byte{1});
  EXPECT_EQ(CopyToDevice(locked_.data()), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  locked_.fill(std::byte{2});  // too early: the copy sees it
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);  // stays until it is taken
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  for (int tries = 0; cudaEventQuery(event_) == cudaErrorNotReady && tries < 1000; ++tries) {
  }
  EXPECT_EQ(Pending(), 0);
  locked_.fill(std::byte{3});
  EXPECT_EQ(CopyToHost(locked_.data()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(locked_.front(), std::byte{2});
}

TEST_F(PretendedCuda, AStreamThatDoesNotWaitForAnotherIsAheadOfItNowAndThen) {
  cudaStream_t reads = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&reads, cudaStreamNonBlocking), cudaSuccess);
  std::array<std::byte, kBytes> read;
  EXPECT_EQ(cudaHostRegister(read.data(), kBytes, cudaHostRegisterPortable), cudaSuccess);
  const auto reads_right = [&](int round, bool waits) {
    locked_.fill(std::byte(round));
    EXPECT_EQ(CopyToDevice(locked_.data()), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
    if (waits) {
      EXPECT_EQ(cudaStreamWaitEvent(reads, event_, 0), cudaSuccess);
    }
    EXPECT_EQ(cudaMemcpyAsync(read.data(), memory_, kBytes, cudaMemcpyDeviceToHost, reads),
              cudaSuccess);
    RunAll();
    return read.front() == std::byte(round);
  };
  int right = 0;
  for (int round = 1; round <= 100; ++round) {
    EXPECT_TRUE(reads_right(2 * round, true));
    right += reads_right(2 * round + 1, false);
  }
  EXPECT_GT(right, 20);
  EXPECT_LT(right, 80);
}

// The tests of the backend use this to see whether a call of ours changed its thread.
TEST_F(PretendedCuda, KnowsWhetherAThreadIsUntouched) {
  EXPECT_FALSE(ThreadIsUntouched());  // cudaSetDevice()
  std::thread([] {
    EXPECT_TRUE(ThreadIsUntouched());
    CUcontext context = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxPushCurrent(context), CUDA_SUCCESS);
    EXPECT_FALSE(ThreadIsUntouched());
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(cuCtxPopCurrent(&context), CUDA_SUCCESS);
    EXPECT_FALSE(ThreadIsUntouched());
  }).join();
}

}  // namespace
}  // namespace penstock::pretended_cuda
