// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/device.h"

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

absl::Status CheckPlainDeviceMemory(DeviceBackend& backend, const void* address) {
  ASSIGN_OR_RETURN(const MemoryKind kind, backend.KindOf(address));
  std::string_view why;
  switch (kind) {
    case MemoryKind::kDevice:
      return absl::OkStatus();
    case MemoryKind::kHost:
    case MemoryKind::kPageLocked:
      why = "it is the host's";
      break;
    case MemoryKind::kManaged:
      why = "the driver moves it between host and device";
      break;
    case MemoryKind::kPooled:
      why = "a NIC takes it for managed memory, and other processes cannot open it";
      break;
    case MemoryKind::kMapped:
      why = "of its pieces only one would be registered";
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      std::string(MemoryKindName(kind)), " memory cannot hold slots on a device: ",
      std::string(why), "; take memory of cudaMalloc(), and copy on the device from there"));
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
