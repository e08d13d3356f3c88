// SPDX-License-Identifier: Apache-2.0
// Converts requests, answers and stream messages to and from their wire form. For the files that
// implement the stub and the service; no other file sees Protobuf.
//
// ToWire cannot fail. FromWire checks its untrusted input, and returns InvalidArgument with the
// name of the wrong field, also for an empty or unknown stream message. FromStream does the same,
// except that it returns nullopt for a kind of message that this release does not know and
// therefore does not need. Such a message is counted (control/observe/ignored.h). Unknown fields of
// known messages are ignored.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "control/proto/control.pb.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/dispatcher_status.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/requests.h"
#include "control/protocol/worker_messages.h"

namespace penstock::control {

void ToWire(const VersionRange& from, wire::VersionRange* to);
absl::StatusOr<VersionRange> FromWire(const wire::VersionRange& from);

void ToWire(const RegisterDatasetRequest& from, wire::RegisterDatasetRequest* to);
absl::StatusOr<RegisterDatasetRequest> FromWire(const wire::RegisterDatasetRequest& from);

void ToWire(const RegisterDatasetAnswer& from, wire::RegisterDatasetAnswer* to);
absl::StatusOr<RegisterDatasetAnswer> FromWire(const wire::RegisterDatasetAnswer& from);

void ToWire(const GetDatasetAnswer& from, wire::GetDatasetAnswer* to);
absl::StatusOr<GetDatasetAnswer> FromWire(const wire::GetDatasetAnswer& from);

void ToWire(const GetOrCreateJobRequest& from, wire::GetOrCreateJobRequest* to);
absl::StatusOr<GetOrCreateJobRequest> FromWire(const wire::GetOrCreateJobRequest& from);

void ToWire(const JobAnswer& from, wire::JobAnswer* to);
absl::StatusOr<JobAnswer> FromWire(const wire::JobAnswer& from);

void ToWire(const StatusRequest& from, wire::StatusRequest* to);
absl::StatusOr<StatusRequest> FromWire(const wire::StatusRequest& from);

void ToWire(const DispatcherStatus& from, wire::DispatcherStatus* to);
absl::StatusOr<DispatcherStatus> FromWire(const wire::DispatcherStatus& from);

void ToWire(const ClientUp& from, wire::ClientUp* to);
absl::StatusOr<ClientUp> FromWire(const wire::ClientUp& from);
void ToWire(const ClientDown& from, wire::ClientDown* to);
absl::StatusOr<ClientDown> FromWire(const wire::ClientDown& from);
void ToWire(const WorkerUp& from, wire::WorkerUp* to);
absl::StatusOr<WorkerUp> FromWire(const wire::WorkerUp& from);
void ToWire(const WorkerDown& from, wire::WorkerDown* to);
absl::StatusOr<WorkerDown> FromWire(const wire::WorkerDown& from);

absl::StatusOr<std::optional<ClientUp>> FromStream(const wire::ClientUp& from);
absl::StatusOr<std::optional<ClientDown>> FromStream(const wire::ClientDown& from);
absl::StatusOr<std::optional<WorkerUp>> FromStream(const wire::WorkerUp& from);
absl::StatusOr<std::optional<WorkerDown>> FromStream(const wire::WorkerDown& from);

}  // namespace penstock::control
