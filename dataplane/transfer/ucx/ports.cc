// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/ports.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/transfer/verbs/devices.h"

namespace penstock::transfer::ucx {

Ports Ports::OfThisMachine() {
  std::vector<Device> watched;
  const absl::StatusOr<std::vector<verbs::Device>> there = verbs::ListDevices();
  if (!there.ok()) return Ports({});
  for (const verbs::Device& device : *there) {
    auto watch = verbs::PortWatch::Open(device.name);
    if (watch.ok()) watched.push_back({device.name, {}, *std::move(watch)});
  }
  // Queries the ports again, now that no event can be missed.
  const absl::StatusOr<std::vector<verbs::Device>> now = verbs::ListDevices();
  if (!now.ok()) return Ports({});
  for (Device& device : watched) {
    for (const verbs::Device& one : *now) {
      if (one.name != device.name) continue;
      for (const verbs::Port& port : one.ports)
        device.active[port.number] = port.state == verbs::PortState::kActive;
    }
  }
  return Ports(std::move(watched));
}

std::vector<Ports::Change> Ports::Look() {
  std::vector<Change> changes;
  for (Device& device : devices_) {
    if (device.watch == nullptr) continue;
    std::map<int, bool> now = device.active;
    std::string reason;
    while (true) {
      const absl::StatusOr<std::optional<verbs::PortChange>> change = device.watch->Next();
      if (!change.ok()) {
        reason = std::string(change.status().message());
        for (auto& [port, active] : now) active = false;
        device.watch.reset();
        break;
      }
      if (!change->has_value()) break;
      now[(*change)->port] = (*change)->active;
    }
    for (const auto& [port, active] : now) {
      const auto before = device.active.find(port);
      if (before != device.active.end() && before->second == active) continue;
      const std::string name = absl::StrCat(device.name, ":", port);
      changes.push_back({name, active,
                         !reason.empty() ? reason
                         : active        ? absl::StrCat("the port ", name, " came up")
                                         : absl::StrCat("the port ", name, " went down")});
    }
    device.active = std::move(now);
  }
  return changes;
}

bool Ports::IsDown(std::string_view port) const {
  for (const Device& device : devices_) {
    for (const auto& [number, active] : device.active)
      if (!active && port == absl::StrCat(device.name, ":", number)) return true;
  }
  return false;
}

bool Ports::AllAreDown() const {
  bool any = false;
  for (const Device& device : devices_) {
    for (const auto& [number, active] : device.active) {
      if (active) return false;
      any = true;
    }
  }
  return any;
}

}  // namespace penstock::transfer::ucx
