// SPDX-License-Identifier: Apache-2.0
// Converts the messages of the two streams to and from their wire form. One function per
// alternative writes it; one switch per direction reads it.
#include <type_traits>

#include "control/proto/messages_proto.h"

namespace penstock::control {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

static absl::Status UnknownMessage(const char* stream) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a message on the ", stream, " stream that this release does not know; use one release"));
}

static absl::Status CheckIndex(const char* what, Index index) {
  if (index >= 0 && index < kMostIndices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " at index ", index, "; they are from 0 to below ", kMostIndices));
}

static void ToWire(const Fence& from, wire::Fence* to) {
  to->set_partition(from.partition.value());
  to->set_placement(from.placement.value());
  to->set_give_back(from.give_back);
}

static Fence FromWire(const wire::Fence& from) {
  return {PartitionId(from.partition()), Placement(from.placement()), from.give_back()};
}

// --- Rounds ---

static void ToWire(const protocol::PartitionRow& from, wire::PartitionRow* to) {
  to->set_partition(from.partition.value());
  to->set_row(from.row);
}

static absl::StatusOr<protocol::PartitionRow> FromWire(const wire::PartitionRow& from) {
  if (from.partition() == 0 || from.row() < 0) {
    return absl::InvalidArgumentError("a row of no partition, or a negative one");
  }
  return protocol::PartitionRow{PartitionId(from.partition()), from.row()};
}

static void ToWire(const protocol::RoundError& from, wire::RoundError* to) {
  ToWire(from.at, to->mutable_at());
  to->mutable_status()->set_code(from.code);
  to->mutable_status()->set_message(from.message);
}

static absl::StatusOr<protocol::RoundError> FromWire(const wire::RoundError& from) {
  protocol::RoundError to{.message = from.status().message(), .code = from.status().code()};
  ASSIGN_OR_RETURN(to.at, FromWire(from.at()));
  return to;
}

static void ToWire(const protocol::RoundsReport& from, wire::RoundsReport* to) {
  to->set_delivered(from.delivered);
  to->set_known(from.known);
  to->set_receive_budget(from.receive_budget);
  for (const protocol::RoundError& error : from.errors) ToWire(error, to->add_errors());
}

static absl::StatusOr<protocol::RoundsReport> FromWire(const wire::RoundsReport& from) {
  if (from.delivered() < 0 || from.known() < from.delivered()) {
    return absl::InvalidArgumentError("a consumer was given rounds that it does not know");
  }
  if (from.receive_budget() < 0) return absl::InvalidArgumentError("a negative receive budget");
  protocol::RoundsReport to{.delivered = from.delivered(),
                            .known = from.known(),
                            .receive_budget = from.receive_budget(),
                            .errors = {}};
  for (const wire::RoundError& error : from.errors()) {
    ASSIGN_OR_RETURN(to.errors.emplace_back(), FromWire(error));
  }
  return to;
}

static void ToWire(const Agreed& from, wire::Agreed* to) {
  to->set_first(from.first);
  to->set_waits_for(from.waits_for);
  for (const protocol::Agreed::Round& round : from.rounds) {
    wire::Agreed::Round* wire = to->add_rounds();
    if (round.row) ToWire(*round.row, wire->mutable_row());
    wire->set_unfilled(round.unfilled);
    wire->set_pad(round.pad);
    if (!round.error) continue;
    ToWire(*round.error, wire->mutable_error());
    wire->set_consumer(round.consumer);
  }
}

static absl::StatusOr<ClientDown> FromWire(const wire::Agreed& from) {
  Agreed to{.first = from.first(), .rounds = {}, .waits_for = from.waits_for()};
  for (const wire::Agreed::Round& wire : from.rounds()) {
    protocol::Agreed::Round& round = to.rounds.emplace_back();
    if (wire.has_row()) {
      ASSIGN_OR_RETURN(round.row, FromWire(wire.row()));
    }
    round.unfilled = wire.unfilled();
    round.pad = wire.pad();
    if (!wire.has_error()) continue;
    ASSIGN_OR_RETURN(round.error, FromWire(wire.error()));
    round.consumer = wire.consumer();
  }
  return to;
}

