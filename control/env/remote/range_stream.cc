// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/range_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "include/status_macros.h"

namespace penstock::remote {

bool RangeBudget::TryTake(int64_t bytes) {
  int64_t left = left_;
  do {
    if (left < bytes) return false;
  } while (!left_.compare_exchange_weak(left, left - bytes));
  return true;
}

RangeStream::RangeStream(const Source& source, int64_t begin, int64_t end)
    : source_(source), end_(end), position_(begin), asked_to_(begin) {
  if (position_ < end_) Ask();
}

RangeStream::~RangeStream() {
  while (!ranges_.empty()) DropFirst();
}

void RangeStream::Ask() {
  while (asked_to_ < end_ && ranges_.size() < static_cast<size_t>(source_.ranges_ahead)) {
    const int64_t bytes = std::min(source_.range_bytes, end_ - asked_to_);
    if (ranges_.empty()) {
      source_.budget.Take(bytes);
    } else if (!source_.budget.TryTake(bytes)) {
      return;
    }
    ranges_.push_back({asked_to_, asked_to_ + bytes, source_.get(asked_to_, bytes), {}});
    asked_to_ += bytes;
  }
}

void RangeStream::DropFirst() {
  source_.budget.Give(ranges_.front().end - ranges_.front().begin);
  ranges_.pop_front();
}

void RangeStream::SkipTo(int64_t offset) {
  position_ = std::min(offset, end_);
  while (!ranges_.empty() && ranges_.front().end <= position_) DropFirst();
  if (ranges_.empty()) asked_to_ = position_;
}

absl::Status RangeStream::Arrive(const std::stop_token& stop) {
  Range& first = ranges_.front();
  if (first.pending == nullptr) return absl::OkStatus();
  absl::StatusOr<GetReply> reply = first.pending->Wait(stop);
  if (absl::IsCancelled(reply.status())) return reply.status();
  if (!reply.ok()) {
    while (!ranges_.empty()) DropFirst();
    asked_to_ = position_;
    return reply.status();
  }
  first.pending = nullptr;
  first.reply = *std::move(reply);
  return absl::OkStatus();
}

absl::StatusOr<size_t> RangeStream::Read(absl::Span<char> into, const std::stop_token& stop) {
  size_t done = 0;
  while (done < into.size() && position_ < end_) {
    Ask();
    RETURN_IF_ERROR(Arrive(stop));
    const Range& first = ranges_.front();
    const size_t bytes =
        std::min<size_t>(into.size() - done, static_cast<size_t>(first.end - position_));
    std::memcpy(into.data() + done, first.reply.body.get() + (position_ - first.begin), bytes);
    done += bytes;
    SkipTo(position_ + static_cast<int64_t>(bytes));
  }
  Ask();
  return done;
}

}  // namespace penstock::remote
