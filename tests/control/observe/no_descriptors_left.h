// SPDX-License-Identifier: Apache-2.0
// A process at its limit of descriptors, and the CPU time it uses meanwhile.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {

// While it lives, this process gets no new descriptors.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    const int lowest = dup(STDERR_FILENO);  // all lower descriptors are in use
    close(lowest);
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit fewer{static_cast<rlim_t>(lowest), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
  }
  ~NoDescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

inline absl::Duration CpuTime() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

// Returns the CPU time that this process uses within a second.
inline absl::Duration CpuTimeOfASecond() {
  const absl::Duration before = CpuTime();
  usleep(1'000'000);
  return CpuTime() - before;
}

}  // namespace penstock