static void ToWire(const protocol::Remainder& from, wire::Remainder* to) {
  to->set_before(from.before);
  to->set_pads(from.pads);
}

static protocol::Remainder FromWire(const wire::Remainder& from) {
  return {.before = from.before(), .pads = from.pads()};
}

static void ToWire(const StepMark& from, wire::StepMark* to) {
  to->set_step(from.step);
  ToWire(from.row, to->mutable_row());
}

static absl::StatusOr<StepMark> FromWire(const wire::StepMark& from) {
  StepMark to{.step = from.step(), .row = {}};
  if (to.step < 0) return absl::InvalidArgumentError("a mark of a negative step");
  ASSIGN_OR_RETURN(to.row, FromWire(from.row()));
  return to;
}

static void ToWire(const ConsumersLost& from, wire::ConsumersLost* to) {
  for (const ConsumersLost::Consumer& consumer : from.consumers) {
    wire::ConsumersLost::Consumer* wire = to->add_consumers();
    wire->set_consumer(consumer.consumer);
    wire->set_silent_ns(absl::ToInt64Nanoseconds(consumer.silent));
    wire->set_dead(consumer.dead);
    wire->set_why(consumer.why);
    wire->set_ended(consumer.ended);
  }
}

static ConsumersLost FromWire(const wire::ConsumersLost& from) {
  ConsumersLost to;
  for (const wire::ConsumersLost::Consumer& wire : from.consumers()) {
    to.consumers.push_back({wire.consumer(), absl::Nanoseconds(wire.silent_ns()), wire.dead(),
                            wire.why(), wire.ended()});
  }
  return to;
}

// --- Client up ---

static void ToWire(const ClientHello& from, wire::ClientHello* to) {
  to->set_job(from.job.value());
  to->set_repetition(from.repetition);
  to->set_client(from.client.value());
  to->set_incarnation(from.incarnation.value());
  if (from.state.has_value()) ListToWire(*from.state, to->mutable_state()->mutable_partitions());
  to->set_process(from.process.value());
  if (from.consumer >= 0) to->set_consumer(from.consumer);
  to->set_round(from.round);
  to->set_token(from.token);
  ToWire(from.heard, to->mutable_heard());
  ToWire(from.version, to->mutable_version());
}

static absl::StatusOr<ClientUp> FromWire(const wire::ClientHello& from) {
  ClientHello to{.job = JobId(from.job()),
                 .repetition = from.repetition(),
                 .client = ClientId(from.client()),
                 .incarnation = Incarnation(from.incarnation()),
                 .state = std::nullopt,
                 .process = Incarnation(from.process())};
  if (from.has_consumer()) to.consumer = from.consumer();
  to.round = from.round();
  to.token = from.token();
  to.heard = FromWire(from.heard());
  to.version = FromWire(from.version());
  if (!to.client || !to.incarnation) {
    return absl::InvalidArgumentError("a client's hello without its id or incarnation");
  }
  if (from.has_state()) {
    ASSIGN_OR_RETURN(to.state, ListFromWire(from.state().partitions()));
  }
  return to;
}

static void ToWire(const Commit& from, wire::Commit* to) {
  to->set_number(from.number);
  for (const Commit::OfRepetition& of : from.repetitions) {
    wire::Commit::OfRepetition* wire = to->add_repetitions();
    wire->set_repetition(of.repetition);
    ListToWire(of.committed, wire->mutable_committed());
  }
}

static absl::StatusOr<ClientUp> FromWire(const wire::Commit& from) {
  Commit to{.number = from.number()};
  for (const wire::Commit::OfRepetition& of : from.repetitions()) {
    ASSIGN_OR_RETURN(std::vector<PartitionIndices> committed, ListFromWire(of.committed()));
    to.repetitions.push_back({of.repetition(), std::move(committed)});
  }
  return to;
}

static void ToWire(const ReceiveLimit& from, wire::ReceiveLimit* to) {
  for (const ReceiveLimit::OfPartition& of : from.partitions) {
    wire::ReceiveLimit::OfPartition* wire = to->add_partitions();
    wire->set_partition(of.partition.value());
    wire->set_below(of.below);
  }
}

