// SPDX-License-Identifier: Apache-2.0
// The state that the functions of the pretended CUDA share: devices, their objects, and the rules.
// Private to its library.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/pretended_cuda.h"

namespace penstock::pretended_cuda {

// A copy, a recorded event that is reached, or a wait for one.
struct Work {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t bytes = 0;
  std::shared_ptr<bool> reaches, waits_for;
};

struct Capture {
  std::thread::id thread;
  cudaStreamCaptureMode mode;
  bool invalid = false;
};

struct Stream {
  int device;
  std::deque<Work> work;
  std::optional<Capture> capture;
};

struct Event {
  int device;
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);  // true if never recorded
  bool captured = false;                                         // last recorded in a capture
};

struct Allocation {
  int device;
  size_t bytes;
  std::unique_ptr<std::byte[]> memory;
};

struct PageLocked {
  int device;  // whose context locked it
  bool portable;
  size_t bytes;
};

// CUDA's state of each thread.
struct Thread {
  int process = 0;            // number of calls of Begin() when it was set
  std::vector<int> contexts;  // devices; the last is current
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  cudaError_t last_error = cudaSuccess;
};

// How a call of the runtime may break a rule.
enum Kind : unsigned {
  kPlain = 0,
  kUnsafe = 1,  // forbidden while a capture in global mode goes on
  kWaits = 2,   // waits for the device or a stream
};

// Guarded by `mu`.
struct World {
  std::mutex mu;
  Machine machine;
  int process = 0;
  bool started = false;  // the driver, by any call of the runtime
  bool in_step = false;
  std::minstd_rand generator;
  std::vector<std::string> violations;
  std::vector<bool> contexts;  // by device: it exists
  std::map<cudaEvent_t, std::unique_ptr<Event>> events;
  std::map<cudaStream_t, std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Stream>> destroyed;          // until their work is done
  std::vector<Stream*> all_streams;                        // the oldest first
  std::map<const std::byte*, Allocation> memory;           // of devices
  std::map<const std::byte*, PageLocked> page_locked;      // host memory
  std::map<void*, std::unique_ptr<std::byte[]>> host_own;  // from cudaHostAlloc()

  static World& Get();
  Thread& thread();  // of the calling thread

  void Violate(std::string what) { violations.push_back(std::move(what)); }
  // Makes the context if there is none.
  void NeedContext(int device, const char* call);
  // Returns the current device. If there is none, makes device 0 current, as the runtime does.
  int Current(const char* call);
  void MustBeCurrent(int device, const char* call, const char* what);
  // Returns whether a capture forbids an unsafe call now; that capture becomes invalid.
  bool Forbidden(const char* call);
  void Invalidate(Capture& capture, const std::string& why);

  Event* Find(cudaEvent_t event);
  Stream* Find(cudaStream_t stream);
  // Returns the allocation that contains all these bytes, or nullptr.
  const Allocation* FindMemory(const void* address, size_t bytes) const;
  const PageLocked* FindPageLocked(const void* address, size_t bytes) const;
  // Returns whether an unfinished copy reads or writes there.
  bool InUse(const void* address, size_t bytes) const;
  void MustNotBeInUse(const void* address, size_t bytes, const char* call);

  // Lets some streams do their next piece of work, if they wait for no event.
  void Advance();
  void Run();  // until nothing more can be done

  // Wraps each call of the runtime; `body` gets the current device.
  cudaError_t Do(const char* call, unsigned kinds,
                 const std::function<cudaError_t(World& world, int device)>& body);
  // Wraps calls that need no context.
  cudaError_t DoWithout(const std::function<cudaError_t(World& world)>& body);
};

}  // namespace penstock::pretended_cuda
