// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/receiver.h"

#include <algorithm>
#include <utility>

#include "penstock/check.h"

namespace penstock::protocol {

Receiver::Receiver(PartitionId partition, IndexSet taken, Broken broken)
    : partition_(partition), broken_(broken), taken_(std::move(taken)), unsaid_taken_(taken_) {}

Landing Receiver::OnElement(Placement placement, Index index) {
  if (placement < lowest_ && broken_ != Broken::kAcceptOldPlacements) return Landing::kOldPlacement;
  if (taken_.Contains(index) || landed_.Contains(index)) return Landing::kAlreadyHere;
  landed_.Add(index);
  unsaid_landed_.Add(index);
  return Landing::kAccepted;
}

void Receiver::OnHanded(Index index) {
  PENSTOCK_CHECK(landed_.Contains(index));
  handed_.Add(index);
  unsaid_handed_.Add(index);
}

void Receiver::OnTaken(Index index) {
  PENSTOCK_CHECK(landed_.Contains(index));
  const IndexSet one = IndexSet::Of(index, index + 1);
  landed_.Remove(one);
  unsaid_landed_.Remove(one);
  if (!handed_.empty()) {
    handed_.Remove(one);
    unsaid_handed_.Remove(one);
  }
  taken_.Add(index);
  unsaid_taken_.Add(index);
}

IndexSet Receiver::Has() const {
  IndexSet has = taken_;
  has.Add(landed_);
  return has;
}

Report Receiver::Say() {
  owes_report_ = false;
  Report report{.partition = partition_,
                .placement = lowest_,
                .taken = std::move(unsaid_taken_),
                .landed = std::move(unsaid_landed_),
                .handed = std::move(unsaid_handed_),
                .whole = std::exchange(whole_, false)};
  unsaid_taken_.clear();
  unsaid_landed_.clear();
  unsaid_handed_.clear();
  return report;
}

Report Receiver::OnFence(Placement placement, const IndexSet& returns) {
  // The dispatcher may have assigned by what was said under this placement.
  if (placement <= lowest_ && broken_ != Broken::kGiveBackTwice) return Say();
  lowest_ = placement;
  PENSTOCK_CHECK(landed_.Contains(returns) && !handed_.Intersects(returns));
  if (broken_ != Broken::kGiveBackAndKeep) {
    landed_.Remove(returns);
    unsaid_landed_.Remove(returns);
  }
  Report report = Say();
  report.returned = returns;
  return report;
}

void Receiver::OnWelcome(Placement placement) {
  lowest_ = std::max(lowest_, placement);
}

std::optional<Report> Receiver::News() {
  if (!owes_report_ && unsaid_taken_.empty() && unsaid_landed_.empty() && unsaid_handed_.empty())
    return std::nullopt;
  return Say();
}

std::optional<Report> Receiver::LandedNews() {
  if (whole_) return Say();
  if (unsaid_landed_.empty()) return std::nullopt;
  Report report{.partition = partition_,
                .placement = lowest_,
                .taken = {},
                .landed = std::move(unsaid_landed_)};
  unsaid_landed_.clear();
  return report;
}

void Receiver::OnPresented() {
  owes_report_ = whole_ = true;
  unsaid_taken_ = taken_;
  unsaid_landed_ = landed_;
  unsaid_handed_ = handed_;
}

}  // namespace penstock::protocol