static ReceiveLimit FromWire(const wire::ReceiveLimit& from) {
  ReceiveLimit to;
  for (const wire::ReceiveLimit::OfPartition& of : from.partitions()) {
    to.partitions.push_back({PartitionId(of.partition()), of.below()});
  }
  return to;
}

// --- Client down ---

static void ToWire(const Welcome& from, wire::Welcome* to) {
  to->set_iteration(from.iteration.value());
  ToWire(from.life, to->mutable_life());
  to->set_token(from.token);
  to->set_seed(from.seed);
  ToWire(from.terms, to->mutable_terms());
  to->set_heartbeat_interval_ns(absl::ToInt64Nanoseconds(from.heartbeat_interval));
  to->set_lease_ns(absl::ToInt64Nanoseconds(from.lease));
  for (const Fence& placement : from.placements) ToWire(placement, to->add_placements());
  to->set_first(from.first);
  for (const IndexSet& passed : from.passed) ToWire(passed, to->add_passed());
}

static absl::StatusOr<ClientDown> FromWire(const wire::Welcome& from) {
  Welcome to{.iteration = IterationId(from.iteration()),
             .life = FromWire(from.life()),
             .token = from.token(),
             .seed = from.seed(),
             .heartbeat_interval = absl::Nanoseconds(from.heartbeat_interval_ns()),
             .lease = absl::Nanoseconds(from.lease_ns())};
  ASSIGN_OR_RETURN(to.terms, FromWire(from.terms()));
  for (const wire::Fence& placement : from.placements()) {
    to.placements.push_back(FromWire(placement));
  }
  if (from.first() < 0) return absl::InvalidArgumentError("an order that begins below 0");
  to.first = from.first();
  for (const wire::IndexSet& wire : from.passed()) {
    ASSIGN_OR_RETURN(to.passed.emplace_back(), FromWire(wire));
  }
  return to;
}

static void ToWire(const Membership& from, wire::Membership* to) {
  to->set_version(from.version);
  to->set_closed(from.closed);
  to->set_max_bytes_in_flight(from.max_bytes_in_flight);
  for (const Membership::Partition& partition : from.partitions) {
    wire::Membership::Partition* wire = to->add_partitions();
    wire->set_partition(partition.partition.value());
    wire->set_placement(partition.placement.value());
    wire->set_worker(partition.worker.value());
    if (partition.end.has_value()) wire->set_end(*partition.end);
  }
  for (const Membership::Worker& worker : from.workers) {
    wire::Membership::Worker* wire = to->add_workers();
    wire->set_worker(worker.worker.value());
    wire->set_address(worker.address);
    ListToWire(worker.offers, wire->mutable_offers());
    for (const std::string& tag : worker.tags) wire->add_tags(tag);
    wire->set_process(worker.process.value());
  }
}

static Membership FromWire(const wire::Membership& from) {
  Membership to{.version = from.version(),
                .closed = from.closed(),
                .max_bytes_in_flight = from.max_bytes_in_flight()};
  for (const wire::Membership::Partition& partition : from.partitions()) {
    to.partitions.push_back({PartitionId(partition.partition()), Placement(partition.placement()),
                             WorkerId(partition.worker())});
    if (partition.has_end()) to.partitions.back().end = partition.end();
  }
  for (const wire::Membership::Worker& worker : from.workers()) {
    to.workers.push_back({WorkerId(worker.worker()),
                          worker.address(),
                          ListFromWire(worker.offers()),
                          {worker.tags().begin(), worker.tags().end()},
                          Incarnation(worker.process())});
  }
  return to;
}

// --- Worker up ---

static void ToWire(const WorkerHello& from, wire::WorkerHello* to) {
  to->set_worker(from.worker.value());
  ToWire(from.version, to->mutable_version());
  to->set_address(from.address);
  ListToWire(from.offers, to->mutable_offers());
  for (const std::string& tag : from.tags) to->add_tags(tag);
  to->set_permits(from.permits);
  ListToWire(from.held, to->mutable_held());
  to->set_process(from.process.value());
  ToWire(from.heard, to->mutable_heard());
}

