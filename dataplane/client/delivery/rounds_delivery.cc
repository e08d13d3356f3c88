// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/rounds_delivery.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"

namespace penstock::client {
namespace {

// The number of errors that are kept so that they can be reported again to a restarted dispatcher.
// Only errors of rounds that another consumer may not know of must be kept. The number of these
// rounds is below the number of rounds that may be received ahead, which kMaxReceiveBudget limits.
constexpr size_t kErrorsKept = 256;
// The maximum number of elements received ahead of the trainer. A higher maximum would not make
// reading faster, even with small elements.
constexpr int64_t kMaxReceiveBudget = 256;

int64_t RoundsIn(const std::optional<IndicesByPartition>& state) {
  int64_t rounds = 0;
  if (state.has_value()) {
    for (const auto& [partition, delivered] : *state) rounds += delivered.size();
  }
  return rounds;
}

}  // namespace

RoundsDelivery::RoundsDelivery(const Parts& parts)
    : Delivery(parts), rounds_(RoundsIn(parts.options.state)) {}

void RoundsDelivery::Keep(ReceivedElement&& received) {
  // A kept element uses no credit: it may wait for elements of other workers, which need credits.
  const auto bytes = static_cast<int64_t>(received.bytes);
  parts_.credits.OnReceived(received.from, bytes);
  parts_.credits.OnReleased(received.from, bytes);
  const protocol::PartitionRow row{received.identity.partition, received.position};
  if (!received.error.ok()) {
    if (errors_.size() == kErrorsKept) {
      errors_.erase(errors_.begin());
      if (errors_reported_ > 0) --errors_reported_;
    }
    errors_.push_back({.at = row,
                       .message = std::string(received.error.message()),
                       .code = received.error.raw_code()});
  }
  ++received_unreported_;
  received_.insert_or_assign({row.partition, row.row}, std::move(received));
}

absl::Status RoundsDelivery::OnAgreed(const control::Agreed& agreed) {
  if (rounds_.OnAgreed(agreed.first, agreed.rounds)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("round ", agreed.first, " was agreed on, but ", rounds_.known(), " is next"));
}

std::string RoundsDelivery::NextName() const {
  return absl::StrCat("round ", rounds_.known());
}

Delivery::Taken RoundsDelivery::Take(bool) {
  const protocol::Agreed::Round round = *rounds_.Next();
  const int64_t number = rounds_.delivered();
  rounds_.Pop();
  Taken taken{.step = number};
  if (round.row.has_value()) {
    const auto found = received_.find({round.row->partition, round.row->row});
    if (found == received_.end()) {
      taken.error = absl::InternalError(
          absl::StrCat("round ", number, " was agreed on, but row ", round.row->row, " of ",
                       ToString(round.row->partition), " was not received"));
      taken.ends = true;
      return taken;
    }
    taken.received = std::move(found->second);
    received_.erase(found);
    marks_.Note(number, *round.row);
    RecordTaken(taken, /*pending=*/false);
  }
  ++delivered_unreported_;
  taken.error = ErrorOf(round, number);
  if (taken.error.ok()) taken.error = taken.received.error;
  taken.ends = !taken.error.ok() && parts_.options.delivery.on_error == RoundErrorPolicy::kStop;
  taken.skipped = round.unfilled;
  return taken;
}

absl::Status RoundsDelivery::ErrorOf(const protocol::Agreed::Round& round, int64_t number) const {
  if (round.error.has_value()) {
    return absl::Status(
        static_cast<absl::StatusCode>(round.error->code),
        absl::StrCat("round ", number, ", of consumer ", round.consumer, ", ",
                     ToString(round.error->at.partition), ": ", round.error->message));
  }
  if (round.unfilled && parts_.options.delivery.remainder_policy == RemainderPolicy::kError) {
    return absl::OutOfRangeError(absl::StrCat("the data ends with elements that do not fill round ",
                                              number, " of ",
                                              *parts_.options.delivery.num_consumers,
                                              " consumers; with remainder_policy = kPad it is "
                                              "filled with copies, with kDrop they are dropped"));
  }
  return absl::OkStatus();
}

std::optional<protocol::RoundsReport> RoundsDelivery::TakeRounds() {
  protocol::RoundsReport report{
      .delivered = rounds_.delivered(),
      .known = rounds_.known(),
      .receive_budget = ReceiveBudget(),
      .errors = {errors_.begin() + static_cast<ptrdiff_t>(errors_reported_), errors_.end()}};
  errors_reported_ = errors_.size();
  received_unreported_ = delivered_unreported_ = 0;
  reported_at_ = BootTime();
  return report;
}

int64_t RoundsDelivery::ReceiveBudget() const {
  const int64_t most = parts_.credits.KnowsSizes() ? kMaxReceiveBudget : protocol::kRowsAhead;
  const DistributeOptions& options = parts_.options.distribute;
  const int64_t by_options =
      parts_.credits.LimitOf(options.max_outstanding_requests, options.max_outstanding_bytes);
  // The limit of the credits contains the job's max_bytes_in_flight.
  return std::min({most, by_options, parts_.credits.limit()});
}

bool RoundsDelivery::MustReport(const StepTimes& times) const {
  if (errors_reported_ < errors_.size()) return true;
  // If other consumers have smaller budgets, or partitions are late, the dispatcher may need to
  // know of deliveries here before it lets a worker send more.
  if (delivered_unreported_ > 0 && times.Waiting() >= kLongestUnreported) return true;
  const int64_t receive_budget = ReceiveBudget();
  const int64_t ahead = rounds_.known() - rounds_.delivered();
  if (received_unreported_ > 0 &&
      (ahead < 2 || (ahead < receive_budget / 4 && received_unreported_ >= receive_budget / 4))) {
    return true;
  }
  return delivered_unreported_ >= std::max<int64_t>(1, receive_budget / 2);
}

}  // namespace penstock::client
