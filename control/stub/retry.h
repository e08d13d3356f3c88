// SPDX-License-Identifier: Apache-2.0
// Repeats a call to the dispatcher until it is answered, fails for good, runs out of time or is
// stopped.
#pragma once

#include <stop_token>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/stub/addresses.h"
#include "control/stub/dispatcher_stub.h"

namespace penstock::control {

// Calls `once` for one address after another, and after each round of all addresses again with
// jittered back-off, while it returns Unavailable, Aborted, Cancelled or DeadlineExceeded. Any
// other status is final. `once` must return within `left`, and at once when `stop` is requested,
// which `options` or `of_stub` may cause. Errors are those of DispatcherStub.
absl::Status Retry(Addresses& addresses, const CallOptions& options, std::stop_token of_stub,
                   absl::FunctionRef<absl::Status(const std::string& address, absl::Duration left,
                                                  const std::stop_token& stop)>
                       once);

}  // namespace penstock::control
