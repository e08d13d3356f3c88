// SPDX-License-Identifier: Apache-2.0
#include "tests/control/protocol/rounds_world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::protocol {
namespace {

ClientId ClientOf(size_t consumer) {
  return ClientId(consumer + 1);
}
PartitionId PartitionOf(size_t position) {
  return PartitionId(position + 1);
}

std::string TextOf(const ReceivedSets& sets) {
  std::string text;
  for (const auto& [partition, set] : sets)
    absl::StrAppend(&text, partition.value(), ":", set.ToString(), ";");
  return text;
}

}  // namespace

std::string ToString(const RoundsStep& step) {
  static constexpr const char* kNames[] = {"deliver", "receive", "take",    "report", "present",
                                           "at end",  "ended",   "leave",   "commit", "kill",
                                           "restart", "break",   "go back", "expire", "join"};
  return absl::StrCat(kNames[static_cast<size_t>(step.kind)], " ", step.a, " ", step.b);
}

RoundsWorld::RoundsWorld(const RoundsScene& scene) : scene_(&scene) {
  record_.rounds.consumers = scene.consumers;
  record_.rounds.remainder_policy = scene.remainder_policy;
  record_.commit_policy =
      scene.state_every > 0 ? CommitPolicy::kExplicit : CommitPolicy::kOnDelivery;
  context_ = MakeIterationContext(record_, scene.broken);
  workers_.resize(scene.ends.size());
  consumers_.resize(static_cast<size_t>(scene.consumers));
  for (Consumer& consumer : consumers_) {
    for (size_t p = 0; p < scene.ends.size(); ++p) consumer.receivers.emplace_back(PartitionOf(p));
  }
  for (size_t p = 0; p + static_cast<size_t>(scene.late) < scene.ends.size(); ++p) {
    Settle(OpenPartition(record_, context_));
  }
}

void RoundsWorld::Settle(Decision decision) {
  do {
    for (const IterationChange& change : decision.changes) {
      if (!Fits(record_, change)) return Fault("a change does not fit");
      Apply(record_, change);
    }
    for (const Message& message : decision.messages) Route(message);
    decision = Consequences(record_, context_);
  } while (!decision.empty());
  for (PartitionId partition : Assignable(record_, context_)) {
    Decision assigned = AssignTo(record_, context_, partition, WorkerId(next_worker_++));
    for (const IterationChange& change : assigned.changes) Apply(record_, change);
    for (const Message& message : assigned.messages) Route(message);
  }
}

void RoundsWorld::Route(const Message& message) {
  if (const auto* assign = std::get_if<Assign>(&message)) {
    Sending& sending = workers_[assign->partition.value() - 1];
    sending = {.worker = assign->worker, .placement = assign->placement, .skip = assign->skip};
    if (assign->copied) sending.skip.Add(*assign->copied);
    sending.rows = assign->rows;
    sending.remainder = assign->remainder;
    return;
  }
  if (const auto* allow = std::get_if<AllowRows>(&message)) {
    Sending& sending = workers_[allow->partition.value() - 1];
    if (sending.placement != allow->placement) return;
    sending.rows = std::max(sending.rows, allow->rows);
    if (allow->remainder) sending.remainder = allow->remainder;
    return;
  }
  if (const auto* unassign = std::get_if<Unassign>(&message)) {
    Sending& sending = workers_[unassign->partition.value() - 1];
    if (sending.placement <= unassign->placement) sending.worker = {};
    return;
  }
  std::visit(
      [&](const auto& m) {
        if constexpr (requires {
                        m.incarnation;
                        m.client;
                      }) {
          Consumer& consumer = consumers_[m.client.value() - 1];
          if (consumer.presented && consumer.incarnation == m.incarnation.value()) {
            consumer.inbox.push_back(m);
          }
        }
      },
      message);
}

