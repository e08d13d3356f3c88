// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/buffer_charge.h"

#include "absl/strings/str_cat.h"
#include "dataplane/memory/catch_exhausted.h"

namespace penstock {
namespace {

int64_t SlotBytes(const Element& element) {
  return static_cast<int64_t>(element.loan().bytes().size());
}

bool HasRoomForOptional(const BufferAccount* account, int64_t bytes) {
  return account == nullptr || account->budget().HasRoomForOptional(bytes);
}

absl::Status NoRoom(const BuildSite& site, int64_t bytes) {
  const BufferAccount& account = *site.run().buffers;
  const BufferBudget& full = account.budget().Refusing(account.used(), bytes);
  const bool of_job = account.budget().IsPart() && &full == &account.budget();
  return OfReading(absl::ResourceExhaustedError(absl::StrCat(
      site.name(), ": no room for ", bytes, " more bytes in buffers. The transforms of this ",
      of_job ? "job on this worker" : "worker", " have ", full.taken(), " of ", full.bytes(),
      " bytes, ", account.used(),
      " of them in this partition. Use smaller buffers, or raise the worker's ", full.setting())));
}

}  // namespace

absl::Status BufferCharge::Add(const BuildSite& site, const Element& element) {
  if (Charge(site.run().buffers, element, element.IsShared())) return absl::OkStatus();
  return NoRoom(site, SlotBytes(element) + kOverhead);
}

absl::Status BufferCharge::Add(const BuildSite& site, int64_t bytes) {
  if (Charge(site.run().buffers, bytes + kOverhead)) return absl::OkStatus();
  return NoRoom(site, bytes + kOverhead);
}

absl::Status BufferCharge::Add(const BuildSite& site, const absl::Status& error) {
  return Add(site, static_cast<int64_t>(error.message().size()));
}

bool BufferCharge::TryAdd(const BuildSite& site, const Element& element, bool shared) {
  BufferAccount* account = site.run().buffers;
  return HasRoomForOptional(account, SlotBytes(element) + kOverhead) &&
         Charge(account, element, shared || element.IsShared());
}

bool BufferCharge::TryAdd(const BuildSite& site, const absl::Status& error) {
  BufferAccount* account = site.run().buffers;
  const int64_t bytes = static_cast<int64_t>(error.message().size()) + kOverhead;
  return HasRoomForOptional(account, bytes) && Charge(account, bytes);
}

bool BufferCharge::Charge(BufferAccount* account, int64_t bytes) {
  if (account == nullptr) return true;
  if (!account->Add(bytes)) return false;
  account_ = account;
  bytes_ = bytes;
  slot_ = nullptr;
  return true;
}

bool BufferCharge::Charge(BufferAccount* account, const Element& element, bool shared) {
  if (!shared || account == nullptr) return Charge(account, SlotBytes(element) + kOverhead);
  const void* slot = element.loan().bytes().data();
  if (!account->AddSlot(slot, SlotBytes(element), kOverhead)) return false;
  account_ = account;
  bytes_ = kOverhead;
  slot_ = slot;
  return true;
}

void BufferCharge::Return() {
  if (account_ == nullptr) return;
  if (slot_ == nullptr) {
    account_->Subtract(bytes_);
  } else {
    account_->SubtractSlot(slot_, bytes_);
  }
  account_ = nullptr;
}

}  // namespace penstock
