// SPDX-License-Identifier: Apache-2.0
// The session as one of several consumers of a coordinated read (control/protocol/rounds.h), and
// the parts that order kDeterministic shares.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "control/sync/boot_time.h"
#include "dataplane/client/counters.h"
#include "dataplane/client/lost_consumers.h"
#include "dataplane/client/session.h"
#include "dataplane/memory/pool.h"
#include "penstock/status.h"

namespace penstock::client {
namespace {

// How many errors are kept to be reported again to a restarted dispatcher. They belong to rounds
// that another consumer may not know of, which are fewer than may be ahead.
constexpr size_t kErrorsKept = 256;
// The most elements ahead of the trainer. More gain nothing, however small they are.
constexpr int64_t kMaxReceiveBudget = 256;

}  // namespace

Index Session::PositionOf(const Identity& identity) const {
  if (ordered()) return merge_.ordered().queue().positions().RowOf(identity.index);
  return coordinated() ? identity.index / *options_.distribute.num_consumers : identity.index;
}

Identity Session::ToThisMember(Identity identity) const {
  if (const auto& group = options_.distribute.consumer_group) {
    identity.index += group->member - identity.index % group->size;
  }
  return identity;
}

bool Session::HasSome() const {
  return !merge_.empty() || (coordinated() && rounds_.delivered() < rounds_in_all_);
}

bool Session::IsOver() const {
  return end_ && merge_.empty() && (!coordinated() || rounds_.delivered() >= rounds_in_all_);
}

void Session::KeepForRound(ReceivedElement received) {
  const protocol::PartitionRow row{received.identity.partition, PositionOf(received.identity)};
  if (!received.error.ok()) {
    if (round_errors_.size() == kErrorsKept) {
      round_errors_.erase(round_errors_.begin());
      if (round_errors_said_ > 0) --round_errors_said_;
    }
    round_errors_.push_back({.at = row,
                             .message = std::string(received.error.message()),
                             .code = received.error.raw_code()});
  }
  ++received_unsaid_;
  for_rounds_.insert_or_assign({row.partition, row.row}, std::move(received));
}

void Session::Handle(const control::Agreed& agreed) {
  if (!rounds_.OnAgreed(agreed.first, agreed.rounds)) {
    return Fail(absl::InternalError(absl::StrCat("round ", agreed.first, " was agreed on where ",
                                                 rounds_.known(), " is next")));
  }
  if (rounds_.Next() != nullptr) times_.OnReceived();  // received at all consumers
  waits_for_ = agreed.waits_for;
  NoteBlocked();
  if (coordinated() && !waits_for_.empty())
    ReportReceived();  // the dispatcher may wait for this consumer's budget
}

void Session::NoteBlocked() {
  if (waits_for_.empty() && lost_.empty()) {
    waits_since_ = absl::InfiniteFuture();
    blocked_ = absl::OkStatus();
  } else {
    waits_since_ = std::min(waits_since_, BootTime());
  }
}

std::string Session::BlockingReason() const {
  std::vector<std::string> parts;
  for (const auto& [consumer, lost] : lost_) {
    parts.push_back(
        absl::StrCat("consumer ", consumer,
                     lost.state == LostConsumer::State::kDead ? " is dead: not heard since "
                                                              : " is not heard since ",
                     absl::FormatTime("%Y-%m-%d %H:%M:%S", lost.heard, absl::LocalTimeZone()), " (",
                     lost.why, ")"));
  }
  if (!waits_for_.empty()) parts.push_back(waits_for_);
  return absl::StrJoin(parts, "; ");
}

void Session::DoubtEnded() {
  for (auto& [consumer, its] : lost_) {
    if (its.state != LostConsumer::State::kEnded) continue;
    its.state = LostConsumer::State::kSilent;
    NotifyLostConsumer(its);
  }
}

void Session::Handle(const control::ConsumersLost& lost) {
  using State = LostConsumer::State;
  const absl::Time now = absl::Now();  // for people
  std::map<int64_t, LostConsumer> before;
  before.swap(lost_);
  // Consumers that were lost before this session began may be on their way back, as this one was.
  const bool news = std::exchange(heard_of_lost_, true);
  const auto says = [&](const char* event, const LostConsumer& its) {
    options_.events->Write(
        {event,
         {{"job", its.job},
          {"consumer", absl::StrCat(its.consumer)},
          {"heard", absl::FormatTime("%Y-%m-%d %H:%M:%S", its.heard, absl::LocalTimeZone())},
          {"why", its.why}}});
    if (news) NotifyLostConsumer(its);
  };
  bool died = false;
  for (const control::ConsumersLost::Consumer& its : lost.consumers) {
    if (its.consumer == options_.distribute.consumer_index) continue;  // this consumer is here
    const LostConsumer& to = lost_[its.consumer] = {.job = options_.job.name,
                                                    .consumer = its.consumer,
                                                    .state = its.dead    ? State::kDead
                                                             : its.ended ? State::kEnded
                                                                         : State::kSilent,
                                                    .heard = now - its.silent,
                                                    .why = its.why};
    const auto was = before.find(its.consumer);
    if (was != before.end() && was->second.state == to.state) continue;
    says(its.dead ? "consumer_dead" : "consumer_suspected", to);
    died |= its.dead && was != before.end();
  }
  const auto is_dead = [](const auto& lost_one) { return lost_one.second.state == State::kDead; };
  for (const auto& [consumer, its] : before) {
    if (lost_.contains(consumer)) continue;
    LostConsumer back = its;
    back.state = State::kBack;
    says("consumer_back", back);
  }
  // The error is left if nobody called Next() while a consumer was dead.
  if (std::any_of(before.begin(), before.end(), is_dead) &&
      std::none_of(lost_.begin(), lost_.end(), is_dead)) {
    blocked_ = absl::OkStatus();
  }
  NoteLostConsumers(options_.job.name, static_cast<int64_t>(lost_.size()));
  NoteBlocked();
  if (!died) return;
  waits_since_ = BootTime();  // the next call waits for it again
  blocked_ = absl::UnavailableError(
      absl::StrCat("round ", rounds_.known(), " cannot be given out: ", BlockingReason(),
                   "; start it again from its state of this step, or all consumers from states of "
                   "one step"));
  WakeAgent();
}

absl::StatusOr<std::optional<Element>> Session::DeliverRound() {
  const protocol::Agreed::Round round = *rounds_.Next();
  const int64_t number = rounds_.delivered();
  rounds_.Pop();
  ReceivedElement received;
  if (round.row.has_value()) {
    auto found = for_rounds_.find({round.row->partition, round.row->row});
    if (found == for_rounds_.end()) {
      Fail(absl::InternalError(absl::StrCat("round ", number, " was agreed on, and row ",
                                            round.row->row, " of ", ToString(round.row->partition),
                                            " was not received")));
      return error_;
    }
    received = std::move(found->second);
    for_rounds_.erase(found);
    marks_.Note(number, {received.identity.partition, PositionOf(received.identity)});
    ReceiverOf(round.row->partition).OnDelivered(round.row->row);
    credits_.OnReleased(received.from, static_cast<int64_t>(received.bytes));
    if (times_.waiting()) times_.Goes(AddressOf(received.from), ProtocolOf(received.from));
    times_.Returns();
  }
  news_ = true;
  ++delivered_unreported_;
  if (MustSay()) WakeAgent();
  const ToGrants grants = TakeGrants();
  absl::Status error = ErrorOf(round, number);
  if (error.ok()) error = received.error;
  if (!error.ok() && options_.distribute.on_error == RoundErrors::kStop) error_ = error;
  mu_.unlock();
  Apply(grants);
  std::optional<absl::StatusOr<Element>> element;
  if (error.ok() && !round.unfilled) element = AtStep(number, std::move(received));
  mu_.lock();
  if (!error.ok()) return error;
  if (!element) return std::nullopt;
  if (!element->ok()) return element->status();
  return std::optional<Element>(**std::move(element));
}

absl::StatusOr<Element> Session::AtStep(int64_t step, ReceivedElement received) const {
  PENSTOCK_ASSIGN_OR_RETURN(Element element,
                            CopyOutOfFrame(DefaultPool(), std::move(received.element)));
  if (element.IsShared()) {  // the trainer may write into its element
    PENSTOCK_ASSIGN_OR_RETURN(element, element.Copy());
  }
  Identity identity = received.identity;
  identity.round = step;
  identity.consumer = static_cast<int32_t>(*options_.distribute.consumer_index);
  element.set_identity(identity);
  return element;
}

absl::Status Session::ErrorOf(const protocol::Agreed::Round& round, int64_t number) const {
  if (round.error.has_value()) {
    return absl::Status(
        static_cast<absl::StatusCode>(round.error->code),
        absl::StrCat("round ", number, ", of consumer ", round.consumer, ", ",
                     ToString(round.error->at.partition), ": ", round.error->message));
  }
  if (round.unfilled && options_.distribute.rests == Rests::kError) {
    return absl::OutOfRangeError(absl::StrCat(
        "the data ends with elements that do not fill round ", number, " of ",
        *options_.distribute.num_consumers,
        " consumers; with rests = kPad it is filled with copies, with kDrop they are dropped"));
  }
  return absl::OkStatus();
}

protocol::RoundsReport Session::SayRounds() {
  protocol::RoundsReport said{
      .delivered = rounds_.delivered(),
      .known = rounds_.known(),
      .receive_budget = ReceiveBudget(),
      .errors = {round_errors_.begin() + static_cast<ptrdiff_t>(round_errors_said_),
                 round_errors_.end()}};
  round_errors_said_ = round_errors_.size();
  received_unsaid_ = delivered_unreported_ = 0;
  said_ = BootTime();
  return said;
}

int64_t Session::ReceiveBudget() const {
  const int64_t most = credits_.KnowsSizes() ? kMaxReceiveBudget : protocol::kRowsAhead;
  return std::min(most, credits_.LimitOf(options_.distribute.max_outstanding_requests,
                                         options_.distribute.max_outstanding_bytes));
}

bool Session::MustSay() const {
  if (round_errors_said_ < round_errors_.size()) return true;
  // Other consumers may have smaller budgets, or partitions may be late. Then the dispatcher may
  // need to know what was delivered here before it lets a worker send more.
  if (delivered_unreported_ > 0 && times_.Waiting() >= kLongestUnsaid) return true;
  const int64_t receive_budget = ReceiveBudget();
  const int64_t ahead = rounds_.known() - rounds_.delivered();
  if (received_unsaid_ > 0 &&
      (ahead < 2 || (ahead < receive_budget / 4 && received_unsaid_ >= receive_budget / 4))) {
    return true;
  }
  return delivered_unreported_ >= std::max<int64_t>(1, receive_budget / 2);
}

// Reports what was received. The deliveries are for the journal and wait for a heartbeat.
void Session::ReportReceived() {
  control::Report report;
  for (auto& [partition, receiver] : receivers_) {
    if (std::optional<protocol::Report> news = receiver.ReceivedNews()) {
      report.partitions.push_back(ToMessage(*std::move(news)));
    }
  }
  report.rounds = SayRounds();
  news_ = false;
  stream_->Send(std::move(report));
}

void Session::CheckConsumers(absl::Time now, absl::Time& wake) {
  if (waits_since_ == absl::InfiniteFuture()) return;
  const absl::Time waits_since = std::max(waits_since_, now - absl::FromChrono(times_.Waiting()));
  const absl::Time limit = waits_since + options_.distribute.timeout;
  if (now < limit) {
    wake = std::min(wake, limit);
    return;
  }
  waits_since_ = now;  // the next call waits as long again
  const std::string what =
      coordinated() ? absl::StrCat("round ", rounds_.known()) : "the next element of the order";
  blocked_ = absl::UnavailableError(absl::StrCat(what, " could not be given out for ",
                                                 absl::FormatDuration(options_.distribute.timeout),
                                                 ": ", BlockingReason()));
  WakeWaiting();
}

}  // namespace penstock::client