void RoundsWorld::Hear(Consumer& consumer, const Message& message) {
  const auto number = static_cast<size_t>(&consumer - consumers_.data());
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    for (const Placed& placed : welcome->placements) {
      consumer.receivers[placed.partition.value() - 1].OnWelcome(placed.placement);
    }
    for (Receiver& receiver : consumer.receivers) receiver.OnConnected();
    return Report(static_cast<int>(number), /*all=*/true);
  }
  if (const auto* fence = std::get_if<ToClient<Fence>>(&message)) {
    const protocol::Report answer =
        consumer.receivers[fence->partition.value() - 1].OnFence(fence->placement);
    return Settle(
        OnReport(record_, context_, ClientOf(number), Incarnation(consumer.incarnation), answer));
  }
  if (const auto* end = std::get_if<ToClient<End>>(&message)) {
    consumer.end = true;
    consumer.rounds = end->rounds;
    return;
  }
  if (std::holds_alternative<Refused>(message)) return Fault("a consumer was refused");
  const auto* agreed = std::get_if<ToClient<Agreed>>(&message);
  if (agreed == nullptr) return;
  for (size_t i = 0; i < agreed->rounds.size(); ++i) {
    const size_t round = static_cast<size_t>(agreed->first) + i;
    if (static_cast<int64_t>(round) < consumer.queue.known()) continue;
    announced_.resize(std::max(announced_.size(), round + 1),
                      std::vector<PartitionRow>(consumers_.size()));
    const std::optional<PartitionRow>& row = agreed->rounds[i].row;
    if (!row) continue;
    PartitionRow& first = announced_[round][number];
    if (first.partition && !(first == *row))
      Fault(absl::StrCat("torn: round ", round, " is another"));
    first = *row;
    const Receiver& receiver = consumer.receivers[row->partition.value() - 1];
    if (!receiver.received().Contains(row->row))
      Fault(absl::StrCat("torn: round ", round, " was not received"));
    if (record_.rounds.ends.empty() ||
        static_cast<int64_t>(round) < WholeRounds(record_.rounds.ends, record_.rounds.consumers)) {
      for (const std::vector<PartitionRow>& of : {announced_[round]}) {
        for (const PartitionRow& other : of) {
          if (other.partition && !(other == *row))
            Fault(absl::StrCat("torn: round ", round, " is not one row"));
        }
      }
      for (const Consumer& other : consumers_) {
        if (deaths_ == 0 &&
            !other.receivers[row->partition.value() - 1].AllIndices().Contains(row->row)) {
          Fault(absl::StrCat("torn: round ", round, " was not received everywhere"));
        }
      }
    }
  }
  if (!consumer.queue.OnAgreed(agreed->first, agreed->rounds)) Fault("rounds are missing");
  consumer.says = true;
}

void RoundsWorld::Report(int number, bool all) {
  Consumer& consumer = consumers_[static_cast<size_t>(number)];
  const Incarnation incarnation(consumer.incarnation);
  const ClientId client = ClientOf(static_cast<size_t>(number));
  for (Receiver& receiver : consumer.receivers) {
    std::optional<protocol::Report> news = all ? receiver.News() : receiver.ReceivedNews();
    if (news) Settle(OnReport(record_, context_, client, incarnation, *news));
  }
  consumer.says = false;
  const RoundsReport report{.delivered = consumer.queue.delivered(),
                            .known = consumer.queue.known(),
                            .receive_budget = scene_->receive_budget,
                            .errors = {}};
  const absl::Status may_be = CheckRoundsReport(record_, context_, client, incarnation, report);
  if (!may_be.ok()) return Fault(absl::StrCat("refused: ", may_be.message()));
  Settle(OnRoundsReport(record_, context_, client, incarnation, report));
}

Index RoundsWorld::Whole(int partition) const {
  return scene_->ends[static_cast<size_t>(partition)] / scene_->consumers * scene_->consumers;
}

std::optional<Index> RoundsWorld::NextFor(int partition, int consumer) const {
  const Sending& sending = workers_[static_cast<size_t>(partition)];
  if (!sending.worker) return std::nullopt;
  const Index end = scene_->ends[static_cast<size_t>(partition)];
  const Index all = sending.remainder ? end + sending.remainder->pads : Whole(partition);
  for (Index index = sending.skip.FirstMissing(); index < all;
       index = sending.skip.FirstMissing(index + 1)) {
    if (index / scene_->consumers >= sending.rows) break;
    const std::optional<Index> known = sending.remainder ? std::optional(end) : std::nullopt;
    if (ConsumerOf(index, scene_->consumers, known, sending.remainder.value_or(Remainder())) ==
        consumer)
      return index;
  }
  return std::nullopt;
}

bool RoundsWorld::AllSent(int partition) const {
  const Sending& sending = workers_[static_cast<size_t>(partition)];
  const Index end = scene_->ends[static_cast<size_t>(partition)];
  if (end != Whole(partition) && !sending.remainder) return false;
  return sending.skip.FirstMissing() >= end + (sending.remainder ? sending.remainder->pads : 0);
}

