// SPDX-License-Identifier: Apache-2.0
// How benchmarks measure: alternating pairs of ours and the limit, each a window
// of wall time, with the CPU time of all processes of a side and what others
// used meanwhile. Why pairs: the machine's speed drifts, a ratio does not.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace bench {

// User and system seconds of a process so far, all its threads.
inline double CpuSeconds(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skip;
  for (int i = 0; i < 11; ++i) fields >> skip;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Seconds that all cores together were busy since boot.
inline double MachineBusySeconds() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user, nice, system, idle, iowait, irq, softirq, steal;
  stat >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  return (user + nice + system + irq + softirq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One window of one side.
struct Window {
  double seconds = 0;
  double amount = 0;         // bytes or elements, as the side counts
  double cpu_seconds = 0;    // of all processes of the side
  double foreign_cores = 0;  // used by others meanwhile
  double rate() const { return amount / seconds; }
  double cpu_per_amount() const { return cpu_seconds / amount; }
};

// Runs `work(seconds)`, which returns the amount done, and accounts for it.
inline Window Measure(const std::vector<pid_t>& processes, double seconds,
                      const std::function<double(double)>& work) {
  auto cpu = [&] {
    double sum = 0;
    for (pid_t pid : processes) sum += CpuSeconds(pid);
    return sum;
  };
  Window window;
  const double cpu_before = cpu(), busy_before = MachineBusySeconds(), start = Now();
  window.amount = work(seconds);
  window.seconds = Now() - start;
  window.cpu_seconds = cpu() - cpu_before;
  window.foreign_cores =
      std::max(0.0, (MachineBusySeconds() - busy_before - window.cpu_seconds) / window.seconds);
  return window;
}

struct Pair {
  Window ours, limit;
};

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Others may use this much of a core in a window before its pair is dropped.
inline constexpr double kForeignCores = 0.12;

// Prints one line of the table and, if given, one JSON object to `record`.
// `unit` divides amounts ("GB": 1e9); CPU is given per unit.
inline void Report(const std::string& name, std::vector<Pair> pairs, double unit,
                   const std::string& unit_name, std::FILE* record) {
  std::vector<Pair> clean;
  for (const Pair& pair : pairs)
    if (pair.ours.foreign_cores < kForeignCores && pair.limit.foreign_cores < kForeignCores)
      clean.push_back(pair);
  const bool enough = clean.size() >= 3;
  const std::vector<Pair>& kept = enough ? clean : pairs;
  std::vector<double> ratio, ours, limit, cpu, limit_cpu;
  for (const Pair& pair : kept) {
    ratio.push_back(pair.ours.rate() / pair.limit.rate());
    ours.push_back(pair.ours.rate() / unit);
    limit.push_back(pair.limit.rate() / unit);
    cpu.push_back(pair.ours.cpu_per_amount() * unit);
    limit_cpu.push_back(pair.limit.cpu_per_amount() * unit);
  }
  const auto [low, high] = std::minmax_element(ratio.begin(), ratio.end());
  std::printf(
      "%-26s %9.3f %s/s  limit %9.3f  ratio %.3f (%.3f-%.3f)  CPU s/%s %.3f  limit %.3f  %zu of "
      "%zu pairs%s\n",
      name.c_str(), Median(ours), unit_name.c_str(), Median(limit), Median(ratio), *low, *high,
      unit_name.c_str(), Median(cpu), Median(limit_cpu), clean.size(), pairs.size(),
      enough ? "" : " clean: all shown");
  std::fflush(stdout);
  if (record != nullptr) {
    std::fprintf(
        record,
        "{\"v\": 1, \"system\": \"penstock\", \"workload\": \"%s\", \"unit\": \"%s\", \"per_s\": "
        "%.6g, "
        "\"limit_per_s\": %.6g, \"ratio\": %.4f, \"ratio_min\": %.4f, \"ratio_max\": %.4f, "
        "\"cpu_s_per_unit\": %.6g, \"limit_cpu_s_per_unit\": %.6g, \"pairs\": %zu, \"clean\": "
        "%zu}\n",
        name.c_str(), unit_name.c_str(), Median(ours), Median(limit), Median(ratio), *low, *high,
        Median(cpu), Median(limit_cpu), pairs.size(), clean.size());
  }
}

}  // namespace bench