static absl::StatusOr<WorkerUp> FromWire(const wire::WorkerHello& from) {
  if (from.worker() == 0) return absl::InvalidArgumentError("a worker's hello without its id");
  return WorkerHello{.worker = WorkerId(from.worker()),
                     .version = FromWire(from.version()),
                     .address = from.address(),
                     .offers = ListFromWire(from.offers()),
                     .tags = {from.tags().begin(), from.tags().end()},
                     .permits = from.permits(),
                     .held = ListFromWire(from.held()),
                     .process = Incarnation(from.process()),
                     .heard = FromWire(from.heard())};
}

static void ToWire(const SplitRequest& from, wire::SplitRequest* to) {
  ToWire(from.of, to->mutable_of());
  to->set_provider(from.provider);
  to->set_repetition(from.repetition);
  to->set_first_ordinal(from.first_ordinal);
  to->set_wanted(from.wanted);
}

static absl::StatusOr<WorkerUp> FromWire(const wire::SplitRequest& from) {
  if (from.provider() < 0 || from.repetition() < 0 || from.first_ordinal() < 0) {
    return absl::InvalidArgumentError("a request for splits with a negative number");
  }
  return SplitRequest{FromWire(from.of()), from.provider(), from.repetition(), from.first_ordinal(),
                      from.wanted()};
}

static void ToWire(const Bookmark& from, wire::Bookmark* to) {
  ToWire(from.of, to->mutable_of());
  to->set_index(from.index);
  to->set_position(from.position);
  ListToWire(from.splits, to->mutable_splits());
}

static absl::StatusOr<WorkerUp> FromWire(const wire::Bookmark& from) {
  RETURN_IF_ERROR(CheckIndex("a bookmark", from.index()));
  return Bookmark{FromWire(from.of()), from.index(), from.position(), ListFromWire(from.splits())};
}

// --- Worker down ---

static void ToWire(const Assign& from, wire::Assign* to) {
  ToWire(from.of, to->mutable_of());
  to->set_job(from.job.value());
  to->set_token(from.token);
  to->set_dataset_id(from.dataset_id);
  to->set_dataset_edition(from.dataset_edition);
  ToWire(from.terms, to->mutable_terms());
  if (from.shard.count > 0) {
    to->mutable_shard()->set_mode(static_cast<uint32_t>(from.shard.mode));
    to->mutable_shard()->set_count(from.shard.count);
    to->mutable_shard()->set_index(from.shard.index);
  }
  to->set_repetition(from.repetition);
  to->set_seed(from.seed);
  ToWire(from.skip, to->mutable_skip());
  to->set_bookmark_index(from.bookmark_index);
  to->set_bookmark(from.bookmark);
  ListToWire(from.splits, to->mutable_splits());
  ListToWire(from.readers, to->mutable_readers());
  to->set_rows(from.rows);
  if (from.remainder) ToWire(*from.remainder, to->mutable_remainder());
  if (from.copied) to->set_copied(*from.copied);
  to->set_lead(from.lead);
  if (from.positions) ToWire(*from.positions, to->mutable_positions());
}

static absl::StatusOr<WorkerDown> FromWire(const wire::Assign& from) {
  Assign to{.of = FromWire(from.of()),
            .job = JobId(from.job()),
            .token = from.token(),
            .dataset_id = from.dataset_id(),
            .dataset_edition = from.dataset_edition(),
            .repetition = from.repetition(),
            .seed = from.seed(),
            .bookmark_index = from.bookmark_index(),
            .bookmark = from.bookmark(),
            .readers = ListFromWire(from.readers()),
            .rows = from.rows(),
            .remainder = std::nullopt,
            .lead = from.lead(),
            .positions = std::nullopt,
            .copied = std::nullopt};
  if (from.has_copied()) {
    RETURN_IF_ERROR(CheckIndex("an element that is copied", from.copied()));
    to.copied = from.copied();
  }
  if (from.has_positions()) {
    ASSIGN_OR_RETURN(to.positions, FromWire(from.positions()));
  }
  if (from.has_remainder()) to.remainder = FromWire(from.remainder());
  ASSIGN_OR_RETURN(to.terms, FromWire(from.terms()));
  if (from.has_shard()) {
    ASSIGN_OR_RETURN(to.shard.mode, ShardingPolicyFromWire(from.shard().mode()));
    to.shard.count = from.shard().count();
    to.shard.index = from.shard().index();
    if (to.shard.count < 1 || to.shard.index < 0 || to.shard.index >= to.shard.count) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard ", to.shard.index, " of ", to.shard.count, " is none"));
    }
  }
  ASSIGN_OR_RETURN(to.skip, FromWire(from.skip()));
  ASSIGN_OR_RETURN(to.splits, ListFromWire(from.splits()));
  return to;
}

