// SPDX-License-Identifier: Apache-2.0
// Converts messages to and from the bytes of calls and streams. gRPC is given bytes and not
// messages, because it ends a stream with unparsable bytes without a report, as if the other end
// had ended it. Includes gRPC.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "control/proto/messages_proto.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
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

// Returns what precedes a value of `size` bytes in the field with this number, which has the type
// bytes or a message.
inline std::string HeadOfField(int field, size_t size) {
  using google::protobuf::internal::WireFormatLite;
  using google::protobuf::io::CodedOutputStream;
  std::array<uint8_t, 10> head;  // two numbers of 32 bits
  uint8_t* end = CodedOutputStream::WriteTagToArray(
      WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), head.data());
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), end);
  return {head.begin(), end};
}

// Appends a value of the field with this number to the bytes of a message.
inline void AppendField(int field, std::string_view value, std::string* message) {
  message->append(HeadOfField(field, value.size())).append(value);
}

inline grpc::ByteBuffer ToBytes(std::string message) {
  auto* owner = new std::string(std::move(message));
  const grpc::Slice slice(
      owner->data(), owner->size(),
      [](void* of_slice) { delete static_cast<std::string*>(of_slice); }, owner);
  return {&slice, 1};
}

// Bytes that several messages share.
struct SharedBytes {
  std::shared_ptr<const void> owner;  // keeps `bytes`
  std::string_view bytes;
};

// Returns the bytes of `wire` with one more field, which is `shared`. They keep its owner and
// contain no copy of it. `field` is the number of a field of type bytes that `wire` does not have.
template <class Wire>
grpc::ByteBuffer ToBytes(const Wire& wire, int field, SharedBytes shared) {
  if (shared.bytes.empty()) return ToBytes(wire);
  std::vector<grpc::Slice> slices;
  ToBytes(wire).Dump(&slices).IgnoreError();  // fails only for compressed bytes
  slices.emplace_back(HeadOfField(field, shared.bytes.size()));
  using Owner = std::shared_ptr<const void>;
  auto* owner = new Owner(std::move(shared.owner));
  slices.emplace_back(
      const_cast<char*>(shared.bytes.data()), shared.bytes.size(),  // gRPC only reads
      [](void* of_slice) { delete static_cast<Owner*>(of_slice); }, owner);
  return grpc::ByteBuffer(slices.data(), slices.size());
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

// Calls Parse() and FromStream(), and returns their errors.
template <class Message, class Wire>
absl::StatusOr<std::optional<Message>> Read(grpc::ByteBuffer* bytes, Wire* wire) {
  RETURN_IF_ERROR(Parse(bytes, wire));
  return FromStream(*wire);
}

}  // namespace penstock::control
