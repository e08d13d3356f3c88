// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/readings.h"

namespace penstock::doctor {
namespace {

void CheckCores(const Probe& probe, std::vector<Finding>& findings) {
  const int cores =
      CountOfList(ReadField(probe, "/proc/self/status", "Cpus_allowed_list").value_or(""));
  if (cores != 1) {
    findings.push_back({.id = "cpu.cores",
                        .what = cores == 0
                                    ? "The number of cores that this process may use is unknown."
                                    : absl::StrCat("This process may use ", cores, " cores.")});
    return;
  }
  findings.push_back(
      {.id = "cpu.one_core",
       .severity = Severity::kWarning,
       .what = "This process may use one core only.",
       .why = "The trainer and the process that fills its slots take turns. Each hand-over costs a "
              "switch between them, and spinning only delays the other one.",
       .remedy =
           "Give it two cores or more (taskset, cpuset, or the pod's CPU request). srun binds a "
           "task to one core unless --cpus-per-task asks for more."});
}

void CheckQuota(const Probe& probe, std::vector<Finding>& findings) {
  const std::optional<double> quota = GroupCpus(probe);
  if (!quota) return;
  findings.push_back(
      {.id = "cpu.quota",
       .severity = *quota < 2 ? Severity::kWarning : Severity::kNote,
       .what = absl::StrFormat("The control group may use the time of %g cores.", *quota),
       .why = "When the quota is used up, all threads stop until the next period, up to 100 ms "
              "later. Spinning for elements counts too.",
       .remedy = "Give trainers and workers whole cores (cpuset) instead of a quota, or a quota "
                 "above what all their threads use at once."});
}

// With these two drivers, "powersave" lets the processor choose its clock by load. With other
// drivers it holds the lowest clock.
void CheckGovernor(const Probe& probe, std::vector<Finding>& findings) {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cpufreq/";
  const std::optional<std::string> governor = probe.Read(folder + "scaling_governor");
  if (!governor) return;
  const std::string driver = probe.Read(folder + "scaling_driver").value_or("unknown");
  const bool chooses = driver == "intel_pstate" || absl::StartsWith(driver, "amd-pstate-epp") ||
                       driver == "amd_pstate_epp";
  if (*governor != "powersave" || chooses) {
    findings.push_back(
        {.id = "cpu.frequency",
         .what = absl::StrCat("CPU frequency: governor ", *governor, ", driver ", driver, ".")});
    return;
  }
  findings.push_back(
      {.id = "cpu.governor",
       .severity = Severity::kWarning,
       .what = absl::StrCat("The CPU frequency governor is powersave (driver ", driver, ")."),
       .why = "It holds cores at their lowest frequency, which slows decoding and copying by the "
              "same factor.",
       .remedy = "Run `cpupower frequency-set -g performance`."});
}

void CheckNuma(const Probe& probe, std::vector<Finding>& findings) {
  const int nodes = CountNumaNodes(probe);
  if (nodes <= 1) {
    findings.push_back({.id = "cpu.one_node", .what = "One NUMA node."});
    return;
  }
  findings.push_back(
      {.id = "cpu.numa_nodes",
       .severity = Severity::kNote,
       .what = absl::StrCat("The machine has ", nodes, " NUMA nodes."),
       .why = "Memory of another node is slower, and so is a NIC or GPU that writes to it.",
       .remedy = "Run each trainer on the node of its GPU and NIC: `numactl --cpunodebind=N "
                 "--membind=N`. The file /sys/class/infiniband/*/device/numa_node contains N."});
  if (ReadNumber(probe, "/proc/sys/kernel/numa_balancing").value_or(0) == 0) return;
  findings.push_back(
      {.id = "cpu.numa_balancing",
       .severity = Severity::kNote,
       .what = "The kernel moves memory between NUMA nodes by itself (kernel.numa_balancing).",
       .why = "It unmaps pages to see which node uses them. Each first access then costs a page "
              "fault, and hand-overs pause.",
       .remedy = "Run `sysctl kernel.numa_balancing=0` if trainers are bound to their nodes."});
}

}  // namespace

std::vector<Finding> CheckProcessors(const Probe& probe) {
  std::vector<Finding> findings;
  CheckCores(probe, findings);
  CheckQuota(probe, findings);
  CheckGovernor(probe, findings);
  CheckNuma(probe, findings);
  return findings;
}

}  // namespace penstock::doctor
