// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/element_receiver.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "dataplane/element/device_block_check.h"
#include "dataplane/element/frame.h"
#include "dataplane/transfer/codec.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

absl::Status Take(std::atomic<int64_t>& left, int64_t count) {
  if (left.fetch_sub(count, std::memory_order_relaxed) >= count) return absl::OkStatus();
  return absl::DataLossError("the worker sent or returned more than it was granted");
}

}  // namespace

absl::Status ElementReceiver::Use(int64_t count) {
  room_.fetch_sub(count, std::memory_order_relaxed);
  return Take(credits_, count);
}

absl::Status ElementReceiver::BeginEarly() {
  return Take(room_, 1);
}

absl::Status ElementReceiver::UseInTurn() {
  return Take(credits_, 1);
}

absl::Status ElementReceiver::Element(Loan loan, size_t bytes, ReceiveEvents& events,
                                      int64_t& received) {
  received = 0;
  absl::Span<std::byte> block = loan.bytes().first(bytes);
  absl::StatusOr<size_t> block_bytes = CheckBlock(block, spec_);
  if (!block_bytes.ok()) return absl::DataLossError(block_bytes.status().message());
  if (*block_bytes != bytes) {
    return absl::DataLossError(absl::StrCat("an element's block has ", *block_bytes,
                                            " bytes, but its message has ", bytes));
  }
  RETURN_IF_ERROR(Check(bytes));
  penstock::Element element(std::move(loan), block.data(), spec_);
  events.OnElements(absl::MakeSpan(&element, 1));
  received = 1;
  return absl::OkStatus();
}

absl::Status ElementReceiver::OnDevice(Loan loan, size_t body_bytes, ReceiveEvents& events,
                                       int64_t& received) {
  received = 0;
  const absl::Span<std::byte> head = loan.bytes();
  if (absl::Status checked = CheckBlockHead(head, body_bytes, spec_); !checked.ok())
    return absl::DataLossError(checked.message());
  RETURN_IF_ERROR(Check(head.size() + body_bytes));
  penstock::Element element(std::move(loan), head.data(), spec_);
  events.OnElements(absl::MakeSpan(&element, 1));
  received = 1;
  return absl::OkStatus();
}

absl::Status ElementReceiver::Frame(Loan loan, size_t bytes, ReceiveEvents& events,
                                    int64_t& received) {
  received = 0;
  ASSIGN_OR_RETURN(FrameReader frame, FrameReader::Open(std::move(loan), bytes, spec_));
  absl::Status status;
  while (status.ok()) {
    absl::StatusOr<std::optional<penstock::Element>> element = frame.Next();
    if (element.ok() && !element->has_value()) break;
    status = element.ok() ? Check((*element)->block().size()) : element.status();
    if (status.ok() && !frame_elements_.empty()) status = Use(1);
    if (status.ok()) frame_elements_.push_back(std::move(**element));
  }
  received = static_cast<int64_t>(frame_elements_.size());
  if (received > 0) events.OnElements(absl::MakeSpan(frame_elements_));
  frame_elements_.clear();
  return status.ok() ? status : absl::DataLossError(status.message());
}

absl::Status ElementReceiver::Compressed(const Loan& loan, size_t bytes, Pool& pool,
                                         ReceiveEvents& events, int64_t& received) {
  received = 0;
  const absl::Span<const std::byte> body = loan.bytes().first(bytes);
  ASSIGN_OR_RETURN(const CompressedPrefix prefix, ReadCompressedPrefix(body));
  const bool frame = prefix.type == MessageType::kFrame;
  if (frame && prefix.bytes > kFrameBytes) {
    return absl::DataLossError(
        absl::StrCat("a compressed frame of ", prefix.bytes, " bytes is too large"));
  }
  if (!frame) RETURN_IF_ERROR(Check(prefix.bytes));
  ASSIGN_OR_RETURN(Loan whole, pool.Lend(prefix.bytes));
  RETURN_IF_ERROR(Decompress(prefix, body, whole.bytes().first(prefix.bytes)));
  return frame ? Frame(std::move(whole), prefix.bytes, events, received)
               : Element(std::move(whole), prefix.bytes, events, received);
}

absl::Status ElementReceiver::Check(size_t block_bytes) const {
  if (block_bytes <= static_cast<uint64_t>(max_element_bytes_)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "an element of ", block_bytes, " bytes is above max_element_bytes = ", max_element_bytes_));
}

}  // namespace penstock::transfer
