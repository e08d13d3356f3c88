// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/link_codec.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "control/observe/metrics.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"

namespace penstock::transfer {
namespace {

// The length of a period, which is long compared with the delay of the client's reports.
constexpr std::chrono::milliseconds kPeriod(100);
// The minimum share of a period during which data must be in flight. Below this share, the link is
// not the bottleneck.
constexpr double kBusy = 0.7;
// Bytes per second. No codec makes a link of at least this speed faster, so none is tried.
constexpr double kFastLink = 2e9;
// A codec must beat the current choice by this factor to be chosen.
constexpr double kWorthIt = 1.25;
// Decompression takes this share of the time that compression takes.
constexpr double kDecodeShare = 0.4;
// Codecs that did not help are tried again after this many periods, because contents change.
constexpr int kTryAgainAfter = 100;
constexpr double kWeightOfNew = 0.25;
// Smaller messages are not compressed.
constexpr size_t kWorthCompressing = 4 << 10;

double Seconds(SteadyClock::duration time) {
  return std::chrono::duration<double>(time).count();
}

void Count(Codec codec, size_t before, size_t after) {
  struct Counters {
    explicit Counters(Codec codec)
        : before(ProcessMetrics().GetCounter("penstock_link_compressed_from_bytes_total",
                                             "Bytes that links compressed, before compression.",
                                             {{"codec", NameOf(codec)}})),
          after(ProcessMetrics().GetCounter("penstock_link_compressed_to_bytes_total",
                                            "Bytes that links compressed, after compression.",
                                            {{"codec", NameOf(codec)}})) {}
    Counter& before;
    Counter& after;
  };
  static Counters snappy(Codec::kSnappy);
  static Counters lz4(Codec::kLz4);
  Counters& counters = codec == Codec::kSnappy ? snappy : lz4;
  counters.before.Add(static_cast<int64_t>(before));
  counters.after.Add(static_cast<int64_t>(after));
}

void CountChoice(Codec codec) {
  ProcessMetrics()
      .GetCounter("penstock_link_compression_choices_total",
                  "Changes of a link's codec after a measurement.", {{"codec", NameOf(codec)}})
      .Add();
}

size_t At(Codec codec) {
  return static_cast<size_t>(codec);
}

}  // namespace

double ThroughputWith(const CodecSpeed& codec, double link_bytes_per_s) {
  if (codec.bytes_per_s <= 0) return 0;
  return 1 / ((1 + kDecodeShare) / codec.bytes_per_s + codec.ratio / link_bytes_per_s);
}

Codec ChooseCodec(Codec present, double link_bytes_per_s, const std::array<CodecSpeed, 3>& speeds) {
  const auto with = [&](Codec codec) {
    return codec == Codec::kNone ? link_bytes_per_s
                                 : ThroughputWith(speeds[At(codec)], link_bytes_per_s);
  };
  Codec best = Codec::kNone;
  for (Codec codec : {Codec::kSnappy, Codec::kLz4}) {
    if (with(codec) > with(best)) best = codec;
  }
  // A codec needs a clear gain to be chosen, but is dropped as soon as it loses.
  if (best != Codec::kNone && with(best) > kWorthIt * with(present)) return best;
  return with(Codec::kNone) > with(present) ? Codec::kNone : present;
}

void LinkCodec::SetCompression(LinkCompression compression) {
  compression_ = compression;
  MutexLock lock(mu_);
  period_begin_ = now_();
  if (compression == LinkCompression::kSnappy) present_ = Codec::kSnappy;
  if (compression == LinkCompression::kLz4) present_ = Codec::kLz4;
}

Codec LinkCodec::present() const {
  MutexLock lock(mu_);
  return present_;
}

LinkCodec::Encoded LinkCodec::Encode(MessageType type, absl::Span<const std::byte> bytes, Loan loan,
                                     int64_t count) {
  Encoded encoded{type, bytes, std::move(loan)};
  if (compression_ == LinkCompression::kNone) return encoded;
  if (bytes.size() >= kWorthCompressing && bytes.size() <= kMaxCodecBytes) {
    Codec codec;
    bool try_all;
    {
      MutexLock lock(mu_);
      codec = present_;
      try_all = std::exchange(try_all_, false);
    }
    std::optional<Encoded> shorter;
    if (try_all) {
      shorter = TryAll(type, bytes);
    } else if (codec != Codec::kNone) {
      shorter = Try(codec, type, bytes);
    }
    if (shorter.has_value()) encoded = *std::move(shorter);
  }
  OnSent(count, encoded.bytes.size());
  return encoded;
}

std::optional<LinkCodec::Encoded> LinkCodec::Try(Codec codec, MessageType type,
                                                 absl::Span<const std::byte> bytes) {
  absl::StatusOr<Loan> slot = pool_.Lend(CompressedBound(codec, bytes.size()));
  if (!slot.ok()) return std::nullopt;  // sent uncompressed
  const double begin = Seconds(ThreadCpuTime());
  const size_t after = Compress(codec, type, bytes, slot->bytes());
  const double took = std::max(Seconds(ThreadCpuTime()) - begin, 1e-9);
  {
    MutexLock lock(mu_);
    CodecSpeed& speed = speeds_[At(codec)];
    const double rate = static_cast<double>(bytes.size()) / took;
    const double ratio =
        after == 0 ? 1 : static_cast<double>(after) / static_cast<double>(bytes.size());
    const double weight = speed.bytes_per_s == 0 ? 1 : kWeightOfNew;
    speed.bytes_per_s += weight * (rate - speed.bytes_per_s);
    speed.ratio += weight * (ratio - speed.ratio);
  }
  if (after == 0) return std::nullopt;
  Count(codec, bytes.size(), after);
  const absl::Span<const std::byte> body = slot->bytes().first(after);
  return Encoded{MessageType::kCompressed, body, *std::move(slot)};
}

std::optional<LinkCodec::Encoded> LinkCodec::TryAll(MessageType type,
                                                    absl::Span<const std::byte> bytes) {
  {
    MutexLock lock(mu_);
    speeds_ = {};  // measured on other contents
  }
  std::optional<Encoded> best = Try(Codec::kSnappy, type, bytes);
  std::optional<Encoded> other = Try(Codec::kLz4, type, bytes);
  if (!best.has_value() || (other.has_value() && other->bytes.size() < best->bytes.size())) {
    best = std::move(other);
  }
  return best;
}

void LinkCodec::OnOther(size_t bytes) {
  if (compression_ != LinkCompression::kNone) OnSent(1, bytes);
}

void LinkCodec::OnSent(int64_t count, size_t bytes) {
  if (compression_ != LinkCompression::kAuto) return;
  MutexLock lock(mu_);
  if (under_way_.empty()) busy_since_ = now_();
  under_way_.Push({count, bytes});
}

void LinkCodec::OnReceived(int64_t count) {
  if (compression_ != LinkCompression::kAuto || count == 0) return;
  MutexLock lock(mu_);
  const Clock::time_point now = now_();
  const bool was_busy = !under_way_.empty();
  while (count > 0 && !under_way_.empty()) {
    UnderWay& oldest = under_way_.front();
    const int64_t received = std::min(count, oldest.count);
    oldest.count -= received;
    count -= received;
    if (oldest.count > 0) break;
    received_bytes_ += oldest.bytes;
    under_way_.Pop();
  }
  if (was_busy && under_way_.empty()) busy_ += now - busy_since_;
  if (now - period_begin_ >= kPeriod) EndPeriod(now);
}

void LinkCodec::EndPeriod(Clock::time_point now) {
  if (!under_way_.empty()) busy_ += now - std::exchange(busy_since_, now);
  const double busy = Seconds(std::exchange(busy_, Clock::duration(0)));
  const double whole = Seconds(now - std::exchange(period_begin_, now));
  const double link = static_cast<double>(std::exchange(received_bytes_, 0)) / std::max(busy, 1e-9);
  idle_periods_ = std::max(0, idle_periods_ - 1);
  if (link <= 0 || (present_ == Codec::kNone && busy < kBusy * whole)) return;
  if (present_ == Codec::kNone && idle_periods_ == 0 && link < kFastLink) {
    idle_periods_ = kTryAgainAfter;
    try_all_ = true;  // decided at the end of the next period
    return;
  }
  const Codec chosen = ChooseCodec(present_, link, speeds_);
  if (chosen == present_) return;
  present_ = chosen;
  CountChoice(chosen);
}

}  // namespace penstock::transfer
