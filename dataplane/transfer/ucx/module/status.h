// SPDX-License-Identifier: Apache-2.0
// Converts UCX's statuses.
#pragma once

#include <ucs/type/status.h>

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::transfer::ucx {

// Returns OK, or Unavailable with `what` and UCX's text.
inline absl::Status ToStatus(ucs_status_t status, std::string_view what) {
  if (status == UCS_OK) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(absl::string_view(what.data(), what.size()), " (",
                                             ucs_status_string(status), ")"));
}

}  // namespace penstock::transfer::ucx
