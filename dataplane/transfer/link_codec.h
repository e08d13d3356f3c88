// SPDX-License-Identifier: Apache-2.0
// How one link compresses the data that it sends: not at all, with the requested codec, or, if the
// choice is left to the link, with the codec that delivers the most bytes per second to the client.
// For that choice, the link and the codecs are measured while they work:
//
// - the link: by the bytes that the client reports as received, divided by the time in which data
//   was in flight. This quotient counts only if data was in flight for most of the time. Otherwise
//   elements do not wait for the link, and compression would waste CPU time.
// - a codec: by its CPU time, on an occasional message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/types/span.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/codec.h"
#include "dataplane/transfer/fifo.h"
#include "penstock/distribute.h"
#include "penstock/loan.h"

namespace penstock::transfer {

// Measurements of a codec.
struct CodecSpeed {
  double bytes_per_s = 0;  // input, while compressing; 0: not measured
  double ratio = 1;        // output bytes over input bytes
};

// Returns the throughput of the link with this codec, in bytes before compression per second. The
// calculation assumes that compressing, sending and decompressing a byte do not overlap. A codec is
// thus chosen only if it wins even without overlap.
double ThroughputWith(const CodecSpeed& codec, double link_bytes_per_s);

// Returns the codec with the best throughput if it beats `present` by more than a quarter.
// Otherwise returns kNone if sending without a codec beats `present` at all, else `present`.
// `speeds` is indexed by Codec. Pure.
Codec ChooseCodec(Codec present, double link_bytes_per_s, const std::array<CodecSpeed, 3>& speeds);

// The codec of one link. One thread at a time may call Encode(); any thread may call OnReceived().
class LinkCodec {
 public:
  using Clock = SteadyClock;
  // `now` is for tests.
  explicit LinkCodec(Pool& pool, std::function<Clock::time_point()> now = Clock::now)
      : pool_(pool), now_(std::move(now)) {}

  // Call this before anything is sent. Without this call nothing is compressed.
  void SetCompression(LinkCompression compression);

  // The message to send.
  struct Encoded {
    MessageType type = MessageType::kElement;
    absl::Span<const std::byte> bytes;
    Loan loan;  // keeps `bytes`
  };
  // Compresses a message of `count` elements if that makes it shorter; `bytes` is a frame or a
  // block.
  Encoded Encode(MessageType type, absl::Span<const std::byte> bytes, Loan loan, int64_t count);
  // Records a message that was sent without Encode(): an error (0 bytes), or an element over a
  // different connection.
  void OnOther(size_t bytes);
  // Records that the client has received the `count` oldest elements.
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
  bool try_all_ GUARDED_BY(mu_) = false;  // with the next message
  int idle_periods_ GUARDED_BY(mu_) = 0;  // until codecs may be tried again
  Fifo<UnderWay> under_way_ GUARDED_BY(mu_);
  Clock::time_point period_begin_ GUARDED_BY(mu_);
  Clock::time_point busy_since_ GUARDED_BY(mu_);
  Clock::duration busy_ GUARDED_BY(mu_){0};    // in this period
  size_t received_bytes_ GUARDED_BY(mu_) = 0;  // in this period
};

}  // namespace penstock::transfer
