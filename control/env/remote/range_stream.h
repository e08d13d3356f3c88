// SPDX-License-Identifier: Apache-2.0
// Reads the bytes of a remote file in order, and fetches the next ranges meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/env/files.h"
#include "control/env/remote/http_client.h"

namespace penstock::remote {

// The number of bytes that all files of a process together may have fetched ahead. Any thread may
// call any method.
class RangeBudget {
 public:
  explicit RangeBudget(int64_t bytes) : left_(bytes) {}
  // Returns false, and takes nothing, if fewer than `bytes` are left.
  bool TryTake(int64_t bytes);
  void Take(int64_t bytes) { left_ -= bytes; }  // even if fewer are left
  void Give(int64_t bytes) { left_ += bytes; }

 private:
  std::atomic<int64_t> left_;
};

// Used by one thread at a time.
class RangeStream {
 public:
  struct Source {
    std::function<std::unique_ptr<PendingGet>(int64_t begin, int64_t bytes)> get;
    RangeBudget& budget;
    int64_t range_bytes;
    int ranges_ahead;
  };

  // Reads the bytes [begin, end). REQUIRES: the file has at least `end` bytes.
  RangeStream(const Source& source, int64_t begin, int64_t end);
  ~RangeStream();
  RangeStream(const RangeStream&) = delete;
  RangeStream& operator=(const RangeStream&) = delete;

  int64_t position() const { return position_; }
  // Skips bytes. REQUIRES: offset >= position().
  void SkipTo(int64_t offset);
  // Fills all of `into` with the next bytes; reads fewer only at `end`. After an error, the next
  // call tries to read the same bytes again.
  absl::StatusOr<size_t> Read(absl::Span<char> into, const std::stop_token& stop);

 private:
  struct Range {
    int64_t begin;
    int64_t end;
    std::unique_ptr<PendingGet> pending;  // nullptr once `reply` is set
    GetReply reply;
  };

  // Requests as many ranges as the limits allow, but at least one.
  void Ask();
  // Waits for the first range.
  absl::Status Arrive(const std::stop_token& stop);
  void DropFirst();

  const Source& source_;
  const int64_t end_;
  int64_t position_;
  int64_t asked_to_;          // the end of the last requested range
  std::deque<Range> ranges_;  // [position_ … asked_to_)
};

}  // namespace penstock::remote
