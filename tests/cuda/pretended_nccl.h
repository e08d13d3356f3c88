// SPDX-License-Identifier: Apache-2.0
// NCCL without GPUs: a library with the SONAME of NCCL's, libnccl.so.2, with the functions that
// cuda/nccl_library.h looks up. Ranks are threads of one process, each on its own device of the
// pretended CUDA, whose streams wait until all ranks have launched a call. Communicators are
// non-blocking, like those of trainers that may abort: calls return "in progress". Calls that NCCL
// does not forgive are recorded as violations of the pretended CUDA:
//
//  - a call of a communicator that was aborted or destroyed;
//  - a communicator that is destroyed before it is finalized, or while it has unfinished work:
//    NCCL waits then, for ever if a rank is lost;
//  - a launch or a split under another device's context than the communicator's.
#pragma once

#include <vector>

namespace penstock::pretended_nccl {

// Makes a trainer's communicator of that many ranks, rank i on device i. Returns its handle at each
// rank.
std::vector<void*> MakeCommunicator(int ranks);

// Loses the process that has this handle: the other ranks of all its communicators get an error,
// and work that waits for it never ends.
void Lose(void* handle);

// While it lives, launches stay in progress, as when a rank's connection is still being made.
class StuckLaunches {
 public:
  StuckLaunches();
  ~StuckLaunches();
  void Await();  // until a launch is stuck
  StuckLaunches(const StuckLaunches&) = delete;
  StuckLaunches& operator=(const StuckLaunches&) = delete;
};

// Returns how many communicators were aborted, and destroyed, since a trainer's was made.
int Aborted();
int Destroyed();

}  // namespace penstock::pretended_nccl
