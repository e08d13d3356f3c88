// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/send_shared.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::transfer::shm {
namespace {

// Slots that a client still had when its link ended.
class LeftBehind final : public Loop::Member {
 public:
  LeftBehind(std::vector<Loan> loans, Descriptor hold, Descriptor pidfd)
      : loans_(std::move(loans)), hold_(std::move(hold)), pidfd_(std::move(pidfd)) {}

  int hold() const { return hold_.get(); }
  int pidfd() const { return pidfd_.get(); }

  bool Poll(Loop::Nanoseconds) override { return false; }
  void OnSocket() override { over_ = true; }
  void OnPeerEnd() override { over_ = true; }
  void SetSleeps(bool) override {}
  Loop::Nanoseconds deadline() const override { return Loop::kNever; }
  bool over() const override { return over_; }
  void OnDropped() override {
    loans_.clear();
    hold_.Reset();
    pidfd_.Reset();
  }

 private:
  std::vector<Loan> loans_;
  Descriptor hold_;
  Descriptor pidfd_;
  std::atomic<bool> over_{false};
};

}  // namespace

SendShared::KnownPtr SendShared::Find(const SharedPool::Segment& segment) {
  return std::find_if(segments_.begin(), segments_.end(),
                      [&](const auto& known) { return known.second.segment.get() == &segment; });
}

SendShared::Way SendShared::WayFor(const SharedPool::Place& place, const PacketSocket& socket) {
  if (!wanted_) return Way::kCopy;
  const auto bytes = static_cast<int64_t>(place.segment->layout.slot_bytes());
  if (bytes_at_client_ > 0 && bytes_at_client_ > place.segment->max_loan_bytes - bytes) {
    return Way::kCopy;
  }
  const KnownPtr known = Find(*place.segment);
  if (known == segments_.end()) {
    const absl::Status announced = Announce(place, socket);
    if (announced.ok()) return Way::kLater;
    Refuse(announced);
    return Way::kCopy;
  }
  if (!known->second.mapped) return Way::kLater;
  return known->second.slots[place.slot].loan ? Way::kCopy : Way::kWord;
}

absl::Status SendShared::Announce(const SharedPool::Place& place, const PacketSocket& socket) {
  if (!hold_) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the worker has no descriptors left: errno ", errno));
    }
    hold_ = Descriptor(pair[0]);
    theirs_ = Descriptor(pair[1]);
  }
  for (auto known = segments_.begin(); known != segments_.end();) {
    if (!known->second.segment->given_up) {
      ++known;
      continue;
    }
    RETURN_IF_ERROR(socket.Send(PacketKind::kGiveUp, known->first));
    known = segments_.erase(known);
  }
  uint32_t number = 0;
  while (segments_.contains(number)) ++number;
  if (number >= kMaxSegments) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a link can use at most ", kMaxSegments, " segments of its worker"));
  }
  const SlotLayout& layout = place.segment->layout;
  RETURN_IF_ERROR(socket.Send(PacketKind::kShared, number, layout.slots, layout.body_bytes, {},
                              {place.segment->memory.fd(), theirs_.get()}));
  Known& known = segments_[number];
  known.segment = place.segment;
  known.slots = std::make_unique<Shown[]>(layout.slots);
  return absl::OkStatus();
}

SlotWord SendShared::GiveAway(const SharedPool::Place& place, Loan loan) {
  const KnownPtr known = Find(*place.segment);
  PENSTOCK_CHECK(known != segments_.end() && known->second.mapped);
  Shown& slot = known->second.slots[place.slot];
  PENSTOCK_CHECK(!slot.loan);
  slot.loan = std::move(loan);
  bytes_at_client_ += static_cast<int64_t>(place.segment->layout.slot_bytes());
  return {.slot = known->first << kSlotInSegmentBits | place.slot,
          .generation = slot.generation,
          .head_bytes = place.head_bytes};
}

absl::Status SendShared::OnMapped(const Packet& packet) {
  const auto known =
      packet.a < kMaxSegments ? segments_.find(static_cast<uint32_t>(packet.a)) : segments_.end();
  if (known == segments_.end() || known->second.mapped) {
    return absl::DataLossError(
        absl::StrCat("the client reports that it mapped the worker's segment ", packet.a,
                     known == segments_.end() ? ", which was not announced to it"
                                              : ", which it had already mapped"));
  }
  const absl::Status answer(static_cast<absl::StatusCode>(packet.b), packet.text);
  known->second.mapped = answer.ok();
  if (!answer.ok()) Refuse(answer);
  return absl::OkStatus();
}

void SendShared::Refuse(const absl::Status& why) {
  if (!std::exchange(wanted_, false)) return;
  StderrEventLog()->Write(
      {"shared_segment_refused",
       {{"reason", std::string(why.message())}, {"instead", "a counted copy of each element"}}});
}

absl::StatusOr<Loan> SendShared::OnReturned(const SlotWord& word) {
  const uint32_t in_segment = word.slot & ((1u << kSlotInSegmentBits) - 1);
  auto known = segments_.find(word.slot >> kSlotInSegmentBits);
  if (known == segments_.end() || in_segment >= known->second.segment->layout.slots) {
    return absl::DataLossError(absl::StrCat("the client returned the worker's slot ", word.slot,
                                            ", which does not exist"));
  }
  Shown& slot = known->second.slots[in_segment];
  if (!slot.loan || slot.generation != word.generation) {
    return absl::DataLossError(absl::StrCat("the client returned the worker's slot ", word.slot,
                                            " of generation ", word.generation,
                                            ", which it does not hold"));
  }
  slot.generation = (slot.generation + 1) & kGenerationMask;
  bytes_at_client_ -= static_cast<int64_t>(known->second.segment->layout.slot_bytes());
  return std::move(slot.loan);
}

void SendShared::HandOver(Loop& loop, const Descriptor& peer) {
  wanted_ = false;
  theirs_.Reset();
  std::vector<Loan> kept;
  for (auto& [number, known] : segments_) {
    for (uint32_t i = 0; i < known.segment->layout.slots; ++i) {
      if (known.slots[i].loan) kept.push_back(std::move(known.slots[i].loan));
    }
  }
  segments_.clear();
  bytes_at_client_ = 0;
  if (kept.empty()) return hold_.Reset();
  Descriptor pidfd(peer ? ::fcntl(peer.get(), F_DUPFD_CLOEXEC, 0) : -1);
  auto left = std::make_shared<LeftBehind>(std::move(kept), std::move(hold_), std::move(pidfd));
  const int hold_fd = left->hold();
  const int pidfd_fd = left->pidfd();
  loop.Add(std::move(left), hold_fd, pidfd_fd);
}

}  // namespace penstock::transfer::shm
