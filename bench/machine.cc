// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/doctor/machine.h"
#include "tools/doctor/readings.h"

namespace penstock::bench {
namespace {

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const std::string name = line.substr(line.find(':') + 1);
    return std::string(absl::StripAsciiWhitespace(name));
  }
  return "unknown processor";
}

}  // namespace

Machine ThisMachine() {
  utsname name{};
  ::uname(&name);
  const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  const double page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
  return {.processor = Processor(),
          .kernel = name.release,
          .congestion_control = FirstLine("/proc/sys/net/ipv4/tcp_congestion_control"),
          .when = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()),
          .cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)),
          .memory_gib = pages * page_bytes / (1 << 30),
          .load1 = std::strtod(FirstLine("/proc/loadavg").c_str(), nullptr),
          .numa_nodes = doctor::CountNumaNodes(*doctor::MakeMachineProbe())};
}

std::string Describe(const Machine& machine) {
  std::string text = absl::StrFormat(
      "%s, %d cores%s, %.0f GiB, kernel %s, TCP %s, load %.2f, %s", machine.processor,
      machine.cores,
      machine.numa_nodes > 1 ? absl::StrCat(" on ", machine.numa_nodes, " NUMA nodes") : "",
      machine.memory_gib, machine.kernel, machine.congestion_control, machine.load1, machine.when);
  const char* before = "; over ";
  for (const Adapter& adapter : machine.adapters) {
    absl::StrAppend(&text, std::exchange(before, " and "), Describe(adapter));
  }
  return text;
}

std::string Version() {
  return PENSTOCK_VERSION;
}

}  // namespace penstock::bench
