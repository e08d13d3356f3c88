// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/doctor/checks.h"

namespace penstock::doctor {
namespace {

// Read in user space, in some 20 ns; all others take a system call or worse.
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
       .why = "Each look at the clock takes a system call or a slow device: microseconds, and "
              "waits and metrics look at it for every element.",
       .remedy = "If `available_clocksource` beside it lists tsc: boot with `clocksource=tsc "
                 "tsc=reliable`, where the processor's counter is known to be steady."});
}

void CheckSteps(const Probe& probe, std::vector<Finding>& findings) {
  // Slewing moves the clock by 0.5 ms a second at most; an examination is short.
  constexpr absl::Duration kStep = absl::Milliseconds(100);
  const Clocks clocks = probe.ReadClocks();
  if (absl::AbsDuration(clocks.wall_step) >= kStep) {
    findings.push_back(
        {.id = "clock.jumped",
         .severity = Severity::kWarning,
         .what = absl::StrCat("The wall clock jumped by ", absl::FormatDuration(clocks.wall_step),
                              " during this examination."),
         .why = "Leases and time-outs go by the boot clock and are not touched; times in events, "
                "traces and logs are no longer in order.",
         .remedy = "Let one time service slew the clock (chrony, systemd-timesyncd), and stop "
                   "whatever else sets it."});
  }
  if (clocks.synchronized) {
    findings.push_back({.id = "clock.synchronized", .what = "The clock is synchronized."});
    return;
  }
  findings.push_back(
      {.id = "clock.unsynchronized",
       .severity = Severity::kNote,
       .what = "The kernel knows of no time server that keeps the clock right.",
       .why = "Leases go by each machine's boot clock and are not touched; but events and traces "
              "of several machines do not line up.",
       .remedy = "Run chrony or systemd-timesyncd; on a virtual machine whose host sets the clock "
                 "nothing needs to be done."});
}

}  // namespace

std::vector<Finding> CheckClocks(const Probe& probe) {
  std::vector<Finding> findings;
  CheckSource(probe, findings);
  CheckSteps(probe, findings);
  return findings;
}

}  // namespace penstock::doctor
