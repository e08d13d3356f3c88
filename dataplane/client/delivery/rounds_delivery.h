// SPDX-License-Identifier: Apache-2.0
// A coordinated read: each consumer gets its element of a round once all consumers have received
// theirs (control/protocol/rounds.h). Reason to change: the rules of rounds, or the reports about
// them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/protocol/queues/round_queue.h"
#include "dataplane/client/delivery/delivery.h"
#include "dataplane/client/session_state/step_marks.h"

namespace penstock::client {

class RoundsDelivery final : public Delivery {
 public:
  explicit RoundsDelivery(const Parts& parts);

  protocol::ReceiveResult OnElement(ReceivedElement& received) override {
    return RecordReceived(received,
                          received.identity.index / *parts_.options.delivery.num_consumers);
  }
  void Keep(ReceivedElement&& received) override;
  size_t held() const override { return received_.size(); }
  bool ready() const override { return rounds_.Next() != nullptr; }
  bool ReturnsNext() const override { return ready() && !rounds_.Next()->unfilled; }
  bool HasSome() const override { return rounds_.delivered() < (end() ? end()->rounds : 0); }
  // An element of a round always counts as delivered immediately, because all consumers get their
  // elements of the round.
  Taken Take(bool pending) override;
  bool MustReportTaken(const StepTimes& times) const override { return MustReport(times); }
  std::string NextName() const override;
  void OnConnected() override { errors_reported_ = 0; }
  absl::Status OnAgreed(const control::Agreed& agreed) override;
  bool reports_rounds() const override { return true; }
  bool MustReport(const StepTimes& times) const override;
  absl::Time reported_at() const override { return reported_at_; }
  std::optional<protocol::RoundsReport> TakeRounds() override;
  std::vector<control::StepMark> Marks() const override { return marks_.Marks(); }

 private:
  absl::Status ErrorOf(const protocol::Agreed::Round& round, int64_t number) const;
  int64_t ReceiveBudget() const;  // number of elements that may be received but undelivered

  protocol::RoundQueue rounds_;
  std::map<std::pair<PartitionId, int64_t>, ReceivedElement> received_;  // by row
  std::vector<protocol::RoundError> errors_;  // the latest that were received
  StepMarks marks_;
  // Since the last report:
  int64_t received_unreported_ = 0;
  int64_t delivered_unreported_ = 0;
  absl::Time reported_at_ = absl::InfinitePast();
  size_t errors_reported_ = 0;  // how many of errors_ were reported on the present stream
};

}  // namespace penstock::client
