// SPDX-License-Identifier: Apache-2.0
// Reads messages from the bytes in which the network carries them. For port.cc and stub.cc; the
// same over gRPC: control/rpc/wire_bytes.h.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "control/proto/messages_proto.h"
#include "include/status_macros.h"

namespace penstock::simulator {

// InvalidArgument if the bytes cannot be parsed.
template <class Wire>
absl::StatusOr<Wire> ParseBytes(const std::string& bytes) {
  Wire wire;
  if (wire.ParseFromString(bytes)) return wire;
  return absl::InvalidArgumentError(
      absl::StrCat(bytes.size(), " bytes cannot be parsed as ", wire.GetTypeName()));
}

// Returns the message of a stream, and its wire form. Returns nullopt for a kind of message that
// this release does not know. InvalidArgument also if the message is not valid.
template <class Message, class Wire>
absl::StatusOr<std::optional<Message>> ReadBytes(const std::string& bytes, Wire* wire) {
  ASSIGN_OR_RETURN(*wire, ParseBytes<Wire>(bytes));
  return control::FromStream(*wire);
}

}  // namespace penstock::simulator
