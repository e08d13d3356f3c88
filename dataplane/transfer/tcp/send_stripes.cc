// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/send_stripes.h"

#include <algorithm>
#include <utility>

#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/wire.h"
#include "include/status_macros.h"

namespace penstock::transfer::tcp {
namespace {

// Putting smaller elements back into order would cost more than sending them over one connection.
constexpr size_t kStripedFrom = 256 << 10;  // bytes

}  // namespace

absl::Status SendStripes::Add(uint32_t number, const std::shared_ptr<SendStripe>& connection) {
  const auto same = [&](const Stripe& stripe) { return stripe.number == number; };
  if (std::any_of(stripes_.begin(), stripes_.end(), same)) {
    return absl::AlreadyExistsError("the link already has this connection");
  }
  RETURN_IF_ERROR(connection->Start());
  stripes_.push_back({number, connection});
  return absl::OkStatus();
}

bool SendStripes::Takes(const QueuedMessage& message) const {
  return !stripes_.empty() && message.type == MessageType::kElement &&
         message.bytes.size() >= kStripedFrom;
}

QueuedMessage SendStripes::Route(QueuedMessage element) {
  const size_t turn = next_++ % (stripes_.size() + 1);
  if (turn == 0) return element;
  const Stripe& stripe = stripes_[turn - 1];
  const size_t bytes = element.bytes.size();
  stripe.connection->Send(std::move(element));
  QueuedMessage in_its_place;
  in_its_place.type = MessageType::kStriped;
  in_its_place.text = WithPrefix(Encode(Striped{stripe.number}));
  in_its_place.elsewhere = bytes;
  return in_its_place;
}

void SendStripes::Close() {
  for (const Stripe& stripe : std::exchange(stripes_, {})) stripe.connection->Close();
}

}  // namespace penstock::transfer::tcp
