// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/partition_sender.h"

#include <algorithm>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/element/pad.h"
#include "penstock/status.h"

namespace penstock::worker {
namespace {

protocol::Sender SenderOf(const control::PlacedPartition& of, IndexSet skip, Index first,
                          const std::vector<control::Reader>& readers) {
  protocol::Assign assign;
  assign.partition = of.partition;
  assign.placement = of.placement;
  assign.skip = std::move(skip);
  if (first > 0) assign.bookmark = protocol::Bookmark{first, ""};
  for (const control::Reader& reader : readers)
    assign.readers.push_back({reader.client, reader.incarnation});
  return protocol::Sender(assign);
}

}  // namespace

Outlet::PartitionSender::PartitionSender(std::shared_ptr<Outlet> outlet,
                                         const PartitionExitOptions& options)
    : outlet_(std::move(outlet)),
      of_(options.of),
      permit_(options.permit),
      consumers_(options.consumers),
      group_size_(options.group_size),
      ordered_(options.ordered),
      dealt_(options.dealt),
      skip_(options.skip),
      sender_(SenderOf(options.of, options.skip, options.first, options.readers)),
      readers_(options.readers),
      turns_(options.turns),
      rest_(options.rest) {}

bool Outlet::PartitionSender::Serves(const control::Reader& reader) const {
  return std::find(readers_.begin(), readers_.end(), reader) != readers_.end();
}

absl::Status Outlet::PartitionSender::Send(transfer::Sent sent) {
  if (consumers_ == 0) return outlet_->Send(*this, std::move(sent));
  const Index index = sent.identity.index;
  held_.push_back(std::move(sent));
  return SendTurns(index + 1);
}

transfer::Sent Outlet::PartitionSender::TakeAgainLocked() {
  return std::move(again_.extract(again_.begin()).mapped());
}

absl::Status Outlet::PartitionSender::Pass(Index index) {
  if (consumers_ > 0) {
    passed_ = index + 1;
    return SendTurns(passed_);
  }
  MutexLock lock(outlet_->mu_);
  sender_.OnPassed(index);
  return absl::OkStatus();
}

absl::Status Outlet::PartitionSender::End(Index elements) {
  elements_ = elements;
  if (consumers_ > 0) {
    PENSTOCK_ASSIGN_OR_RETURN(elements_, SendRest(elements));
  }
  {
    MutexLock lock(outlet_->mu_);
    sender_.OnEnd(elements_);
  }
  return outlet_->SendAgain(*this, /*until_ended=*/true);
}

// --- Coordinated reads -----------------------------------------------------------

bool Outlet::PartitionSender::IsFor(Index index, const control::Reader& reader) const {
  if (consumers_ == 0 && !dealt_) return true;
  const auto found = std::find(readers_.begin(), readers_.end(), reader);
  if (dealt_) return found->consumer == dealt_->ConsumerOf(of_.partition, index);
  return found->consumer ==
         protocol::ConsumerOf(index, consumers_, end_, rest_.value_or(protocol::RestOf()));
}

bool Outlet::PartitionSender::MaySendLocked(Index index) const {
  if (consumers_ > 0) return index / consumers_ < turns_;
  return !ordered_ || index < turns_;
}

absl::Status Outlet::PartitionSender::SendTurns(Index produced) {
  const Index whole = produced / consumers_ * consumers_;
  while (!held_.empty() && held_.front().identity.index < whole) {
    transfer::Sent next = std::move(held_.front());
    held_.pop_front();
    if (skip_.Contains(next.identity.index)) {  // made for its copies alone
      MutexLock lock(outlet_->mu_);
      sender_.OnPassed(next.identity.index);
      continue;
    }
    PENSTOCK_RETURN_IF_ERROR(outlet_->Send(*this, std::move(next)));
  }
  if (held_.empty() && passed_ > 0) {
    MutexLock lock(outlet_->mu_);
    sender_.OnPassed(passed_ - 1);
    passed_ = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<Index> Outlet::PartitionSender::SendRest(Index elements) {
  if (elements % consumers_ == 0) return elements;
  PENSTOCK_ASSIGN_OR_RETURN(const protocol::RestOf rest, outlet_->AwaitRest(*this, elements));
  transfer::Sent last;
  if (rest.pads > 0 && !held_.empty()) {
    last.error = held_.back().error;
    last.identity = held_.back().identity;
    if (last.error.ok()) {
      PENSTOCK_ASSIGN_OR_RETURN(last.element, held_.back().element.Copy());
    }
  }
  PENSTOCK_RETURN_IF_ERROR(SendTurns(elements + consumers_));
  PENSTOCK_RETURN_IF_ERROR(SendPads(elements, rest.pads, last));
  return elements + rest.pads;
}

absl::Status Outlet::PartitionSender::SendPads(Index elements, int64_t pads,
                                               const transfer::Sent& last) {
  for (Index index = elements; index < elements + pads; ++index) {
    if (skip_.Contains(index)) {
      MutexLock lock(outlet_->mu_);
      sender_.OnPassed(index);
      continue;
    }
    transfer::Sent pad;
    pad.error = last.error;
    pad.identity = last.identity;
    pad.identity.index = index;
    if (pad.error.ok()) {
      PENSTOCK_ASSIGN_OR_RETURN(pad.element, last.element.Copy());
      pad.element.set_identity(pad.identity);
      MarkAsPad(pad.element);
    }
    PENSTOCK_RETURN_IF_ERROR(outlet_->Send(*this, std::move(pad)));
  }
  return absl::OkStatus();
}

void Outlet::PartitionSender::Allow(int64_t turns, const std::optional<protocol::RestOf>& rest) {
  {
    MutexLock lock(outlet_->mu_);
    turns_ = std::max(turns_, turns);
    if (rest) rest_ = rest;
  }
  outlet_->changed_.NotifyAll();
}

void Outlet::PartitionSender::Linger() {
  outlet_->SendAgain(*this, /*until_ended=*/false).IgnoreError();
}

std::shared_ptr<Pool> Outlet::PartitionSender::SlotsFor(Index index) {
  return outlet_->SlotsFor(*this, index);
}

void Outlet::PartitionSender::AddReader(const control::Reader& reader) {
  {
    MutexLock lock(outlet_->mu_);
    if (Serves(reader)) return;
    readers_.push_back(reader);
    sender_.OnAddReader({reader.client, reader.incarnation});
    outlet_->LinkUpLocked(*this, reader);
  }
  outlet_->changed_.NotifyAll();
}

void Outlet::PartitionSender::Cancel() {
  {
    MutexLock lock(outlet_->mu_);
    cancelled_ = true;
  }
  outlet_->changed_.NotifyAll();
}

}  // namespace penstock::worker
