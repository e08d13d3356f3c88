// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/pci.h"

namespace penstock::doctor {
namespace {

namespace verbs = transfer::verbs;

// The largest path MTU in InfiniBand and RoCE.
constexpr int kLargestMtuBytes = 4096;

const char* StateName(verbs::PortState state) {
  switch (state) {
    case verbs::PortState::kDown:
      return "DOWN";
    case verbs::PortState::kInitializing:
      return "INIT";
    case verbs::PortState::kArmed:
      return "ARMED";
    case verbs::PortState::kActive:
      return "ACTIVE";
  }
  return "unknown";
}

const char* TypeName(verbs::GidType type) {
  switch (type) {
    case verbs::GidType::kInfiniBand:
      return "IB";
    case verbs::GidType::kRoceV1:
      return "RoCE v1";
    case verbs::GidType::kRoceV2:
      return "RoCE v2";
  }
  return "unknown";
}

bool IsActive(const verbs::Port& port) {
  return port.state == verbs::PortState::kActive;
}
bool IsEthernet(const verbs::Port& port) {
  return port.link_layer == verbs::LinkLayer::kEthernet;
}
bool IsRoceV2(const verbs::Gid& gid) {
  return gid.type == verbs::GidType::kRoceV2;
}
bool IsIpv4(const verbs::Gid& gid) {
  return absl::StartsWith(gid.address, "::ffff:");
}

std::string PortName(const verbs::Device& device, const verbs::Port& port) {
  return absl::StrCat(device.name, " port ", port.number);
}

std::string Describe(const verbs::Port& port) {
  std::string text = absl::StrCat("port ", port.number, " ", StateName(port.state), ", ",
                                  IsEthernet(port) ? "Ethernet" : "InfiniBand");
  if (port.gigabits_per_s > 0) absl::StrAppendFormat(&text, ", %g Gb/s", port.gigabits_per_s);
  absl::StrAppend(&text, ", MTU ", port.active_mtu_bytes, " of ", port.max_mtu_bytes);
  std::vector<std::string> gids;
  for (const verbs::Gid& gid : port.gids) {
    gids.push_back(absl::StrCat(gid.index, " ", gid.address, " (", TypeName(gid.type), ")"));
  }
  absl::StrAppend(&text, ", GIDs ", gids.empty() ? "none" : absl::StrJoin(gids, ", "));
  return text;
}

// Reports that libibverbs cannot list devices. This is an error only if the kernel has devices,
// because a machine without a NIC does not need the library.
Finding WithoutVerbs(const absl::Status& status, const std::vector<std::string>& in_kernel) {
  Finding finding{.id = "rdma.no_verbs",
                  .severity = in_kernel.empty() ? Severity::kNote : Severity::kError,
                  .what = absl::StrCat(std::string(status.message()), "."),
                  .why = "ucx moves elements by RDMA, and finds its devices through libibverbs.",
                  .remedy =
                      "If the machine has a NIC for RDMA, load its driver (for example `modprobe "
                      "mlx5_ib`) and let this process see /sys/class/infiniband and "
                      "/dev/infiniband. Otherwise use tcp.",
                  .protocols = {"ucx"},
                  .blocks = true};
  if (absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) {
    finding.id = "rdma.no_library";
    finding.remedy =
        "Install libibverbs and the driver of the NIC (Debian: libibverbs1 ibverbs-providers).";
  } else if (absl::IsUnimplemented(status)) {
    finding.id = "rdma.built_without_verbs";
    finding.remedy = "Install the headers (Debian: libibverbs-dev) and configure the build again.";
  }
  if (!in_kernel.empty()) {
    absl::StrAppend(&finding.what, " The kernel has ", absl::StrJoin(in_kernel, ", "), ".");
  }
  return finding;
}

Finding Unlisted(const std::string& name) {
  return {.id = "rdma.no_provider",
          .severity = Severity::kError,
          .what = absl::StrCat("The kernel has the RDMA device ", name,
                               ", but libibverbs does not list it."),
          .why =
              "Its driver in user space is missing, or /dev/infiniband is not in this "
              "container; ucx cannot use the device.",
          .remedy =
              "Install the driver (Debian: ibverbs-providers); in a container pass "
              "`--device /dev/infiniband`.",
          .protocols = {"ucx"},
          .blocks = true};
}

Finding CannotOpen(const verbs::Device& device) {
  return {.id = "rdma.cannot_open",
          .severity = Severity::kError,
          .what = absl::StrCat("The RDMA device ", device.name,
                               " does not answer: ", std::string(device.status.message()), "."),
          .why = "ucx cannot use a device that this user may not open.",
          .remedy =
              "Let this user read and write /dev/infiniband/uverbs* (rdma-core's udev rules "
              "do); in a container pass `--device /dev/infiniband`.",
          .protocols = {"ucx"},
          .blocks = true};
}

Finding NoActivePort() {
  return {.id = "rdma.no_active_port",
          .severity = Severity::kError,
          .what = "No port of any RDMA device is ACTIVE.",
          .why = "Nothing can be sent: ucx has no lane.",
          .remedy =
              "Plug in the cable and set the interface up (`ip link set DEV up`); on "
              "InfiniBand a port that stays in INIT waits for a subnet manager.",
          .protocols = {"ucx"},
          .blocks = true};
}

Finding PortDown(const verbs::Device& device, const verbs::Port& port) {
  return {.id = "rdma.port_down",
          .severity = Severity::kNote,
          .what = absl::StrCat(PortName(device, port), " is ", StateName(port.state), "."),
          .why = "It carries no data. ucx uses the other ports.",
          .remedy =
              "If it should carry data, check the cable, run `ip link set DEV up`, or check "
              "the subnet manager.",
          .protocols = {"ucx"}};
}

Finding SmallMtu(const verbs::Device& device, const verbs::Port& port) {
  return {.id = "rdma.small_mtu",
          .severity = Severity::kWarning,
          .what = absl::StrCat(PortName(device, port), " uses an MTU of ", port.active_mtu_bytes,
                               " bytes, but could use ", port.max_mtu_bytes, "."),
          .why =
              "Small packets mean more packets per second and more headers. With 1024 bytes a NIC "
              "of 100 Gb/s or more often stays below its rate.",
          .remedy = IsEthernet(port)
                        ? "Give the network interface and every switch on the way an MTU of 4200 "
                          "or more (`ip link set DEV mtu 9000`)."
                        : "Set the MTU of the partition in the subnet manager to 4096.",
          .protocols = {"ucx"}};
}

Finding NoRoceV2(const verbs::Device& device, const verbs::Port& port) {
  return {.id = "rdma.no_roce_v2",
          .severity = Severity::kWarning,
          .what = absl::StrCat(PortName(device, port), " has no GID of type RoCE v2",
                               port.gids.empty() ? ", nor any other." : "."),
          .why = "RoCE v1 is not routed: peers in another subnet cannot be reached.",
          .remedy =
              "Give the port's network interface an IP address, and the device RoCE v2 "
              "(`cma_roce_mode -d DEV -m 2`).",
          .protocols = {"ucx"}};
}

Finding SoftDevice(const verbs::Device& device) {
  return {.id = "rdma.software_device",
          .severity = Severity::kWarning,
          .what = absl::StrCat(device.name,
                               " is not hardware: it emulates RDMA over a network interface (rxe "
                               "or siw)."),
          .why = "It shows that ucx works, but not how fast: the processor does the NIC's work.",
          .remedy = "Use it for tests. For speed over such an interface use tcp.",
          .protocols = {"ucx"}};
}

// UCX 1.13 takes the IP version from a field that rxe leaves empty. It therefore drops every
// datagram to an IPv4 address, and aborts after 30 s.
Finding NeedsIpv6Gid(const verbs::Device& device, const verbs::Port& port) {
  std::string index = "I";
  for (const verbs::Gid& gid : port.gids) {
    if (IsRoceV2(gid) && !IsIpv4(gid)) index = absl::StrCat(gid.index);
  }
  return {.id = "rdma.software_ipv4_gid",
          .severity = Severity::kNote,
          .what = absl::StrCat(PortName(device, port), " also has a GID made of an IPv4 address."),
          .why =
              "UCX 1.13 chooses it and then loses every datagram over a software device. It aborts "
              "after 30 s with \"unhandled timeout error\".",
          .remedy = index == "I" ? "Give the interface an IPv6 address and name the index of its "
                                   "GID: `export UCX_IB_GID_INDEX=I`."
                                 : absl::StrCat("`export UCX_IB_GID_INDEX=", index, "`."),
          .protocols = {"ucx"}};
}

void CheckPort(const verbs::Device& device, const verbs::Port& port, bool soft,
               std::vector<Finding>& findings) {
  if (!IsActive(port)) {
    findings.push_back(PortDown(device, port));
    return;
  }
  if (port.active_mtu_bytes < std::min(port.max_mtu_bytes, kLargestMtuBytes)) {
    findings.push_back(SmallMtu(device, port));
  }
  if (IsEthernet(port) && std::none_of(port.gids.begin(), port.gids.end(), IsRoceV2)) {
    findings.push_back(NoRoceV2(device, port));
  }
  if (soft && std::any_of(port.gids.begin(), port.gids.end(), IsIpv4)) {
    findings.push_back(NeedsIpv6Gid(device, port));
  }
}

void CheckDevice(const Probe& probe, const verbs::Device& device, std::vector<Finding>& findings) {
  if (!device.status.ok()) {
    findings.push_back(CannotOpen(device));
    return;
  }
  std::vector<std::string> ports;
  for (const verbs::Port& port : device.ports) ports.push_back(Describe(port));
  findings.push_back({.id = "rdma.device",
                      .what = absl::StrCat(device.name, ", firmware ",
                                           device.firmware.empty() ? "unknown" : device.firmware,
                                           ": ", absl::StrJoin(ports, "; "), "."),
                      .protocols = {"ucx"}});
  const bool soft = !IsHardware(probe, device.name);
  if (soft) findings.push_back(SoftDevice(device));
  for (const verbs::Port& port : device.ports) CheckPort(device, port, soft, findings);
}

}  // namespace

std::vector<Finding> CheckRdma(const Probe& probe) {
  const std::vector<std::string> in_kernel = probe.List("/sys/class/infiniband");
  const absl::StatusOr<std::vector<verbs::Device>> devices = probe.RdmaDevices();
  if (!devices.ok()) return {WithoutVerbs(devices.status(), in_kernel)};

  std::vector<Finding> findings;
  for (const std::string& name : in_kernel) {
    auto is_it = [&](const verbs::Device& device) { return device.name == name; };
    if (std::none_of(devices->begin(), devices->end(), is_it)) findings.push_back(Unlisted(name));
  }
  bool asked = false, active = false;
  for (const verbs::Device& device : *devices) {
    CheckDevice(probe, device, findings);
    asked = asked || device.status.ok();
    active = active || std::any_of(device.ports.begin(), device.ports.end(), IsActive);
  }
  if (asked && !active) findings.push_back(NoActivePort());
  if (devices->empty() && in_kernel.empty()) {
    findings.push_back({.id = "rdma.no_device",
                        .severity = Severity::kNote,
                        .what = "This machine has no RDMA device.",
                        .why = "ucx moves elements by RDMA; without a device it has no lane.",
                        .remedy = "Use tcp, or load the driver of the NIC if there is one.",
                        .protocols = {"ucx"},
                        .blocks = true});
  }
  return findings;
}

}  // namespace penstock::doctor
