// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device/device.h"

#include "absl/strings/str_cat.h"
#include "penstock/status.h"

namespace penstock {

std::string_view MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost:
      return "host";
    case MemoryKind::kPageLocked:
      return "page-locked";
    case MemoryKind::kDevice:
      return "device";
    case MemoryKind::kManaged:
      return "managed";
    case MemoryKind::kPooled:
      return "pooled";
    case MemoryKind::kMapped:
      return "mapped";
  }
  return "unknown";
}

std::string DescribeDevices(DeviceBackend& backend) {
  const std::string name(backend.name());
  const absl::StatusOr<int> count = backend.Count();
  if (!count.ok()) return absl::StrCat(name, ": ", std::string(count.status().message()));
  std::string text = absl::StrCat(name, ": ", *count, *count == 1 ? " device" : " devices");
  for (int device = 0; device < *count; ++device) {
    const absl::StatusOr<DeviceInfo> info = backend.Describe(device);
    absl::StrAppend(&text, device == 0 ? ": " : ", ",
                    info.ok() ? info->name : std::string(info.status().message()));
  }
  return text;
}

}  // namespace penstock
