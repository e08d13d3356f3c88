// SPDX-License-Identifier: Apache-2.0
// What a process used and what the machine did meanwhile.
#pragma once

#include <sys/types.h>

#include <vector>

namespace penstock::bench {

// Others may use this much of a core in a window before its pair is dropped.
inline constexpr double kForeignCores = 0.12;

double Now();  // seconds, monotonic

// User and system seconds of a process so far, all its threads; 0 once it is gone.
double CpuSeconds(pid_t pid);

// Resident bytes of a process; pages that it shares count whole.
double ResidentBytes(pid_t pid);

// Seconds that all cores together were busy since boot.
double MachineBusySeconds();

// The middle value, or the mean of the two; 0 without values.
double Median(std::vector<double> values);

// The value that a share `q` of the values stays below; 0 without values. Reorders them.
double Quantile(std::vector<float>& values, double q);

}  // namespace penstock::bench
