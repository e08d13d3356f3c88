// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/partition_sender.h"

#include <algorithm>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/element/pad.h"
#include "include/status_macros.h"

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

IterationSender::PartitionSender::PartitionSender(std::shared_ptr<IterationSender> parent,
                                                  const PartitionSinkOptions& options)
    : parent_(std::move(parent)),
      of_(options.of),
      permit_(options.permit),
      consumers_(options.consumers),
      group_size_(options.group_size),
      ordered_(options.ordered),
      positions_(options.positions),
      skip_(options.skip),
      sender_(SenderOf(options.of, options.skip, options.first, options.readers)),
      readers_(options.readers),
      rows_(options.rows),
      remainder_(options.remainder) {}

bool IterationSender::PartitionSender::Serves(const control::Reader& reader) const {
  return std::find(readers_.begin(), readers_.end(), reader) != readers_.end();
}

absl::Status IterationSender::PartitionSender::Send(transfer::Sent sent) {
  if (consumers_ == 0) return parent_->Send(*this, std::move(sent));
  const Index index = sent.identity.index;
  held_.push_back(std::move(sent));
  return SendRows(index + 1);
}

transfer::Sent IterationSender::PartitionSender::TakeAgainLocked() {
  return std::move(again_.extract(again_.begin()).mapped());
}

absl::Status IterationSender::PartitionSender::Pass(Index index) {
  if (consumers_ > 0) {
    passed_ = index + 1;
    return SendRows(passed_);
  }
  MutexLock lock(parent_->mu_);
  sender_.OnPassed(index);
  return absl::OkStatus();
}

absl::Status IterationSender::PartitionSender::End(Index elements) {
  elements_ = elements;
  if (consumers_ > 0) {
    ASSIGN_OR_RETURN(elements_, SendRemainder(elements));
  }
  {
    MutexLock lock(parent_->mu_);
    sender_.OnEnd(elements_);
  }
  return parent_->SendAgain(*this, /*until_ended=*/true);
}

// --- Coordinated reads -----------------------------------------------------------

bool IterationSender::PartitionSender::IsFor(Index index, const control::Reader& reader) const {
  if (consumers_ == 0 && !positions_) return true;
  const auto found = std::find(readers_.begin(), readers_.end(), reader);
  if (positions_) return found->consumer == positions_->ConsumerOf(of_.partition, index);
  return found->consumer ==
         protocol::ConsumerOf(index, consumers_, end_, remainder_.value_or(protocol::Remainder()));
}

bool IterationSender::PartitionSender::MaySendLocked(Index index) const {
  if (consumers_ > 0) return index / consumers_ < rows_;
  return !ordered_ || index < rows_;
}

absl::Status IterationSender::PartitionSender::SendRows(Index produced) {
  const Index whole = produced / consumers_ * consumers_;
  while (!held_.empty() && held_.front().identity.index < whole) {
    transfer::Sent next = std::move(held_.front());
    held_.pop_front();
    if (skip_.Contains(next.identity.index)) {  // this element was made only for its copies
      MutexLock lock(parent_->mu_);
      sender_.OnPassed(next.identity.index);
      continue;
    }
    RETURN_IF_ERROR(parent_->Send(*this, std::move(next)));
  }
  if (held_.empty() && passed_ > 0) {
    MutexLock lock(parent_->mu_);
    sender_.OnPassed(passed_ - 1);
    passed_ = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<Index> IterationSender::PartitionSender::SendRemainder(Index elements) {
  if (elements % consumers_ == 0) return elements;
  ASSIGN_OR_RETURN(const protocol::Remainder remainder, parent_->AwaitRemainder(*this, elements));
  transfer::Sent last;
  if (remainder.pads > 0 && !held_.empty()) {
    last.error = held_.back().error;
    last.identity = held_.back().identity;
    if (last.error.ok()) {
      ASSIGN_OR_RETURN(last.element, held_.back().element.Copy());
    }
  }
  RETURN_IF_ERROR(SendRows(elements + consumers_));
  RETURN_IF_ERROR(SendPads(elements, remainder.pads, last));
  return elements + remainder.pads;
}

absl::Status IterationSender::PartitionSender::SendPads(Index elements, int64_t pads,
                                                        const transfer::Sent& last) {
  for (Index index = elements; index < elements + pads; ++index) {
    if (skip_.Contains(index)) {
      MutexLock lock(parent_->mu_);
      sender_.OnPassed(index);
      continue;
    }
    transfer::Sent pad;
    pad.error = last.error;
    pad.identity = last.identity;
    pad.identity.index = index;
    if (pad.error.ok()) {
      ASSIGN_OR_RETURN(pad.element, last.element.Copy());
      pad.element.set_identity(pad.identity);
      MarkAsPad(pad.element);
    }
    RETURN_IF_ERROR(parent_->Send(*this, std::move(pad)));
  }
  return absl::OkStatus();
}

void IterationSender::PartitionSender::Allow(int64_t rows,
                                             const std::optional<protocol::Remainder>& remainder) {
  {
    MutexLock lock(parent_->mu_);
    rows_ = std::max(rows_, rows);
    if (remainder) remainder_ = remainder;
  }
  parent_->changed_.NotifyAll();
}

void IterationSender::PartitionSender::Linger() {
  parent_->SendAgain(*this, /*until_ended=*/false).IgnoreError();
}

std::shared_ptr<Pool> IterationSender::PartitionSender::SlotsFor(Index index) {
  return parent_->SlotsFor(*this, index);
}

void IterationSender::PartitionSender::AddReader(const control::Reader& reader) {
  {
    MutexLock lock(parent_->mu_);
    if (Serves(reader)) return;
    readers_.push_back(reader);
    sender_.OnAddReader({reader.client, reader.incarnation});
    parent_->LinkUpLocked(*this, reader);
  }
  parent_->changed_.NotifyAll();
}

void IterationSender::PartitionSender::Cancel() {
  {
    MutexLock lock(parent_->mu_);
    cancelled_ = true;
  }
  parent_->changed_.NotifyAll();
}

}  // namespace penstock::worker
