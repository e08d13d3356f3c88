// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/grpc/slices.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) slices.clear();
  return slices;
}

// Copies up to `size` bytes, starting at offset `from`; returns the number of bytes copied.
size_t CopyOut(const std::vector<grpc::Slice>& slices, size_t from, char* to, size_t size) {
  size_t copied = 0;
  for (const grpc::Slice& slice : slices) {
    if (from >= slice.size()) {
      from -= slice.size();
      continue;
    }
    const size_t piece = std::min(slice.size() - from, size - copied);
    std::memcpy(to + copied, slice.begin() + from, piece);
    copied += piece;
    from = 0;
    if (copied == size) break;
  }
  return copied;
}

}  // namespace

grpc::ByteBuffer ToBuffer(std::string_view message) {
  grpc::Slice slice(message.data(), message.size());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer ToBuffer(MessageType type, absl::Span<const std::byte> block, Loan loan) {
  const std::string header = EncodeHeader(type);
  auto kept = std::make_unique<Loan>(std::move(loan));
  auto* bytes = const_cast<std::byte*>(block.data());  // gRPC only reads these bytes
  grpc::Slice slices[] = {
      grpc::Slice(header.data(), header.size()),
      grpc::Slice(
          bytes, block.size(), [](void* held) { delete static_cast<Loan*>(held); }, kept.release()),
  };
  return grpc::ByteBuffer(slices, 2);
}

absl::StatusOr<MessageType> TypeOf(const grpc::ByteBuffer& buffer) {
  char header[kMessageHeaderBytes];
  const size_t bytes = CopyOut(SlicesOf(buffer), 0, header, sizeof(header));
  return TypeOf(std::string_view(header, bytes));
}

absl::StatusOr<std::string> ToString(const grpc::ByteBuffer& buffer) {
  if (buffer.Length() > kMaxControlBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", buffer.Length(),
                                                   " bytes exceeds the limit of ", kMaxControlBytes,
                                                   " bytes"));
  }
  std::string bytes(buffer.Length(), '\0');
  bytes.resize(CopyOut(SlicesOf(buffer), 0, bytes.data(), bytes.size()));
  return bytes;
}

absl::StatusOr<Gathered> Gather(const grpc::ByteBuffer& buffer, int64_t max_bytes, Pool& pool) {
  if (buffer.Length() < kMessageHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat("a message of ", buffer.Length(), " bytes has no header"));
  }
  const size_t bytes = buffer.Length() - kMessageHeaderBytes;
  if (bytes > static_cast<uint64_t>(max_bytes)) {
    return absl::DataLossError(
        absl::StrCat("an element of ", bytes, " bytes is above max_element_bytes = ", max_bytes));
  }
  ASSIGN_OR_RETURN(Loan loan, pool.Lend(bytes));
  const size_t copied = CopyOut(SlicesOf(buffer), kMessageHeaderBytes,
                                reinterpret_cast<char*>(loan.bytes().data()), bytes);
  return Gathered{std::move(loan), copied};
}

}  // namespace penstock::transfer
