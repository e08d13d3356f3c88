// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/distribute.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/readings.h"

namespace penstock::doctor {
namespace {

// What one trainer registers with its NIC by default: the window, and as much
// again for slots in quarantine after a failure.
uint64_t PoolBytes() {
  return 2 * static_cast<uint64_t>(DistributeOptions{}.max_outstanding_bytes);
}

std::string LimitText(uint64_t limit) {
  return limit == kUnlimited ? "unlimited" : BytesText(static_cast<double>(limit));
}

// The kernel exempts from the limit who has the right to lock memory, but only in
// the machine's own user namespace.
void CheckLockedMemory(const Probe& probe, std::vector<Finding>& findings) {
  const Limit limit = probe.LockedMemoryBytes();
  const bool exempt = HasCapability(probe, kCapIpcLock) && InFirstUserNamespace(probe);
  if (exempt || limit.soft >= PoolBytes()) {
    findings.push_back({.id = "memory.locked",
                        .what = absl::StrCat("Memory that may be locked: ", LimitText(limit.soft),
                                             exempt ? ", which does not bind this user." : "."),
                        .protocols = {"ucx"}});
    return;
  }
  const bool has_nic = !probe.List("/sys/class/infiniband").empty();
  findings.push_back(
      {.id = "memory.memlock",
       .severity = has_nic ? Severity::kError : Severity::kNote,
       .what = absl::StrCat("This user may lock ", LimitText(limit.soft), " of memory."),
       .why = absl::StrCat(
           "What a NIC may write to is locked while it is registered: a trainer with the default "
           "window needs ",
           LimitText(PoolBytes()), " (the window, and as much again for slots in quarantine)."),
       .remedy = "Set `memlock unlimited` in /etc/security/limits.conf and log in again, "
                 "LimitMEMLOCK=infinity in a systemd unit, `--ulimit memlock=-1` for a container, "
                 "or PropagateResourceLimitsExcept=MEMLOCK in Slurm's slurm.conf.",
       .protocols = {"ucx"},
       .blocks = has_nic});
}

void CheckSharing(const Probe& probe, std::vector<Finding>& findings) {
  const absl::Status memfd = probe.TryMemfd();
  if (!memfd.ok()) {
    findings.push_back(
        {.id = "memory.memfd",
         .severity = Severity::kError,
         .what = absl::StrCat(
             "No sealed anonymous file can be made: ", std::string(memfd.message()), "."),
         .why = "Trainer and worker on one host share such a file: shm has nothing else.",
         .remedy = "Use Linux 5.1 or newer; a container's seccomp profile must allow memfd_create "
                   "and fcntl(F_ADD_SEALS), and the sysctl vm.memfd_noexec must be below 2.",
         .protocols = {"shm"},
         .blocks = true});
  }
  const absl::Status pidfd = probe.TryPidfd();
  if (!pidfd.ok()) {
    findings.push_back(
        {.id = "memory.pidfd",
         .severity = Severity::kError,
         .what = absl::StrCat(
             "No descriptor of a process can be had: ", std::string(pidfd.message()), "."),
         .why = "shm gives memory back when the process that holds it is dead, which only such a "
                "descriptor tells for certain.",
         .remedy = "Use Linux 5.3 or newer; a container's seccomp profile must allow pidfd_open.",
         .protocols = {"shm"},
         .blocks = true});
  }
  if (memfd.ok() && pidfd.ok()) {
    findings.push_back({.id = "memory.sharing",
                        .what = "Sealed anonymous files and descriptors of processes can be made.",
                        .protocols = {"shm"}});
  }
}

// Not ours to fill: shm takes anonymous files, which this limit does not touch.
void CheckDevShm(const Probe& probe, std::vector<Finding>& findings) {
  constexpr int64_t kEnoughBytes = int64_t{1} << 30;
  const std::optional<int64_t> bytes = probe.FileSystemBytes("/dev/shm");
  if (bytes.value_or(0) >= kEnoughBytes) {
    findings.push_back(
        {.id = "memory.dev_shm",
         .what = absl::StrCat("/dev/shm holds ", BytesText(static_cast<double>(*bytes)), "."),
         .protocols = {"ucx"}});
    return;
  }
  findings.push_back(
      {.id = "memory.small_dev_shm",
       .severity = Severity::kNote,
       .what =
           bytes ? absl::StrCat("/dev/shm holds only ", BytesText(static_cast<double>(*bytes)), ".")
                 : "There is no /dev/shm.",
       .why = "Penstock's shm does not use it; UCX's and NCCL's shared memory and PyTorch's "
              "loaders do, and die of SIGBUS when it is full.",
       .remedy = "`mount -o remount,size=50% /dev/shm`; `--shm-size=8g` or `--ipc=host` for a "
                 "container.",
       .protocols = {"ucx"}});
}

void CheckHugePages(const Probe& probe, std::vector<Finding>& findings) {
  const absl::Status made = probe.TryHugePage();
  if (made.ok()) {
    findings.push_back({.id = "memory.hugepages",
                        .what = "Shared memory gets pages of 2 MiB.",
                        .protocols = {"shm"}});
    return;
  }
  findings.push_back(
      {.id = "memory.no_hugepages",
       .severity = Severity::kNote,
       .what = absl::StrCat("Shared memory gets no huge pages: ", std::string(made.message()), "."),
       .why =
           "Slots then lie in pages of 4 KiB: they take longer to set up, and processor, GPU and "
           "NIC look up more addresses.",
       .remedy = "Use Linux 6.1 or newer; on an older one `echo advise > "
                 "/sys/kernel/mm/transparent_hugepage/shmem_enabled`. On a machine whose memory is "
                 "full or in small pieces it passes.",
       .protocols = {"shm"}});
}

void CheckPtraceScope(const Probe& probe, std::vector<Finding>& findings) {
  const int64_t scope = ReadNumber(probe, "/proc/sys/kernel/yama/ptrace_scope").value_or(0);
  const bool exempt = scope < 3 && HasCapability(probe, kCapSysPtrace);
  if (scope == 0 || exempt) {
    findings.push_back({.id = "memory.cma",
                        .what = "Processes of this user may read each other's memory (CMA).",
                        .protocols = {"ucx"}});
    return;
  }
  findings.push_back(
      {.id = "memory.ptrace_scope",
       .severity = Severity::kNote,
       .what = absl::StrCat("kernel.yama.ptrace_scope is ", scope,
                            ": processes may not read each other's memory."),
       .why = "UCX's cma lane between processes of one host fails then, and takes two copies "
              "instead of one. Penstock's shm is not touched by it.",
       .remedy = "Use shm on one host; or `sysctl kernel.yama.ptrace_scope=0`.",
       .protocols = {"ucx"}});
}

void CheckGroup(const Probe& probe, std::vector<Finding>& findings) {
  const std::optional<int64_t> limit = GroupMemoryBytes(probe);
  if (!limit) return;
  const bool tight = *limit < static_cast<int64_t>(4 * PoolBytes());
  findings.push_back(
      {.id = "memory.group_limit",
       .severity = tight ? Severity::kWarning : Severity::kNote,
       .what = absl::StrCat("The control group may use ", BytesText(static_cast<double>(*limit)),
                            " of memory."),
       .why = "Pools count against it, shared memory too; beyond it the kernel kills.",
       .remedy = "Keep worker's --memory-budget-bytes, windows of trainers and the training itself "
                 "below it together, or raise the limit; a worker's default budget is half of the "
                 "machine's memory, not of the group's."});
}

}  // namespace

std::vector<Finding> CheckMemory(const Probe& probe) {
  std::vector<Finding> findings;
  CheckLockedMemory(probe, findings);
  CheckSharing(probe, findings);
  CheckDevShm(probe, findings);
  CheckHugePages(probe, findings);
  CheckPtraceScope(probe, findings);
  CheckGroup(probe, findings);
  return findings;
}

}  // namespace penstock::doctor
