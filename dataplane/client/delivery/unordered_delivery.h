// SPDX-License-Identifier: Apache-2.0
// Reading without a fixed order: any and fair (merge.h). Reason to change: the way in which readers
// share a job.
#pragma once

#include <vector>

#include "dataplane/client/delivery/delivery.h"
#include "dataplane/client/delivery/merge.h"

namespace penstock::client {

class UnorderedDelivery : public Delivery {
 public:
  void Keep(ReceivedElement&& received) override;
  size_t held() const override { return merge_.size(); }
  bool ready() const override { return !merge_.empty(); }
  bool HasSome() const override { return !merge_.empty(); }
  bool Forget(WorkerId worker) override { return merge_.Forget(worker); }

 protected:
  explicit UnorderedDelivery(const Parts& parts)
      : Delivery(parts), merge_(parts.options.delivery.order) {}
  Taken Pop();  // and counts the element in the credits

  Merge merge_;
};

// Each element goes to one of the job's readers.
class SharedDelivery final : public UnorderedDelivery {
 public:
  explicit SharedDelivery(const Parts& parts) : UnorderedDelivery(parts) {}

  protocol::ReceiveResult OnElement(ReceivedElement& received) override {
    return RecordReceived(received, received.identity.index);
  }
  void Keep(ReceivedElement&& received) override;
  Taken Take(bool pending) override;
  // A shared job closes when every element is delivered, and the last element here may be the job's
  // last.
  bool MustReportTaken(const StepTimes& times) const override {
    return !ready() && Delivery::MustReportTaken(times);
  }
  bool shared() const override { return true; }
  // With an early end, received elements are reported as handed on (rule 31).
  bool EndMayMissDeliveries() const override { return parts_.options.delivery.early_end; }
  std::vector<ReceivedElement> GiveBack(PartitionId partition, bool all) override;
};

// Elements come from windows that trainers share (cross_trainer_cache). Some elements may be
// missing and others repeated. No record of the elements is kept.
class CachedDelivery final : public UnorderedDelivery {
 public:
  explicit CachedDelivery(const Parts& parts) : UnorderedDelivery(parts) {}

  protocol::ReceiveResult OnElement(ReceivedElement&) override {
    return protocol::ReceiveResult::kAccepted;
  }
  Taken Take(bool) override { return Pop(); }
};

}  // namespace penstock::client
