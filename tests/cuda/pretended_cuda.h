// SPDX-License-Identifier: Apache-2.0
// CUDA without a GPU: a library with the SONAME of the driver, libcuda.so.1, which also defines the
// functions of the runtime that cuda/backend.cc, context.cc and error.cc call. Devices are host
// memory. A call that a real GPU does not forgive, or that costs a trainer time or memory, is
// recorded as a violation, with the reason:
//
//  - an asynchronous copy from or to host memory that is not page-locked for the device;
//  - a call that a capture in global mode forbids, made by a thread that has not exchanged its
//    mode for the relaxed one; the capture becomes invalid, too;
//  - a call without a current context, or on a stream, event or memory of another device than the
//    current one;
//  - a call that waits for the device inside a step;
//  - a context on a device that the program has not named;
//  - memory freed, or no longer page-locked, while an unfinished copy uses it.
//
// A stream does its work late: a query of an event answers, and then some streams do their next
// piece of work. A generator with a fixed seed chooses which, so that a stream that should wait for
// another and does not gets ahead of it sooner or later. A call that waits does all pending work.
// Any thread may call any function. There are no default streams.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace penstock::pretended_cuda {

inline constexpr size_t kMemoryBytes = size_t{1} << 30;  // on each device

struct Machine {
  int devices = 2;
  std::set<int> named;  // devices that may have a context
  // Whether copies from and to pageable memory are allowed. They are done at once, after the
  // stream's earlier work, as the driver does them.
  bool pageable_copies = false;
};

// Begins a new process on that machine: no context, no memory, no violation. Handles and contexts
// of the earlier process become invalid, and so does the cache of cuda/context.cc: a program that
// uses the backend may call this only before it does. REQUIRES: no other thread is in a call.
void Begin(const Machine& machine);

// Returns the violations so far. TakeViolations() also clears them.
std::vector<std::string> Violations();
std::vector<std::string> TakeViolations();

// While it lives, a step of the trainer in which no thread may wait for the device. One at a time.
class Step {
 public:
  Step();
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
};

bool HasContext(int device);
size_t Pending();  // pieces of work that streams have not done
void RunAll();     // does all pieces, in an order that the generator chooses
// Returns whether the calling thread has no context and the default capture mode, as before its
// first call.
bool ThreadIsUntouched();

}  // namespace penstock::pretended_cuda
