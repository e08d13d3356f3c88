// SPDX-License-Identifier: Apache-2.0
// Who may do what at a dispatcher: the table of docs/security.md, as functions. Without an
// auth_file there are no callers, and everything is allowed.
//
// A trainer may act on the jobs and datasets that it owns, and an operator on all, both only in
// their namespaces. A worker may fetch any dataset, because it gets partitions of all jobs.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "control/protocol/principal.h"
#include "control/state/state.h"

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
  kFinaliseUpgrade,
};
inline constexpr int kActions = 13;

// All functions return PermissionDenied with the caller's name and role, and who may do this.

// Decides by the caller's role and namespaces, for an action on nothing that exists yet.
// `name_space`: empty means "default"; it does not matter for kGetVersion and kServe.
absl::Status Authorize(Action action, const Caller& caller, std::string_view name_space);
// Decides by the role alone, for something that does not exist, or for a list.
absl::Status AuthorizeByRole(Action action, const Caller& caller);
// Decides for an action on the whole service, for which the caller must have all namespaces.
absl::Status AuthorizeForAll(Action action, const Caller& caller);
// Decides by the owner too. A job or dataset without an owner was made while the dispatcher had no
// auth_file, so only the role and the namespace count.
absl::Status Authorize(Action action, const Caller& caller, const JobRecord& job);
absl::Status Authorize(Action action, const Caller& caller, const DatasetRecord& dataset);

}  // namespace penstock::control
