// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/doctor/checks.h"

namespace penstock::doctor {
namespace {

// Can be read in user space in about 20 ns. All other sources need at least a system call.
constexpr const char* kFastSources[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                        "arch_sys_counter"};

void CheckSource(const Probe& probe, std::vector<Finding>& findings) {
  const std::optional<std::string> source =
      probe.Read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (!source) return;
  if (std::find(std::begin(kFastSources), std::end(kFastSources), *source) !=
      std::end(kFastSources)) {
    findings.push_back({.id = "clock.fast", .what = absl::StrCat("Clock source: ", *source, ".")});
    return;
  }
  findings.push_back(
      {.id = "clock.source",
       .severity = Severity::kWarning,
       .what = absl::StrCat("The clock source is ", *source, "."),
       .why = "Each reading of the clock takes microseconds, for a system call or a slow device. "
              "Waits and metrics read it for every element.",
       .remedy = "If `available_clocksource` in the same folder lists tsc, and the processor's "
                 "counter is known to be steady, boot with `clocksource=tsc tsc=reliable`."});
}

void CheckSteps(const Probe& probe, std::vector<Finding>& findings) {
  // Slewing moves the clock by at most 0.5 ms a second, and an examination is short.
  constexpr absl::Duration kStep = absl::Milliseconds(100);
  const Clocks clocks = probe.ReadClocks();
  if (absl::AbsDuration(clocks.wall_step) >= kStep) {
    findings.push_back(
        {.id = "clock.jumped",
         .severity = Severity::kWarning,
         .what = absl::StrCat("The wall clock jumped by ", absl::FormatDuration(clocks.wall_step),
                              " during this examination."),
         .why = "Leases and time-outs use the boot clock and are not affected. Times in events, "
                "traces and logs are no longer in order.",
         .remedy = "Let one time service slew the clock (chrony, systemd-timesyncd), and stop all "
                   "other programs that set it."});
  }
  if (clocks.synchronized) {
    findings.push_back({.id = "clock.synchronized", .what = "The clock is synchronized."});
    return;
  }
  findings.push_back(
      {.id = "clock.unsynchronized",
       .severity = Severity::kNote,
       .what = "No time server keeps the clock synchronized, as far as the kernel knows.",
       .why = "Leases use each machine's boot clock and are not affected. Events and traces of "
              "several machines do not line up.",
       .remedy = "Run chrony or systemd-timesyncd. A virtual machine whose host sets the clock "
                 "needs neither."});
}

}  // namespace

std::vector<Finding> CheckClocks(const Probe& probe) {
  std::vector<Finding> findings;
  CheckSource(probe, findings);
  CheckSteps(probe, findings);
  return findings;
}

}  // namespace penstock::doctor
