// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "penstock/distribute.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/readings.h"

namespace penstock::doctor {
namespace {

// The bytes that one trainer registers with its NIC by default: the window, and as much again for
// slots in quarantine after a failure.
uint64_t PoolBytes() {
  return 2 * static_cast<uint64_t>(DistributeOptions{}.max_outstanding_bytes);
}

std::string LimitText(uint64_t limit) {
  return limit == kUnlimited ? "unlimited" : BytesText(static_cast<double>(limit));
}

// The kernel exempts processes with the right to lock memory (CAP_IPC_LOCK) from the limit, but
// only in the machine's own user namespace.
void CheckLockedMemory(const Probe& probe, std::vector<Finding>& findings) {
  const Limit limit = probe.LockedMemoryBytes();
  const bool exempt = HasCapability(probe, kCapIpcLock) && InFirstUserNamespace(probe);
  if (exempt || limit.soft >= PoolBytes()) {
    findings.push_back({.id = "memory.locked",
                        .what = absl::StrCat("Limit of locked memory: ", LimitText(limit.soft),
                                             exempt ? "; it does not apply to this user." : "."),
                        .protocols = {"ucx"}});
    return;
  }
  const bool has_nic = !probe.List("/sys/class/infiniband").empty();
  findings.push_back(
      {.id = "memory.memlock",
       .severity = has_nic ? Severity::kError : Severity::kNote,
       .what = absl::StrCat("This user may lock ", LimitText(limit.soft), " of memory."),
       .why = absl::StrCat(
           "Memory that a NIC may write to is locked while it is registered. A trainer with the "
           "default window needs ",
           LimitText(PoolBytes()), ": the window, and as much again for slots in quarantine."),
       .remedy = "Set `memlock unlimited` in /etc/security/limits.conf and log in again. In a "
                 "systemd unit set LimitMEMLOCK=infinity, for a container `--ulimit memlock=-1`, "
                 "in Slurm's slurm.conf PropagateResourceLimitsExcept=MEMLOCK.",
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
             "Sealed anonymous files cannot be created: ", std::string(memfd.message()), "."),
         .why = "With shm a trainer and a worker on one host share such a file.",
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
             "Descriptors of processes cannot be opened: ", std::string(pidfd.message()), "."),
         .why = "shm reclaims memory when the process that holds it is dead. Only such a "
                "descriptor shows this reliably.",
         .remedy = "Use Linux 5.3 or newer; a container's seccomp profile must allow pidfd_open.",
         .protocols = {"shm"},
         .blocks = true});
  }
  if (memfd.ok() && pidfd.ok()) {
    findings.push_back({.id = "memory.sharing",
                        .what = "Sealed anonymous files and descriptors of processes can be "
                                "created.",
                        .protocols = {"shm"}});
  }
}

// Only a note about other software: shm uses anonymous files, which this limit does not affect.
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
       .why = "Penstock's shm does not use it. UCX's and NCCL's shared memory and PyTorch's "
              "loaders use it, and die of SIGBUS when it is full.",
       .remedy = "Run `mount -o remount,size=50% /dev/shm`; for a container use `--shm-size=8g` or "
                 "`--ipc=host`.",
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
           "Slots then use pages of 4 KiB. They take longer to set up, and processor, GPU and NIC "
           "look up more addresses.",
       .remedy = "Use Linux 6.1 or newer. On an older kernel run `echo advise > "
                 "/sys/kernel/mm/transparent_hugepage/shmem_enabled`. If the memory is only full "
                 "or fragmented, this finding is temporary.",
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
       .why = "UCX's cma lane between processes of one host then fails and takes two copies "
              "instead of one. Penstock's shm is not affected.",
       .remedy = "Use shm on one host, or run `sysctl kernel.yama.ptrace_scope=0`.",
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
       .why = "Pools and shared memory count against this limit. The kernel kills processes of a "
              "group that exceeds it.",
       .remedy = "Keep the sum of the workers' --memory-budget-bytes, the trainers' windows and "
                 "the training itself below the limit, or raise the limit. Each worker's default "
                 "budget is half of the limit."});
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
