// SPDX-License-Identifier: Apache-2.0
// A worker object's address as text, for the control plane. UCX hardly checks the addresses that it
// uses, so the text contains a checksum.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::transfer::ucx {

std::string EncodeAddress(std::string_view address);
// InvalidArgument for text that EncodeAddress() did not return.
absl::StatusOr<std::string> DecodeAddress(std::string_view text);

}  // namespace penstock::transfer::ucx