void ToWire(const ClientUp& from, wire::ClientUp* to) {
  std::visit(
      Overloaded{
          [to](const ClientHello& hello) { ToWire(hello, to->mutable_hello()); },
          [to](const ClientHeartbeat& beat) {
            to->mutable_heartbeat()->set_counter(beat.counter);
            ListToWire(beat.links, to->mutable_heartbeat()->mutable_links());
            to->mutable_heartbeat()->set_at_quota(beat.at_quota);
            ToWire(beat.steps, to->mutable_heartbeat()->mutable_steps());
            ListToWire(beat.marks, to->mutable_heartbeat()->mutable_marks());
          },
          [to](const FenceAnswer& answer) { ToWire(answer.report, to->mutable_fence_answer()); },
          [to](const Report& report) {
            ListToWire(report.partitions, to->mutable_report()->mutable_partitions());
            if (report.rounds) {
              ToWire(*report.rounds, to->mutable_report()->mutable_rounds());
            }
            to->mutable_report()->set_waits(report.waits);
          },
          [to](const Commit& commit) { ToWire(commit, to->mutable_commit()); },
          [to](const Leave& leave) {
            ListToWire(leave.delivered, to->mutable_leave()->mutable_delivered());
          },
          [to](const ReceiveLimit& limit) { ToWire(limit, to->mutable_receive_limit()); }},
      from);
}

absl::StatusOr<ClientUp> FromWire(const wire::ClientUp& from) {
  switch (from.message_case()) {
    case wire::ClientUp::kHello:
      return FromWire(from.hello());
    case wire::ClientUp::kHeartbeat: {
      ClientHeartbeat beat{from.heartbeat().counter(), ListFromWire(from.heartbeat().links()),
                           from.heartbeat().at_quota(), FromWire(from.heartbeat().steps())};
      for (const wire::StepMark& mark : from.heartbeat().marks()) {
        ASSIGN_OR_RETURN(beat.marks.emplace_back(), FromWire(mark));
      }
      return beat;
    }
    case wire::ClientUp::kFenceAnswer: {
      ASSIGN_OR_RETURN(PartitionReport report, FromWire(from.fence_answer()));
      return FenceAnswer{std::move(report)};
    }
    case wire::ClientUp::kReport: {
      ASSIGN_OR_RETURN(std::vector<PartitionReport> reports,
                       ListFromWire(from.report().partitions()));
      Report report{std::move(reports), std::nullopt, from.report().waits()};
      if (from.report().has_rounds()) {
        ASSIGN_OR_RETURN(report.rounds, FromWire(from.report().rounds()));
      }
      return report;
    }
    case wire::ClientUp::kCommit:
      return FromWire(from.commit());
    case wire::ClientUp::kLeave: {
      ASSIGN_OR_RETURN(std::vector<PartitionIndices> delivered,
                       ListFromWire(from.leave().delivered()));
      return Leave{std::move(delivered)};
    }
    case wire::ClientUp::kReceiveLimit:
      return FromWire(from.receive_limit());
    case wire::ClientUp::MESSAGE_NOT_SET:
      break;
  }
  return UnknownMessage("client");
}

