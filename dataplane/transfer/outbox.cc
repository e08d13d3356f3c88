// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/outbox.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::transfer {

absl::Status Outbox::Send(Sent&& sent) {
  if (credits_ == 0) return absl::FailedPreconditionError("no credit on this link");
  --credits_;
  sent_.Push(std::move(sent));
  PostParcels();
  return absl::OkStatus();
}

void Outbox::Seal() {
  sent_.Seal();
  PostParcels();
}

void Outbox::PostParcels() {
  for (; posted_ < sent_.ready(); ++posted_) letters_.Push({Letter::kParcel});
}

absl::Status Outbox::Apply(const Update& update, std::vector<Acknowledged>& landed) {
  if (credits_ >
      std::numeric_limits<int64_t>::max() - update.granted - update.granted_after_recall) {
    return absl::InvalidArgumentError("more credits than can be counted");
  }
  if (!sent_.OnLanded(update.landed, landed)) {
    return absl::InvalidArgumentError(absl::StrCat("the client has landed ", update.landed,
                                                   " elements at once, more than were sent"));
  }
  credits_ += update.granted;
  if (update.recall) {
    Seal();  // the answer comes behind what was sent
    letters_.Push({Letter::kRecalled, std::exchange(credits_, 0)});
  }
  credits_ += update.granted_after_recall;
  return absl::OkStatus();
}

Outbox::Next Outbox::Take() {
  const Letter letter = letters_.Pop();
  switch (letter.kind) {
    case Letter::kWelcome:
      return {.text = Encode(transfer::Welcome())};
    case Letter::kRecalled:
      return {.text = Encode(Recalled{letter.count})};
    case Letter::kParcel:
      break;
  }
  --posted_;
  Outgoing::Parcel parcel = sent_.Take();
  if (parcel.error.has_value()) return {.text = Encode(*parcel.error), .count = 1};
  return {.type = parcel.is_frame ? MessageType::kFrame : MessageType::kElement,
          .bytes = parcel.bytes,
          .loan = std::move(parcel.loan),
          .count = parcel.count};
}

void Tell(const Update& update, std::vector<Acknowledged>& landed, SendEvents& events) {
  if (!landed.empty()) events.OnLanded(landed);
  landed.clear();
  const int64_t granted = update.granted + update.granted_after_recall;
  if (granted > 0) events.OnCredits({granted});
}

}  // namespace penstock::transfer
