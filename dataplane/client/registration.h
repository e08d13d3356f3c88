// SPDX-License-Identifier: Apache-2.0
// Registers datasets with the dispatcher.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "control/protocol/requests.h"
#include "control/stub/dispatcher_stub.h"
#include "penstock/dataset.h"

namespace penstock::client {

// Returns an id that no other request has, whether of this process or of any other.
control::RequestId NewRequest();

// Returns a stub for the service, with the TLS settings of this process.
absl::StatusOr<std::unique_ptr<control::DispatcherStub>> StubOf(std::string_view service);

// Returns the definition and the summary of `dataset`, without an id. The split plan is resolved in
// this process, because it has access to the files. Ends early when `stop` is requested.
absl::StatusOr<control::RegisterDatasetRequest> RegistrationOf(const Dataset& dataset,
                                                               const std::string& name_space,
                                                               std::stop_token stop = {});

}  // namespace penstock::client
