// SPDX-License-Identifier: Apache-2.0
// A dataset as the dispatcher is told of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "control/protocol/session_messages.h"
#include "control/stub/dispatcher_stub.h"
#include "penstock/dataset.h"

namespace penstock::client {

// A number that no other request of any process has.
control::RequestId NewRequest();
uint64_t RandomId();  // never 0

// A stub for the service, with the TLS that the settings say.
absl::StatusOr<std::unique_ptr<control::DispatcherStub>> StubOf(std::string_view service);

// Definition and summary; the split plan is resolved here, where the files are,
// until `cancelled` is set. Without an id.
absl::StatusOr<control::RegisterDatasetRequest> RegistrationOf(const Dataset& dataset,
                                                               const std::string& name_space,
                                                               CancelFlag cancelled = nullptr);

}  // namespace penstock::client
