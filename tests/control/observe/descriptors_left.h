// SPDX-License-Identifier: Apache-2.0
// A process at its limit of descriptors, and the CPU time it uses meanwhile.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock {

// While it lives, this process gets at most `count` new descriptors.
class DescriptorsLeft {
 public:
  explicit DescriptorsLeft(rlim_t count) {
    const int lowest = dup(STDERR_FILENO);  // all lower descriptors are in use
    close(lowest);
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit fewer{static_cast<rlim_t>(lowest) + count, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
  }
  ~DescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before_); }

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
