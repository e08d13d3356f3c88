// SPDX-License-Identifier: Apache-2.0
// A worker object's address as text, for the control plane. UCX does not look hard at
// addresses it is given, so the text carries a sum over them.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::transfer::ucx {

std::string EncodeAddress(std::string_view address);
// InvalidArgument for what EncodeAddress() never gave.
absl::StatusOr<std::string> DecodeAddress(std::string_view text);

}  // namespace penstock::transfer::ucx
