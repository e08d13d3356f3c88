// SPDX-License-Identifier: Apache-2.0
// What one link does to what it sends: nothing, a codec that was asked for, or, where
// the choice is left to it, whatever brings most bytes to the client in a second. For
// that the link and the codecs are measured as they work:
//
// - the link, by what the client says it received, over the time in which something was
//   under way. It counts only if that was nearly all of the time: else the link is not
//   what elements wait for, and compressing would take processor time for nothing.
// - a codec, by the processor time that it takes, on a message now and then.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/types/span.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/codec.h"
#include "dataplane/transfer/fifo.h"
#include "penstock/distribute.h"
#include "penstock/loan.h"

namespace penstock::transfer {

// What is known of a codec.
struct CodecSpeed {
  double bytes_per_s = 0;  // of what goes in, while compressing; 0: not measured
  double ratio = 1;        // what comes out over what goes in
};

// What the codec would make of the link, in bytes before compression per second: each byte
// is compressed, sent and made whole again, one after the other, so that a codec is chosen
// only where it wins without any overlap.
double ThroughputWith(const CodecSpeed& codec, double link_bytes_per_s);

// The better one by at least a quarter: a codec instead of none, or the present one no more.
// `speeds` by Codec. Pure.
Codec ChooseCodec(Codec present, double link_bytes_per_s, const std::array<CodecSpeed, 3>& speeds);

// Of one link. Encode() is for one thread at a time, OnReceived() for any.
class LinkCodec {
 public:
  using Clock = std::chrono::steady_clock;
  // `now` for tests.
  explicit LinkCodec(Pool& pool, std::function<Clock::time_point()> now = Clock::now)
      : pool_(pool), now_(std::move(now)) {}

  // Before anything is sent. Without it nothing is compressed.
  void SetCompression(LinkCompression compression);

  // The message as it is to be sent.
  struct Encoded {
    MessageType type = MessageType::kElement;
    absl::Span<const std::byte> bytes;
    Loan loan;  // keeps `bytes`
  };
  // Of `count` elements; `bytes` are those of a frame or a block.
  Encoded Encode(MessageType type, absl::Span<const std::byte> bytes, Loan loan, int64_t count);
  // One went out without it: an error, of 0 bytes, or an element over another connection.
  void OnOther(size_t bytes);
  // The client has received the oldest so many.
  void OnReceived(int64_t count);

  Codec present() const;

 private:
  struct UnderWay {
    int64_t count = 0;
    size_t bytes = 0;  // as sent
  };

  std::optional<Encoded> Try(Codec codec, MessageType type, absl::Span<const std::byte> bytes);
  std::optional<Encoded> TryAll(MessageType type, absl::Span<const std::byte> bytes);
  void OnSent(int64_t count, size_t bytes);
  void EndPeriod(Clock::time_point now) REQUIRES(mu_);

  Pool& pool_;
  const std::function<Clock::time_point()> now_;
  LinkCompression compression_ = LinkCompression::kNone;

  mutable Mutex mu_;
  Codec present_ GUARDED_BY(mu_) = Codec::kNone;
  std::array<CodecSpeed, 3> speeds_ GUARDED_BY(mu_);
  bool try_all_ GUARDED_BY(mu_) = false;  // the next message
  int idle_periods_ GUARDED_BY(mu_) = 0;  // until codecs may be tried again
  Fifo<UnderWay> under_way_ GUARDED_BY(mu_);
  Clock::time_point period_begin_ GUARDED_BY(mu_);
  Clock::time_point busy_since_ GUARDED_BY(mu_);
  Clock::duration busy_ GUARDED_BY(mu_){0};    // of this period
  size_t received_bytes_ GUARDED_BY(mu_) = 0;  // in this period
};

}  // namespace penstock::transfer
