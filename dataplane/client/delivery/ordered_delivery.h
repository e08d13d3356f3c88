// SPDX-License-Identifier: Apache-2.0
// Reading in order kDeterministic. Reason to change: that order, or the limits on how far a
// partition may send ahead in it.
#pragma once

#include "dataplane/client/delivery/delivery.h"
#include "dataplane/client/delivery/ordered_merge.h"
#include "dataplane/client/delivery/receive_limits.h"

namespace penstock::client {

// Here ReceiveLimits limit how far workers may send; the credit window is too wide to do so.
class OrderedDelivery final : public Delivery {
 public:
  explicit OrderedDelivery(const Parts& parts);

  protocol::ReceiveResult OnElement(ReceivedElement& received) override;
  void Keep(ReceivedElement&& received) override;
  size_t held() const override { return merge_.size(); }
  bool ready() const override { return merge_.ready(); }
  bool HasSome() const override { return merge_.size() > 0; }
  Taken Take(bool pending) override;
  absl::Status OnWelcome(const control::Welcome& welcome) override;
  void OnMembership(const control::Membership& membership) override;
  void OnEnd(const control::End& end) override;
  // With several consumers, End follows once all elements are received (rule 8).
  bool EndMayMissDeliveries() const override {
    return parts_.options.delivery.num_consumers.has_value();
  }

 private:
  void SendReceiveLimit(PartitionId partition);

  OrderedMerge merge_;
  ReceiveLimits limits_;
};

}  // namespace penstock::client
