// SPDX-License-Identifier: Apache-2.0
// A simulated machine, whose properties are plain values. Healthy() is a machine without findings.
// Each test changes only the values that it checks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace penstock::doctor {

struct FakeProbe final : Probe {
  std::map<std::string, std::string> files;  // path to content
  std::map<std::string, std::string> links;  // path to what it resolves to
  std::optional<int64_t> dev_shm_bytes;
  Limit locked, open_files;
  Clocks clocks;
  absl::Status memfd, pidfd, huge_page;
  std::map<std::string, std::string> libraries;  // name to path
  absl::StatusOr<UcxLibrary> ucx = absl::NotFoundError("no such file");
  std::string device_backend = "cuda 13.0";
  absl::StatusOr<int> device_count = 1;
  absl::StatusOr<std::vector<transfer::verbs::Device>> devices =
      absl::UnavailableError("libibverbs returned no device list");

  static FakeProbe Healthy();
  void Remove(const std::string& path) {  // a folder and all in it, or a file
    auto below = [&](const auto& entry) {
      return entry.first == path || absl::StartsWith(entry.first, path + "/");
    };
    std::erase_if(files, below);
    std::erase_if(links, below);
  }
  void RemoveNic() {
    Remove("/sys/class/infiniband");
    devices = std::vector<transfer::verbs::Device>();
  }
  void RemoveGpu() {
    Remove("/sys/bus/pci/devices");
    Remove("/proc/driver/nvidia");
    device_count = absl::NotFoundError("no GPU: no NVIDIA driver is installed");
  }
  transfer::verbs::Device& nic() { return devices->front(); }
  transfer::verbs::Port& port() { return nic().ports.front(); }

  std::optional<std::string> Read(const std::string& path) const override {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> List(const std::string& folder) const override {
    const std::string prefix = absl::EndsWith(folder, "/") ? folder : folder + "/";
    std::set<std::string> names;
    auto add = [&](const std::string& path) {
      if (!absl::StartsWith(path, prefix)) return;
      names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
    };
    for (const auto& [path, content] : files) add(path);
    for (const auto& [path, target] : links) add(path);
    return {names.begin(), names.end()};
  }
  std::optional<std::string> Resolve(const std::string& path) const override {
    const auto found = links.find(path);
    return found == links.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<int64_t> FileSystemBytes(const std::string&) const override {
    return dev_shm_bytes;
  }
  Limit LockedMemoryBytes() const override { return locked; }
  Limit OpenFiles() const override { return open_files; }
  Clocks ReadClocks() const override { return clocks; }
  absl::Status TryMemfd() const override { return memfd; }
  absl::Status TryPidfd() const override { return pidfd; }
  absl::Status TryHugePage() const override { return huge_page; }
  absl::StatusOr<std::string> FindLibrary(const std::string& name) const override {
    const auto found = libraries.find(name);
    if (found == libraries.end()) return absl::NotFoundError(name + ": no such file");
    return found->second;
  }
  absl::StatusOr<UcxLibrary> Ucx() const override { return ucx; }
  std::string DeviceBackendName() const override { return device_backend; }
  absl::StatusOr<int> CountDevices() const override { return device_count; }
  absl::StatusOr<std::vector<transfer::verbs::Device>> RdmaDevices() const override {
    return devices;
  }
};

// An ordinary user on one NUMA node with one GPU and one RoCE NIC below one switch.
inline FakeProbe FakeProbe::Healthy() {
  namespace verbs = transfer::verbs;
  FakeProbe probe;
  constexpr char kSwitch[] = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/";
  probe.files = {
      {"/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-7"},
      {"/proc/self/uid_map", "         0          0 4294967295"},
      {"/proc/self/cgroup", "0::/user.slice"},
      {"/proc/sys/kernel/osrelease", "6.1.0-18-amd64"},
      {"/proc/sys/kernel/yama/ptrace_scope", "0"},
      {"/proc/sys/net/core/somaxconn", "4096"},
      {"/proc/sys/net/ipv4/tcp_congestion_control", "cubic"},
      {"/proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic"},
      {"/proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno cubic"},
      {"/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456"},
      {"/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304"},
      {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"},
      {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"},
      {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq"},
      {"/sys/devices/system/node/online", "0"},
      {"/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module  580.65"},
      {"/proc/driver/nvidia/gpus/0000:3d:00.0/information", "Model: \t\t NVIDIA H100"},
      {"/sys/bus/pci/devices/0000:3d:00.0/vendor", "0x10de"},
      {"/sys/bus/pci/devices/0000:3d:00.0/class", "0x030200"},
      {"/sys/bus/pci/devices/0000:3d:00.0/numa_node", "0"},
      {"/sys/module/nvidia_peermem/refcnt", "0"},
      {"/sys/class/infiniband/mlx5_0/node_type", "1: CA"},
      {"/sys/class/infiniband/mlx5_0/device/numa_node", "0"},
      {"/usr/lib/ucx/libuct_ib.so.0", ""},
      {"/usr/lib/ucx/libuct_cuda.so.0", ""}};
  probe.links = {
      {"/sys/bus/pci/devices/0000:3d:00.0", absl::StrCat(kSwitch, "0000:3c:08.0/0000:3d:00.0")},
      {"/sys/class/infiniband/mlx5_0/device", absl::StrCat(kSwitch, "0000:3c:10.0/0000:3e:00.0")}};
  probe.dev_shm_bytes = int64_t{64} << 30;
  probe.open_files = {65536, 65536};
  probe.clocks = {.synchronized = true, .wall_step = absl::ZeroDuration()};
  probe.libraries = {{"libcuda.so.1", "/usr/lib/libcuda.so.1"}};
  probe.ucx = UcxLibrary{.path = "/usr/lib/libucp.so.0", .major = 1, .minor = 19, .release = 1};
  probe.devices =
      std::vector<verbs::Device>{{.name = "mlx5_0",
                                  .status = absl::OkStatus(),
                                  .firmware = "28.39.1002",
                                  .ports = {{.number = 1,
                                             .state = verbs::PortState::kActive,
                                             .link_layer = verbs::LinkLayer::kEthernet,
                                             .active_mtu_bytes = 4096,
                                             .max_mtu_bytes = 4096,
                                             .gigabits_per_s = 400,
                                             .gids = {{.index = 3,
                                                       .address = "::ffff:10.0.0.1",
                                                       .type = verbs::GidType::kRoceV2}}}}}};
  return probe;
}

// Returns the first finding of that id; nothing if none fired.
inline std::optional<Finding> Fired(const std::vector<Finding>& findings, const std::string& id) {
  for (const Finding& finding : findings) {
    if (finding.id == id) return finding;
  }
  return std::nullopt;
}

}  // namespace penstock::doctor
