// SPDX-License-Identifier: Apache-2.0
// The protocol between the bench and the readers that it starts, one JSON object a line:
//
//   bench                       reader
//   Setup                   →
//                           ←   {"pids": {role: […]}, "version": …} or {"error": text}
//   {"seconds": s}          →
//                           ←   Done, or {"error": text, "data_loss": true}: wrong contents
//   end of input            →   ends
//
// A reader may be any program: bench/peers/ has readers of other systems.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

nlohmann::json ToJson(const Setup& setup);
nlohmann::json ToJson(const Done& done);
nlohmann::json ToJson(const InStep& in_step);

// Parses a reader's answer. Returns its {"error": …} as Aborted or DataLoss; Internal if it is not
// an object.
absl::StatusOr<nlohmann::json> ParseAnswer(const std::string& line);
// Read the object. InvalidArgument, naming the field, if a field is missing or of another type.
absl::StatusOr<Setup> SetupOf(const nlohmann::json& json);
absl::StatusOr<Done> DoneOf(const nlohmann::json& json);

}  // namespace penstock::bench
