// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/outgoing.h"

#include <algorithm>
#include <utility>

#include "dataplane/element/block.h"
#include "penstock/check.h"

namespace penstock::transfer {

void Outgoing::Push(Sent&& sent) {
  const size_t bytes = sent.element ? sent.element.block().size() : 0;
  members_.Push({sent.identity, static_cast<int64_t>(bytes)});
  if (sent.element && bytes < kFrameBelow && Pack(sent.element)) {
    sent.element = Element();
    return;
  }
  Seal();
  Kept alone;
  alone.alone = std::move(sent);
  parcels_.Push(std::move(alone));
}

bool Outgoing::Pack(const Element& element) {
  if (frame_.has_value()) {
    Kept& open = parcels_[parcels_.size() - 1];
    if (open.spec == element.spec() && frame_->Append(element.block())) {
      ++open.count;
      return true;
    }
    Seal();
  }
  if (sizeof(FramePrefix) + element.block().size() > frame_bytes_) return false;
  absl::StatusOr<Loan> slot = frames_.Lend(frame_bytes_);
  if (!slot.ok()) return false;
  frame_.emplace(slot->bytes().first(frame_bytes_));
  ++opened_;
  PENSTOCK_CHECK(frame_->Append(element.block()));
  Kept kept;
  kept.frame = *std::move(slot);
  kept.spec = element.spec();
  parcels_.Push(std::move(kept));
  return true;
}

void Outgoing::Seal() {
  if (!frame_.has_value()) return;
  parcels_[parcels_.size() - 1].bytes = frame_->Seal().size();
  frame_.reset();
}

Outgoing::Parcel Outgoing::Take() {
  PENSTOCK_CHECK(ready() > 0);
  Kept& kept = parcels_[written_++];
  if (kept.frame) {
    return {.bytes = kept.frame.bytes().first(kept.bytes),
            .loan = kept.frame.Share(),
            .is_frame = true,
            .count = kept.count};
  }
  if (!kept.alone.error.ok()) return {.error = ErrorMessage{kept.alone.identity, kept.alone.error}};
  return {.bytes = kept.alone.element.block(), .loan = kept.alone.element.loan().Share()};
}

bool Outgoing::OnLanded(int64_t count, std::vector<Acknowledged>& landed) {
  while (count > 0) {
    if (written_ == 0) return false;
    Kept& oldest = parcels_.front();
    const int64_t of_parcel = std::min(count, oldest.count - oldest.landed);
    oldest.landed += of_parcel;
    count -= of_parcel;
    for (int64_t i = 0; i < of_parcel; ++i) landed.push_back(members_.Pop());
    if (oldest.landed < oldest.count) break;
    parcels_.Pop();
    --written_;
  }
  return true;
}

std::vector<Sent> Outgoing::TakeUnconfirmed() {
  Seal();
  std::vector<Sent> sent;
  while (!parcels_.empty()) {
    Kept kept = parcels_.Pop();
    if (kept.frame) {
      Unpack(kept, sent);
    } else {
      members_.Pop();
      sent.push_back(std::move(kept.alone));
    }
  }
  written_ = 0;
  return sent;
}

void Outgoing::Unpack(const Kept& kept, std::vector<Sent>& sent) {
  std::byte* block = kept.frame.bytes().data() + sizeof(FramePrefix);
  for (int64_t i = 0; i < kept.count; ++i) {
    std::byte* const next = block + BlockBytes(block);
    if (i >= kept.landed)
      sent.emplace_back(members_.Pop().identity, Element(kept.frame.Share(), block, kept.spec));
    block = next;
  }
}

}  // namespace penstock::transfer
