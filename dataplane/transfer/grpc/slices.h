// SPDX-License-Identifier: Apache-2.0
// Converts between gRPC's byte buffers and slots.
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

// Copies a small message.
grpc::ByteBuffer ToBuffer(std::string_view message);

// Makes a message of type `type` with `block` after its header. Nothing is copied: the loan is kept
// until gRPC releases the bytes.
grpc::ByteBuffer ToBuffer(MessageType type, absl::Span<const std::byte> block, Loan loan);

// Returns the type of a message that arrived; InvalidArgument if it has none.
absl::StatusOr<MessageType> TypeOf(const grpc::ByteBuffer& buffer);

// Copies the whole message, header included. InvalidArgument above kMaxControlBytes.
absl::StatusOr<std::string> ToString(const grpc::ByteBuffer& buffer);

struct Gathered {
  Loan loan;
  size_t bytes = 0;  // the length of the data; the loan may be longer
};
// Copies the data after the header into one slot of `pool`. DataLoss above `max_bytes`,
// ResourceExhausted from the pool.
absl::StatusOr<Gathered> Gather(const grpc::ByteBuffer& buffer, int64_t max_bytes, Pool& pool);

}  // namespace penstock::transfer
