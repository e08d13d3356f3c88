// SPDX-License-Identifier: Apache-2.0
// NCCL without GPUs: a library with the SONAME of NCCL's, libnccl.so.2, with the functions that
// cuda/nccl_library.h looks up. Ranks are threads of one process, each on its own device of the
// pretended CUDA, whose streams wait for what all ranks must have launched. Communicators are
// non-blocking, as those of trainers that may abort: calls return "in progress". What NCCL does
// not forgive is recorded as a violation of the pretended CUDA:
//
//  - a call of a communicator that was aborted or destroyed;
//  - a communicator that is destroyed before it is finalized, or while it has unfinished work:
//    NCCL waits then, for ever if a rank is lost;
//  - a launch or a split under another device's context than the communicator's.
#pragma once

#include <vector>

namespace penstock::pretended_nccl {

// A trainer's communicator of as many ranks, rank i on device i: its handle at each rank.
std::vector<void*> MakeCommunicator(int ranks);

// The process that has this handle is gone: the other ranks of all communicators that it is in are
// told of an error, and what they wait for never comes.
void Lose(void* handle);

// While it lives, launches stay in progress, as when a rank's connection is still being made.
class StuckLaunches {
 public:
  StuckLaunches();
  ~StuckLaunches();
  void Await();  // until there is one
  StuckLaunches(const StuckLaunches&) = delete;
  StuckLaunches& operator=(const StuckLaunches&) = delete;
};

// How many communicators were aborted, and destroyed, since a trainer's was made.
int Aborted();
int Destroyed();

}  // namespace penstock::pretended_nccl
