// SPDX-License-Identifier: Apache-2.0
// Decides who may do what at a dispatcher: the table in docs/security.md, as a function.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "control/protocol/principal.h"

namespace penstock::control {

// Each method and each stream of the dispatcher is one action.
enum class Action : uint8_t {
  kGetVersion,
  kRegisterDataset,
  kGetDataset,
  kUnregisterDataset,
  kCreateJob,
  kRestoreJob,
  kGetReading,
  kCancelJob,
  kRemoveJob,
  kGetStatus,
  kReadJob,  // a client's stream
  kServe,    // a worker's stream
};

// Decides by the caller's role and namespaces alone, for a job or dataset that does not exist yet,
// and for actions on things that have no owner. The message of PermissionDenied contains the
// caller's name and role, and who may do this.
absl::Status Authorize(Action action, const Caller& caller, std::string_view name_space);
// Decides about a job or dataset that belongs to the principal `owner`. An empty `owner` means that
// it was made while the dispatcher had no auth_file, so only the role and the namespace count.
// PermissionDenied also names `what`, such as "job train".
absl::Status AuthorizeOwned(Action action, const Caller& caller, std::string_view name_space,
                            std::string_view owner, std::string_view what);

}  // namespace penstock::control