void ToWire(const ClientDown& from, wire::ClientDown* to) {
  std::visit(
      Overloaded{
          [to](const Welcome& welcome) { ToWire(welcome, to->mutable_welcome()); },
          [to](const ClientHeartbeatAnswer& beat) {
            to->mutable_heartbeat()->set_counter(beat.counter);
          },
          [to](const Membership& membership) { ToWire(membership, to->mutable_membership()); },
          [to](const Fence& fence) { ToWire(fence, to->mutable_fence()); },
          [to](const ReportAtOnce&) { to->mutable_report_at_once(); },
          [to](const Committed& done) { to->mutable_committed()->set_number(done.number); },
          [to](const End& end) {
            to->mutable_end()->set_rounds(end.rounds);
            to->mutable_end()->set_elements(end.elements);
          },
          [to](const Agreed& agreed) { ToWire(agreed, to->mutable_agreed()); },
          [to](const ConsumersLost& lost) { ToWire(lost, to->mutable_consumers_lost()); },
          [to](const Left&) { to->mutable_left(); },
          [to](const SessionError& error) { ToWire(error.status, to->mutable_error()); }},
      from);
}

absl::StatusOr<ClientDown> FromWire(const wire::ClientDown& from) {
  switch (from.message_case()) {
    case wire::ClientDown::kWelcome:
      return FromWire(from.welcome());
    case wire::ClientDown::kHeartbeat:
      return ClientHeartbeatAnswer{from.heartbeat().counter()};
    case wire::ClientDown::kMembership:
      return FromWire(from.membership());
    case wire::ClientDown::kFence:
      return FromWire(from.fence());
    case wire::ClientDown::kReportAtOnce:
      return ReportAtOnce{};
    case wire::ClientDown::kCommitted:
      return Committed{from.committed().number()};
    case wire::ClientDown::kEnd:
      return End{from.end().rounds(), from.end().elements()};
    case wire::ClientDown::kLeft:
      return Left{};
    case wire::ClientDown::kError:
      return SessionError{FromWire(from.error())};
    case wire::ClientDown::kAgreed:
      return FromWire(from.agreed());
    case wire::ClientDown::kConsumersLost:
      return FromWire(from.consumers_lost());
    case wire::ClientDown::MESSAGE_NOT_SET:
      break;
  }
  return UnknownMessage("client");
}

void ToWire(const WorkerUp& from, wire::WorkerUp* to) {
  std::visit(
      Overloaded{
          [to](const WorkerHello& hello) { ToWire(hello, to->mutable_hello()); },
          [to](const WorkerHeartbeat& beat) {
            to->mutable_heartbeat()->set_counter(beat.counter);
            ListToWire(beat.work, to->mutable_heartbeat()->mutable_work());
            ListToWire(beat.iterations, to->mutable_heartbeat()->mutable_iterations());
          },
          [to](const SplitRequest& request) { ToWire(request, to->mutable_split_request()); },
          [to](const Bookmark& bookmark) { ToWire(bookmark, to->mutable_bookmark()); },
          [to](const Ended& ended) {
            ToWire(ended.of, to->mutable_ended()->mutable_of());
            to->mutable_ended()->set_elements(ended.elements);
          },
          [to](const AtEnd& at_end) {
            ToWire(at_end.of, to->mutable_at_end()->mutable_of());
            to->mutable_at_end()->set_elements(at_end.elements);
          },
          [to](const PartitionFailed& failed) {
            ToWire(failed.of, to->mutable_failed()->mutable_of());
            ToWire(failed.status, to->mutable_failed()->mutable_status());
          },
          [to](const Drain&) { to->mutable_drain(); },
          [to](const WorkerLeave&) { to->mutable_leave(); }},
      from);
}

