// SPDX-License-Identifier: Apache-2.0
// The grammar of device names.
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "penstock/replica.h"

namespace penstock {

std::string Device::ToString() const {
  return absl::StrCat(kind == Kind::kCpu ? "CPU" : "GPU", ":", index);
}

absl::StatusOr<Device> ParseDevice(std::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(std::string(name));
  absl::string_view rest = upper;
  absl::ConsumePrefix(&rest, "/");
  absl::ConsumePrefix(&rest, "DEVICE:");
  Device device;
  bool known = true;
  if (absl::ConsumePrefix(&rest, "GPU"))
    device.kind = Device::Kind::kGpu;
  else
    known = absl::ConsumePrefix(&rest, "CPU");
  if (known && absl::ConsumePrefix(&rest, ":")) {
    known = !rest.empty() && absl::ascii_isdigit(rest[0]) && absl::SimpleAtoi(rest, &device.index);
    rest = "";
  }
  if (known && rest.empty()) return device;
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(name),
                   "' is not a device name; write CPU or GPU and a number from 0, as in ",
                   "\"GPU:0\", \"/gpu:0\" or \"/device:GPU:0\""));
}

}  // namespace penstock
