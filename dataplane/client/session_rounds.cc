// SPDX-License-Identifier: Apache-2.0
// The session as one of several consumers: of a coordinated read (control/protocol/rounds.h), and
// what order kDeterministic has of that.
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

// Errors that are said again to a dispatcher that has restarted: those of rounds that
// another consumer may not have been told of, which are fewer than may be ahead.
constexpr size_t kErrorsKept = 256;
// However small elements are, more ahead of the trainer gain nothing.
constexpr int64_t kMostRoom = 256;

}  // namespace

Index Session::PositionOf(const Identity& identity) const {
  if (ordered()) return merge_.ordered().queue().positions().TurnOf(identity.index);
  return coordinated() ? identity.index / *options_.distribute.num_consumers : identity.index;
}

Identity Session::ToThisMember(Identity identity) const {
  if (const auto& group = options_.distribute.consumer_group) {
    identity.index += group->member - identity.index % group->size;
  }
  return identity;
}

bool Session::HasSome() const {
  return !merge_.empty() || (coordinated() && rounds_.taken() < rounds_in_all_);
}

bool Session::IsOver() const {
  return end_ && merge_.empty() && (!coordinated() || rounds_.taken() >= rounds_in_all_);
}

void Session::KeepForRound(Landed landed) {
  const protocol::TurnOf turn{landed.identity.partition, PositionOf(landed.identity)};
  if (!landed.error.ok()) {
    if (round_errors_.size() == kErrorsKept) {
      round_errors_.erase(round_errors_.begin());
      if (round_errors_said_ > 0) --round_errors_said_;
    }
    round_errors_.push_back({.at = turn,
                             .message = std::string(landed.error.message()),
                             .code = landed.error.raw_code()});
  }
  ++landed_unsaid_;
  for_rounds_.insert_or_assign({turn.partition, turn.turn}, std::move(landed));
}

void Session::Handle(const control::Agreed& agreed) {
  if (!rounds_.OnAgreed(agreed.first, agreed.rounds)) {
    return Fail(absl::InternalError(absl::StrCat("round ", agreed.first, " was agreed on where ",
                                                 rounds_.heard(), " is next")));
  }
  if (rounds_.Next() != nullptr) times_.Landed();  // at all consumers
  waits_for_ = agreed.waits_for;
  NoteWhatHinders();
  if (coordinated() && !waits_for_.empty())
    SendLanded();  // it may be this consumer's place that is waited for
}

void Session::NoteWhatHinders() {
  if (waits_for_.empty() && lost_.empty()) {
    waits_since_ = absl::InfiniteFuture();
    hindered_ = absl::OkStatus();
  } else {
    waits_since_ = std::min(waits_since_, BootTime());
  }
}

std::string Session::WhatHinders() const {
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
    TellLostConsumer(its);
  }
}