absl::StatusOr<WorkerUp> FromWire(const wire::WorkerUp& from) {
  switch (from.message_case()) {
    case wire::WorkerUp::kHello:
      return FromWire(from.hello());
    case wire::WorkerUp::kHeartbeat:
      return WorkerHeartbeat{from.heartbeat().counter(), ListFromWire(from.heartbeat().work()),
                             ListFromWire(from.heartbeat().iterations())};
    case wire::WorkerUp::kSplitRequest:
      return FromWire(from.split_request());
    case wire::WorkerUp::kBookmark:
      return FromWire(from.bookmark());
    case wire::WorkerUp::kEnded:
      RETURN_IF_ERROR(CheckIndex("an end of a partition", from.ended().elements()));
      return Ended{FromWire(from.ended().of()), from.ended().elements()};
    case wire::WorkerUp::kAtEnd:
      RETURN_IF_ERROR(CheckIndex("an end of a partition", from.at_end().elements()));
      return AtEnd{FromWire(from.at_end().of()), from.at_end().elements()};
    case wire::WorkerUp::kFailed:
      return PartitionFailed{FromWire(from.failed().of()), FromWire(from.failed().status())};
    case wire::WorkerUp::kDrain:
      return Drain{};
    case wire::WorkerUp::kLeave:
      return WorkerLeave{};
    case wire::WorkerUp::MESSAGE_NOT_SET:
      break;
  }
  return UnknownMessage("worker");
}

void ToWire(const WorkerDown& from, wire::WorkerDown* to) {
  std::visit(
      Overloaded{
          [to](const WorkerWelcome& welcome) {
            ToWire(welcome.life, to->mutable_welcome()->mutable_life());
            to->mutable_welcome()->set_heartbeat_interval_ns(
                absl::ToInt64Nanoseconds(welcome.heartbeat_interval));
          },
          [to](const WorkerHeartbeatAnswer& beat) {
            to->mutable_heartbeat()->set_counter(beat.counter);
          },
          [to](const Assign& assign) { ToWire(assign, to->mutable_assign()); },
          [to](const AddReader& add) {
            ToWire(add.of, to->mutable_add_reader()->mutable_of());
            ToWire(add.reader, to->mutable_add_reader()->mutable_reader());
          },
          [to](const AllowRows& allow) {
            ToWire(allow.of, to->mutable_allow_rows()->mutable_of());
            to->mutable_allow_rows()->set_rows(allow.rows);
            if (allow.remainder)
              ToWire(*allow.remainder, to->mutable_allow_rows()->mutable_remainder());
          },
          [to](const Unassign& unassign) { ToWire(unassign.of, to->mutable_unassign()); },
          [to](const Splits& splits) {
            ToWire(splits.of, to->mutable_splits()->mutable_of());
            ToWire(splits.run, to->mutable_splits()->mutable_run());
          },
          [to](const Drained&) { to->mutable_drained(); },
          [to](const WorkerRefused& refused) { ToWire(refused.status, to->mutable_refused()); }},
      from);
}

absl::StatusOr<WorkerDown> FromWire(const wire::WorkerDown& from) {
  switch (from.message_case()) {
    case wire::WorkerDown::kWelcome:
      return WorkerWelcome{FromWire(from.welcome().life()),
                           absl::Nanoseconds(from.welcome().heartbeat_interval_ns())};
    case wire::WorkerDown::kHeartbeat:
      return WorkerHeartbeatAnswer{from.heartbeat().counter()};
    case wire::WorkerDown::kAssign:
      return FromWire(from.assign());
    case wire::WorkerDown::kAddReader:
      return AddReader{FromWire(from.add_reader().of()), FromWire(from.add_reader().reader())};
    case wire::WorkerDown::kAllowRows: {
      AllowRows allow{FromWire(from.allow_rows().of()), from.allow_rows().rows(), std::nullopt};
      if (from.allow_rows().has_remainder())
        allow.remainder = FromWire(from.allow_rows().remainder());
      return allow;
    }
    case wire::WorkerDown::kUnassign:
      return Unassign{FromWire(from.unassign())};
    case wire::WorkerDown::kSplits: {
      ASSIGN_OR_RETURN(SplitRun run, FromWire(from.splits().run()));
      return Splits{FromWire(from.splits().of()), std::move(run)};
    }
    case wire::WorkerDown::kDrained:
      return Drained{};
    case wire::WorkerDown::kRefused:
      return WorkerRefused{FromWire(from.refused())};
    case wire::WorkerDown::MESSAGE_NOT_SET:
      break;
  }
  return UnknownMessage("worker");
}

}  // namespace penstock::control
