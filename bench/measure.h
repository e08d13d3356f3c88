// SPDX-License-Identifier: Apache-2.0
// Resource use of processes, and of other users of the machine at the same time.
#pragma once

#include <sys/types.h>

#include <vector>

namespace penstock::bench {

// A pair is dropped if other processes use more than this much of a core in one of its windows.
inline constexpr double kForeignCores = 0.12;

double Now();  // seconds, monotonic

// Returns a process's user and system seconds so far, over all threads; 0 if it has ended.
double CpuSeconds(pid_t pid);

// Returns a process's resident bytes. Shared pages count in full.
double ResidentBytes(pid_t pid);

// Returns the seconds that all cores together were busy since boot.
double MachineBusySeconds();

// Returns the middle value, or the mean of the middle two; 0 without values.
double Median(std::vector<double> values);

// Returns the quantile `q` of the values; 0 without values. Reorders them.
double Quantile(std::vector<float>& values, double q);

}  // namespace penstock::bench
