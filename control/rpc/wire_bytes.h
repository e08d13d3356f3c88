// SPDX-License-Identifier: Apache-2.0
// Converts messages to and from the bytes of calls and streams. gRPC is given bytes and not
// messages, because it ends a stream with unparsable bytes without a report, as if the other end
// had ended it. Includes gRPC.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "control/proto/messages_proto.h"
#include "include/status_macros.h"

namespace penstock::control {

template <class Wire>
grpc::ByteBuffer ToBytes(const Wire& wire) {
  grpc::ByteBuffer bytes;
  grpc::ProtoBufferWriter writer(&bytes, /*block_size=*/1 << 20,
                                 static_cast<int>(wire.ByteSizeLong()));
  wire.SerializeToZeroCopyStream(&writer);
  return bytes;
}

// Parses `bytes` into `wire`, and clears `bytes`. InvalidArgument if they cannot be parsed.
template <class Wire>
absl::Status Parse(grpc::ByteBuffer* bytes, Wire* wire) {
  const size_t size = bytes->Length();
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(bytes);
    parsed = reader.status().ok() && wire->ParseFromZeroCopyStream(&reader);
  }
  bytes->Clear();
  if (parsed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(size, " bytes cannot be parsed as ", wire->GetTypeName()));
}

// Calls Parse(), and returns the message. Returns nullopt for a kind of message that this release
// does not know and therefore does not need. InvalidArgument also if the message is not valid.
template <class Message, class Wire>
absl::StatusOr<std::optional<Message>> Read(grpc::ByteBuffer* bytes, Wire* wire) {
  RETURN_IF_ERROR(Parse(bytes, wire));
  if (wire->message_case() == Wire::MESSAGE_NOT_SET) return std::nullopt;
  return FromWire(*wire);
}

}  // namespace penstock::control