void Session::Handle(const control::ConsumersLost& lost) {
  using State = LostConsumer::State;
  const absl::Time now = absl::Now();  // for people
  std::map<int64_t, LostConsumer> before;
  before.swap(lost_);
  // Those that were lost before this session began may be on their way back, as this one was.
  const bool news = std::exchange(heard_of_lost_, true);
  const auto says = [&](const char* event, const LostConsumer& its) {
    options_.events->Write(
        {event,
         {{"job", its.job},
          {"consumer", absl::StrCat(its.consumer)},
          {"heard", absl::FormatTime("%Y-%m-%d %H:%M:%S", its.heard, absl::LocalTimeZone())},
          {"why", its.why}}});
    if (news) TellLostConsumer(its);
  };
  bool died = false;
  for (const control::ConsumersLost::Consumer& its : lost.consumers) {
    if (its.consumer == options_.distribute.consumer_index) continue;  // it is here
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
  // Nobody waited while one was dead.
  if (std::any_of(before.begin(), before.end(), is_dead) &&
      std::none_of(lost_.begin(), lost_.end(), is_dead)) {
    hindered_ = absl::OkStatus();
  }
  NoteLostConsumers(options_.job.name, static_cast<int64_t>(lost_.size()));
  NoteWhatHinders();
  if (!died) return;
  waits_since_ = BootTime();  // the next call waits for it again
  hindered_ = absl::UnavailableError(
      absl::StrCat("round ", rounds_.heard(), " cannot be given out: ", WhatHinders(),
                   "; start it again from its state of this step, or all consumers from states of "
                   "one step"));
  WakeAgent();
}

absl::StatusOr<std::optional<Element>> Session::TakeRound() {
  const protocol::Agreed::Round round = *rounds_.Next();
  const int64_t number = rounds_.taken();
  rounds_.Take();
  Landed landed;
  if (round.turn.has_value()) {
    auto found = for_rounds_.find({round.turn->partition, round.turn->turn});
    if (found == for_rounds_.end()) {
      Fail(absl::InternalError(absl::StrCat("round ", number, " was agreed on, and turn ",
                                            round.turn->turn, " of ",
                                            ToString(round.turn->partition), " has not landed")));
      return error_;
    }
    landed = std::move(found->second);
    for_rounds_.erase(found);
    marks_.Note(number, {landed.identity.partition, PositionOf(landed.identity)});
    ReceiverOf(round.turn->partition).OnTaken(round.turn->turn);
    window_.OnTaken(landed.from, static_cast<int64_t>(landed.bytes));
    if (times_.waiting()) times_.Goes(AddressOf(landed.from), ProtocolOf(landed.from));
    times_.Returns();
  }
  news_ = true;
  ++taken_unsaid_;
  if (MustSay()) WakeAgent();
  const ToGrants grants = TakeGrants();
  absl::Status error = ErrorOf(round, number);
  if (error.ok()) error = landed.error;
  if (!error.ok() && options_.distribute.on_error == RoundErrors::kStop) error_ = error;
  mu_.unlock();
  Apply(grants);
  std::optional<absl::StatusOr<Element>> element;
  if (error.ok() && !round.rest) element = AtStep(number, std::move(landed));
  mu_.lock();
  if (!error.ok()) return error;
  if (!element) return std::nullopt;
  if (!element->ok()) return element->status();
  return std::optional<Element>(**std::move(element));
}

absl::StatusOr<Element> Session::AtStep(int64_t step, Landed landed) const {
  PENSTOCK_ASSIGN_OR_RETURN(Element element,
                            CopyOutOfFrame(DefaultPool(), std::move(landed.element)));
  if (element.IsShared()) {  // to be written into
    PENSTOCK_ASSIGN_OR_RETURN(element, element.Copy());
  }
  Identity identity = landed.identity;
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
  if (round.rest && options_.distribute.rests == Rests::kError) {
    return absl::OutOfRangeError(absl::StrCat(
        "the data ends with elements that do not fill round ", number, " of ",
        *options_.distribute.num_consumers,
        " consumers; with rests = kPad it is filled with copies, with kDrop they are dropped"));
  }
  return absl::OkStatus();
}

protocol::RoundsReport Session::SayRounds() {
  protocol::RoundsReport said{
      .taken = rounds_.taken(),
      .heard = rounds_.heard(),
      .room = Room(),
      .errors = {round_errors_.begin() + static_cast<ptrdiff_t>(round_errors_said_),
                 round_errors_.end()}};
  round_errors_said_ = round_errors_.size();
  landed_unsaid_ = taken_unsaid_ = 0;
  said_ = BootTime();
  return said;
}

int64_t Session::Room() const {
  const int64_t most = window_.KnowsSizes() ? kMostRoom : protocol::kTurnsAhead;
  return std::min(most, window_.LimitOf(options_.distribute.max_outstanding_requests,
                                        options_.distribute.max_outstanding_bytes));
}

bool Session::MustSay() const {
  if (round_errors_said_ < round_errors_.size()) return true;
  // Others have fewer places than this consumer, or partitions are late: the dispatcher may have to
  // know what was taken here before it lets a worker send more.
  if (taken_unsaid_ > 0 && times_.Waiting() >= kLongestUnsaid) return true;
  const int64_t room = Room();
  const int64_t ahead = rounds_.heard() - rounds_.taken();
  if (landed_unsaid_ > 0 && (ahead < 2 || (ahead < room / 4 && landed_unsaid_ >= room / 4))) {
    return true;
  }
  return taken_unsaid_ >= std::max<int64_t>(1, room / 2);
}

// What was taken is for the journal, and waits for a heartbeat.
void Session::SendLanded() {
  control::Report report;
  for (auto& [partition, receiver] : receivers_) {
    if (std::optional<protocol::Report> news = receiver.LandedNews()) {
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
      coordinated() ? absl::StrCat("round ", rounds_.heard()) : "the next element of the order";
  hindered_ = absl::UnavailableError(absl::StrCat(what, " could not be given out for ",
                                                  absl::FormatDuration(options_.distribute.timeout),
                                                  ": ", WhatHinders()));
  WakeWaiting();
}

}  // namespace penstock::client
