// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/receive_stripes.h"

#include "include/status_macros.h"

namespace penstock::transfer::tcp {

// If a connection fails, the worker never learns of that connection and sends nothing over it.
absl::Status ReceiveStripes::Open(const StripeKey& key, const Endpoint& worker,
                                  const ReceiveStripe::Link& link) {
  if (!wanted() || !stripes_.empty()) {
    return absl::DataLossError("the worker offered additional connections that were not requested");
  }
  for (uint32_t number = 0; number < loops_.size(); ++number) {
    stripes_.push_back(std::make_shared<ReceiveStripe>(loops_[number], Join{key, number}, link));
    stripes_.back()->Start(worker);
  }
  return absl::OkStatus();
}

absl::Status ReceiveStripes::Await(const Striped& striped) {
  if (striped.stripe >= stripes_.size()) {
    return absl::DataLossError(
        "the worker announced an element on a connection that does not exist");
  }
  awaited_ = stripes_[striped.stripe].get();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ReceiveStripe::Came>> ReceiveStripes::Take() {
  ASSIGN_OR_RETURN(std::optional<ReceiveStripe::Came> came, awaited_->Take());
  if (came.has_value()) awaited_ = nullptr;
  return came;
}

void ReceiveStripes::Close() {
  for (const auto& stripe : stripes_) stripe->Close();
}

void ReceiveStripes::HangUp() {
  for (const auto& stripe : stripes_) stripe->HangUp();
}

}  // namespace penstock::transfer::tcp