bool RoundsWorld::MayExpire(int consumer) const {
  const auto found = record_.FindReader(ClientOf(static_cast<size_t>(consumer)));
  if (!found) return false;
  const ReaderRecord& reader = record_.readers[*found];
  return reader.status == ReaderStatus::kActive &&
         reader.incarnation.value() < consumers_[static_cast<size_t>(consumer)].incarnation;
}

std::vector<RoundsStep> RoundsWorld::Next() const {
  using Kind = RoundsStep::Kind;
  std::vector<RoundsStep> steps;
  for (int c = 0; c < scene_->consumers; ++c) {
    const Consumer& consumer = consumers_[static_cast<size_t>(c)];
    if (consumer.left) continue;
    if (!consumer.presented) {
      steps.push_back({Kind::kConnect, c});
      if (expired_ < scene_->leases_run_out && MayExpire(c)) steps.push_back({Kind::kExpire, c});
    } else {
      if (!consumer.inbox.empty()) steps.push_back({Kind::kDeliver, c});
      if (consumer.says) steps.push_back({Kind::kReport, c});
    }
    if (consumer.queue.Next() != nullptr) steps.push_back({Kind::kTake, c});
    for (int p = 0; p < static_cast<int>(workers_.size()); ++p) {
      const auto reader = record_.FindReader(ClientOf(static_cast<size_t>(c)));
      if (!reader || record_.readers[*reader].incarnation.value() != consumer.incarnation) continue;
      const bool knows = workers_[static_cast<size_t>(p)].placement >=
                         consumer.receivers[static_cast<size_t>(p)].lowest();
      if (knows && NextFor(p, c)) steps.push_back({Kind::kReceive, c, p});
    }
    const bool committed =
        scene_->state_every == 0 || consumer.committed_rounds == consumer.queue.delivered();
    if (consumer.presented && consumer.end && committed &&
        consumer.queue.delivered() == consumer.rounds) {
      steps.push_back({Kind::kLeave, c});
    }
    if (consumer.presented && consumer.committed_rounds < consumer.state_rounds) {
      steps.push_back({Kind::kCommit, c});
    }
    if (consumer.presented && breaks_ < scene_->broken_streams) steps.push_back({Kind::kBreak, c});
    if (deaths_ < scene_->consumer_deaths && !consumer.end) steps.push_back({Kind::kGoBack, c});
  }
  for (int p = 0; p < static_cast<int>(workers_.size()); ++p) {
    const Sending& sending = workers_[static_cast<size_t>(p)];
    if (!sending.worker) continue;
    if (!sending.sent_end) steps.push_back({Kind::kAtEnd, 0, p});
    if (!sending.sent_ended && AllSent(p)) steps.push_back({Kind::kEnded, 0, p});
    if (kills_ < scene_->worker_deaths) steps.push_back({Kind::kKill, 0, p});
  }
  if (record_.partitions.size() < workers_.size() && !record_.closed) {
    steps.push_back({Kind::kJoin});
  }
  if (restarts_ < scene_->dispatcher_restarts) steps.push_back({Kind::kRestart});
  return steps;
}

