// SPDX-License-Identifier: Apache-2.0
// Lanes, and their coming and going at the outlet.
#include "dataplane/worker/lane.h"

#include <algorithm>
#include <utility>

#include "dataplane/worker/outlet.h"
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

Lane::Lane(std::shared_ptr<Outlet> outlet, const LaneOptions& options)
    : outlet_(std::move(outlet)),
      of_(options.of),
      permit_(options.permit),
      sender_(SenderOf(options.of, options.skip, options.first, options.readers)),
      readers_(options.readers) {}

bool Lane::Serves(const control::Reader& reader) const {
  return std::find(readers_.begin(), readers_.end(), reader) != readers_.end();
}

absl::Status Lane::Send(transfer::Sent sent) {
  return outlet_->Send(*this, std::move(sent));
}

transfer::Sent Lane::TakeAgainLocked() {
  return std::move(again_.extract(again_.begin()).mapped());
}

void Lane::Pass(Index index) {
  std::lock_guard lock(outlet_->mu_);
  sender_.OnPassed(index);
}

absl::Status Lane::End(Index elements) {
  {
    std::lock_guard lock(outlet_->mu_);
    sender_.OnEnd(elements);
  }
  return outlet_->SendAgain(*this, /*until_ended=*/true);
}

void Lane::Linger() {
  outlet_->SendAgain(*this, /*until_ended=*/false).IgnoreError();
}

std::shared_ptr<Pool> Lane::NextSlots() {
  return outlet_->NextSlots(*this);
}

void Lane::AddReader(const control::Reader& reader) {
  {
    std::lock_guard lock(outlet_->mu_);
    if (Serves(reader)) return;
    readers_.push_back(reader);
    sender_.OnAddReader({reader.client, reader.incarnation});
    outlet_->LinkUpLocked(*this, reader);
  }
  outlet_->changed_.NotifyAll();
}

void Lane::Cancel() {
  {
    std::lock_guard lock(outlet_->mu_);
    cancelled_ = true;
  }
  outlet_->changed_.NotifyAll();
}

// --- At the outlet ---------------------------------------------------------------

std::shared_ptr<PartitionExit> Outlet::Open(const LaneOptions& options) {
  auto lane = std::make_shared<Lane>(shared_from_this(), options);
  std::lock_guard lock(mu_);
  for (const control::Reader& reader : options.readers) LinkUpLocked(*lane, reader);
  lanes_.push_back(lane);
  return lane;
}

void Outlet::LinkUpLocked(Lane& lane, const control::Reader& reader) {
  auto session = sessions_.find(reader);
  // On an earlier link nothing was sent to it under this placement, so it holds nothing of it.
  if (session != sessions_.end() && session->second.up != nullptr)
    lane.sender_.OnLinkUp(reader.client, reader.incarnation, IndexSet());
}

void Outlet::Close(PartitionExit& exit) {
  std::shared_ptr<Lane> gone;  // may be the last handle
  {
    std::lock_guard lock(mu_);
    auto found = std::find_if(lanes_.begin(), lanes_.end(),
                              [&](const auto& other) { return other.get() == &exit; });
    if (found != lanes_.end()) {
      gone = std::move(*found);
      gone->cancelled_ = true;
      lanes_.erase(found);
    }
  }
  changed_.NotifyAll();
}

}  // namespace penstock::worker
