// SPDX-License-Identifier: Apache-2.0
// Between gRPC's byte buffers and slots.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/message.h"

namespace penstock::transfer {

// A small message, copied.
grpc::ByteBuffer ToBuffer(std::string_view message);

// A message of that type with `block` behind its header. Nothing is copied: the
// loan is kept until gRPC has let go of the bytes.
grpc::ByteBuffer ToBuffer(MessageType type, absl::Span<const std::byte> block, Loan loan);

// The type of a message that arrived; InvalidArgument unless it has one.
absl::StatusOr<MessageType> TypeOf(const grpc::ByteBuffer& buffer);

// The whole message, header included, copied. InvalidArgument above
// kMaxControlBytes.
absl::StatusOr<std::string> ToString(const grpc::ByteBuffer& buffer);

// What is behind the header, gathered into a slot of `pool`; the slot may be
// longer. DataLoss above `max_bytes`, ResourceExhausted from the pool.
struct Gathered {
  Loan loan;
  size_t bytes = 0;
};
absl::StatusOr<Gathered> Gather(const grpc::ByteBuffer& buffer, int64_t max_bytes, Pool& pool);

}  // namespace penstock::transfer