void RoundsWorld::Take(const RoundsStep& step) {
  using Kind = RoundsStep::Kind;
  Consumer& consumer = consumers_[static_cast<size_t>(step.a)];
  Sending& sending = workers_[static_cast<size_t>(step.b)];
  const PartitionId partition = PartitionOf(static_cast<size_t>(step.b));
  const Index end = scene_->ends[static_cast<size_t>(step.b)];
  switch (step.kind) {
    case Kind::kDeliver: {
      const Message message = consumer.inbox.front();
      consumer.inbox.pop_front();
      return Hear(consumer, message);
    }
    case Kind::kReceive: {
      const Index index = *NextFor(step.b, step.a);
      sending.skip.Add(index);
      Receiver& receiver = consumer.receivers[static_cast<size_t>(step.b)];
      receiver.OnElement(sending.placement, index / scene_->consumers);
      consumer.says = true;
      int64_t held = 0;
      for (const Receiver& its : consumer.receivers) held += its.received().size();
      // Failures may add more: docs/exactly_once.md, rule 24.
      if (scene_->receive_budget > 0 && held > scene_->receive_budget &&
          kills_ + restarts_ + deaths_ == 0)
        Fault(absl::StrCat(held, " elements are held at consumer ", step.a));
      return;
    }
    case Kind::kTake: {
      const Agreed::Round round = *consumer.queue.Next();
      consumer.queue.Pop();
      if (round.row)
        consumer.receivers[round.row->partition.value() - 1].OnDelivered(round.row->row);
      consumer.says = true;
      if (scene_->state_every > 0 && consumer.queue.delivered() % scene_->state_every == 0) {
        for (size_t p = 0; p < workers_.size(); ++p) {
          consumer.state.Add(PartitionOf(p), consumer.receivers[p].delivered());
        }
        consumer.state_rounds = consumer.queue.delivered();
      }
      return;
    }
    case Kind::kReport:
      // A heartbeat: under ack_mode = kOnDelivery it also reports what was delivered.
      return Report(step.a, /*all=*/true);
    case Kind::kConnect: {
      consumer.presented = true;
      consumer.inbox.clear();
      Connect connect{ClientOf(static_cast<size_t>(step.a)), Incarnation(consumer.incarnation),
                      std::nullopt, step.a, 0};
      if (consumer.incarnation > 1) {
        const auto found = record_.FindReader(connect.client);
        if (!found || record_.readers[*found].incarnation != connect.incarnation) {
          connect.state = consumer.state;
          connect.round = consumer.state_rounds;
        }
      }
      return Settle(OnConnect(record_, context_, connect));
    }
    case Kind::kAtEnd:
      sending.sent_end = true;
      return Settle(OnAtEnd(record_, context_, sending.worker, partition, sending.placement, end));
    case Kind::kEnded:
      sending.sent_ended = true;
      return Settle(OnEnded(record_, context_, sending.worker, partition, sending.placement,
                            end + (sending.remainder ? sending.remainder->pads : 0)));
    case Kind::kLeave: {
      Leave leave;
      for (size_t p = 0; p < workers_.size(); ++p) {
        leave.delivered.Add(PartitionOf(p), consumer.receivers[p].delivered());
      }
      consumer.left = true;
      return Settle(OnLeave(record_, context_, ClientOf(static_cast<size_t>(step.a)),
                            Incarnation(consumer.incarnation), leave));
    }
    case Kind::kCommit:
      consumer.committed_rounds = consumer.state_rounds;
      return Settle(OnCommit(record_, context_, ClientOf(static_cast<size_t>(step.a)),
                             Incarnation(consumer.incarnation),
                             {.number = consumer.state_rounds, .committed = consumer.state}));
    case Kind::kExpire:
      ++expired_;
      return Settle(OnReaderExpired(record_, context_, ClientOf(static_cast<size_t>(step.a))));
    case Kind::kJoin:
      return Settle(OpenPartition(record_, context_));
    case Kind::kBreak:
      ++breaks_;
      consumer.presented = false;
      consumer.inbox.clear();
      return OnDisconnect(record_, context_, ClientOf(static_cast<size_t>(step.a)));
    case Kind::kKill: {
      ++kills_;
      const WorkerId worker = sending.worker;
      sending.worker = {};
      return Settle(OnWorkerGone(record_, context_, worker));
    }
    case Kind::kRestart: {
      ++restarts_;
      context_ = MakeIterationContext(record_, scene_->broken);
      for (Consumer& its : consumers_) {
        its.presented = false;
        its.inbox.clear();
      }
      for (size_t p = 0; p < workers_.size(); ++p) {
        Sending& its = workers_[p];
        its.sent_end = its.sent_ended = false;
        if (!its.worker) continue;
        const HeldPlacement held[] = {{PartitionOf(p), its.placement}};
        Settle(OnWorkerRegisters(record_, context_, its.worker, held));
      }
      return;
    }
    case Kind::kGoBack: {
      ++deaths_;
      OnDisconnect(record_, context_, ClientOf(static_cast<size_t>(step.a)));
      Consumer back;
      back.incarnation = consumer.incarnation + 1;
      back.state = consumer.state;
      back.state_rounds = consumer.state_rounds;
      back.committed_rounds = consumer.committed_rounds;
      back.queue = RoundQueue(consumer.state_rounds);
      for (size_t p = 0; p < workers_.size(); ++p) {
        back.receivers.emplace_back(PartitionOf(p), Of(consumer.state, PartitionOf(p)));
      }
      for (size_t r = static_cast<size_t>(consumer.state_rounds); r < announced_.size(); ++r) {
        announced_[r][static_cast<size_t>(step.a)] = {};
      }
      consumer = std::move(back);
      return;
    }
  }
}

