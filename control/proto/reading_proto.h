// SPDX-License-Identifier: Apache-2.0
// Converts the dispatcher's part of a saved state, and the beginning of a restored job, to and from
// their wire form.
#pragma once

#include "control/proto/messages_proto.h"
#include "control/proto/reading.pb.h"
#include "control/protocol/saved_reading.h"

namespace penstock::control {

void ToWire(const GetReadingRequest& from, wire::GetReadingRequest* to);
absl::StatusOr<GetReadingRequest> FromWire(const wire::GetReadingRequest& from);

void ToWire(const SavedRepetition& from, wire::SavedRepetition* to);
absl::StatusOr<SavedRepetition> FromWire(const wire::SavedRepetition& from);

void ToWire(const RestoreJobRequest& from, wire::RestoreJobRequest* to);
absl::StatusOr<RestoreJobRequest> FromWire(const wire::RestoreJobRequest& from);

}  // namespace penstock::control
