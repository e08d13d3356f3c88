// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "dataplane/element/crc32c.h"
#include "dataplane/element/frame.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::transfer::tcp {
namespace {

constexpr size_t kSumOfHeadAt = 12;

std::string_view TextOf(absl::Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint32_t SumOfHead(const char* head) {
  const uint32_t before = Crc32c({head, kSumOfHeadAt});
  return Crc32c({head + kPrefixBytes, kMessageHeaderBytes}, before);
}

// Adds the head of the first block in `body` to the sum, and removes the block from `body`. The
// data is untrusted, so only the end of `body` limits the head.
uint32_t AddHead(absl::Span<const std::byte>& body, uint32_t sum) {
  HeadPrefix prefix{};
  std::memcpy(&prefix, body.data(), std::min(body.size(), sizeof prefix));
  const size_t head = std::min(std::max<size_t>(prefix.head_bytes, sizeof prefix), body.size());
  sum = Crc32c(TextOf(body.subspan(0, head)), sum);
  body.remove_prefix(head);
  body.remove_prefix(std::min<size_t>(prefix.body_bytes, body.size()));
  return sum;
}

}  // namespace

uint32_t SumOfBody(MessageType type, uint8_t flags, absl::Span<const std::byte> body) {
  const bool frame = type == MessageType::kFrame;
  if ((flags & kSumOfAll) != 0 || (!frame && type != MessageType::kElement)) {
    return Crc32c(TextOf(body));
  }
  uint32_t sum = 0;
  if (frame) {
    const size_t prefix = std::min(sizeof(FramePrefix), body.size());
    sum = Crc32c(TextOf(body.subspan(0, prefix)));
    body.remove_prefix(prefix);
  }
  do {
    sum = AddHead(body, sum);
  } while (frame && !body.empty());
  return sum;
}

Head HeadOf(MessageType type, uint8_t flags, uint64_t body_bytes, uint32_t sum_of_body) {
  Head head{};
  const uint64_t bytes = kMessageHeaderBytes + body_bytes;
  std::memcpy(head.data(), &bytes, sizeof bytes);
  std::memcpy(head.data() + sizeof bytes, &sum_of_body, sizeof sum_of_body);
  head[kPrefixBytes] = static_cast<char>(type);
  head[kPrefixBytes + 1] = static_cast<char>(flags);
  const uint32_t sum = SumOfHead(head.data());
  std::memcpy(head.data() + kSumOfHeadAt, &sum, sizeof sum);
  return head;
}

absl::StatusOr<HeadFields> ParseHead(const Head& head) {
  uint32_t sum;
  std::memcpy(&sum, head.data() + kSumOfHeadAt, sizeof sum);
  if (sum != SumOfHead(head.data())) {
    return absl::DataLossError(
        "the received bytes are not a message, or were corrupted in transit (wrong head checksum)");
  }
  HeadFields fields;
  uint64_t bytes;
  std::memcpy(&bytes, head.data(), sizeof bytes);
  std::memcpy(&fields.sum_of_body, head.data() + sizeof bytes, sizeof fields.sum_of_body);
  char header[kMessageHeaderBytes];
  std::memcpy(header, head.data() + kPrefixBytes, sizeof header);
  fields.flags = static_cast<uint8_t>(std::exchange(header[1], 0));
  ASSIGN_OR_RETURN(fields.type, TypeOf({header, sizeof header}));
  if (bytes < kMessageHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", bytes, " bytes has no header"));
  }
  fields.body_bytes = bytes - kMessageHeaderBytes;
  return fields;
}

void FinishMessage(std::string& bytes, size_t begun_at, uint8_t flags) {
  const size_t body_at = begun_at + kHeadBytes;
  PENSTOCK_CHECK(bytes.size() >= body_at);
  const auto type = static_cast<MessageType>(bytes[begun_at + kPrefixBytes]);
  const Head head =
      HeadOf(type, flags,
             absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()) + body_at,
                                 bytes.size() - body_at));
  std::copy(head.begin(), head.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begun_at));
}

}  // namespace penstock::transfer::tcp