bool RoundsWorld::Done() const {
  const int64_t consumers = scene_->consumers;
  const auto opened = static_cast<ptrdiff_t>(record_.partitions.size());
  const Ends ends(scene_->ends.begin(), scene_->ends.begin() + opened);
  for (const Consumer& consumer : consumers_) {
    if (!consumer.end || consumer.queue.delivered() != consumer.rounds) return false;
    if (consumer.rounds != AllRounds(ends, consumers)) return false;
  }
  return true;
}

bool RoundsWorld::WaitsForStates() const {
  return context_.rounds.waits_for.find("states of one step") != std::string::npos;
}

std::string RoundsWorld::Describe() const {
  std::string text = absl::StrCat(kills_, " ", restarts_, " ", deaths_, " ", expired_, " ", breaks_,
                                  " ", record_.closed, record_.finished);
  for (size_t p = 0; p < record_.partitions.size(); ++p) {
    const Sending& s = workers_[p];
    const PartitionRecord& r = record_.partitions[p];
    const PartitionContext& d = context_.partitions[p];
    absl::StrAppend(&text, "|", bool{s.worker}, s.placement.value(), s.skip.ToString(), s.rows,
                    s.remainder ? absl::StrCat(s.remainder->before, "+", s.remainder->pads) : "-",
                    s.sent_end, s.sent_ended, "/", r.placement.value(), r.collecting(), "/");
    absl::StrAppend(&text, d.ended.value_or(-1), " ", d.at_end.value_or(-1), " ", d.rows_allowed,
                    " ", d.rows_sent, d.remainder_announced);
    for (size_t r = 0; r < record_.readers.size(); ++r)
      absl::StrAppend(&text, ",", context_.HasAnswered(p, r, record_.partitions[p].placement),
                      d.acks.Of(r).reported.ToString());
  }
  const Schedule& schedule = record_.rounds.schedule;
  for (const RoundEvent& e : schedule.events) {
    absl::StrAppend(&text, "e", e.round, " ", static_cast<int>(e.kind), e.partition.value());
  }
  absl::StrAppend(&text, "n", record_.rounds.ends.size());
  if (context_.rounds.agreed) absl::StrAppend(&text, "a", context_.rounds.agreed->round());
  if (context_.rounds.floor) absl::StrAppend(&text, "f", context_.rounds.floor->round());
  for (const ConsumerContext& c : context_.rounds.consumers) {
    absl::StrAppend(&text, ";", c.reported, c.delivered, " ", c.known, " ",
                    c.announced ? c.announced->round() : -1, " ", c.receive_budget);
  }
  absl::StrAppend(&text, context_.rounds.waits_for);
  for (const ReaderRecord& r : record_.readers) {
    absl::StrAppend(&text, "r", r.client.value(), r.incarnation.value(), static_cast<int>(r.status),
                    r.end_notified, r.fresh, r.start, TextOf(r.committed), TextOf(r.final));
  }
  for (const bool present : context_.present) absl::StrAppend(&text, present);
  for (const Consumer& c : consumers_) {
    absl::StrAppend(&text, "\nc", c.incarnation, c.presented, c.says, c.end, c.left, c.rounds, " ",
                    c.committed_rounds, " ", c.queue.delivered(), " ", c.queue.known(), " ",
                    TextOf(c.state));
    for (const Receiver& r : c.receivers) {
      absl::StrAppend(&text, "[", r.lowest().value(), r.delivered().ToString(),
                      r.received().ToString());
    }
    for (const Message& m : c.inbox) {
      absl::StrAppend(&text, "m", m.index());
      if (const auto* agreed = std::get_if<ToClient<Agreed>>(&m))
        absl::StrAppend(&text, agreed->first, "+", agreed->rounds.size());
      if (const auto* fence = std::get_if<ToClient<Fence>>(&m))
        absl::StrAppend(&text, fence->partition.value(), ":", fence->placement.value());
    }
  }
  for (const auto& of : announced_) {
    for (const PartitionRow& row : of)
      absl::StrAppend(&text, "t", row.partition.value(), ".", row.row);
  }
  return text;
}

}  // namespace penstock::protocol
