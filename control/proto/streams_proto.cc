// SPDX-License-Identifier: Apache-2.0
// Converts the messages of the two streams to and from their wire form.
#include "control/observe/ignored.h"
#include "control/proto/messages_proto.h"
#include "control/proto/status_fields.h"

namespace penstock::control {

static void CheckIndex(Decoder& coder, const char* what, Index index) {
  coder.Require(index >= 0 && index < kMostIndices, what, " has index ", index,
                "; expected at least 0 and below ", kMostIndices);
}
static void CheckIndex(Encoder&, const char*, Index) {}

static void CheckRow(Decoder& coder, const protocol::PartitionRow& row) {
  coder.Require(row.partition && row.row >= 0, "a row has no partition or a negative number");
}
static void CheckRow(Encoder&, const protocol::PartitionRow&) {}

static void CheckVersions(Decoder& coder, size_t count) {
  coder.Require(count <= kMostPositionVersions, "a message has ", count,
                " versions of operations; the limit is ", kMostPositionVersions);
}
static void CheckVersions(Encoder&, size_t) {}

constexpr char kUnknownMessage[] = " stream carries a message that this release does not know";

WIRE_STRUCT(PartitionReport, wire::PartitionReport, partition, placement, delivered, received,
            handed, returned, whole);
WIRE_STRUCT(Fence, wire::Fence, partition, placement, give_back);

// --- Rounds ---

WIRE_PAIR(protocol::RoundError, wire::RoundError) {
  WIRE_FIELDS(at);
  CheckRow(coder, value.at);
  if constexpr (Coder::kEncodes) {
    message.mutable_status()->set_code(value.code);
    message.mutable_status()->set_message(value.message);
  } else {
    value.code = message.status().code();
    value.message = message.status().message();
  }
}
WIRE_PAIR(protocol::RoundsReport, wire::RoundsReport) {
  WIRE_FIELDS(delivered, known, receive_budget, errors);
  coder.Require(value.delivered >= 0 && value.known >= value.delivered, "a consumer reports ",
                value.delivered, " delivered rounds, and knows ", value.known);
  coder.Require(value.receive_budget >= 0, "receive_budget is negative");
}
WIRE_PAIR(protocol::Agreed::Round, wire::Agreed::Round) {
  WIRE_FIELDS(row, unfilled, pad, error);
  if (value.row.has_value()) CheckRow(coder, *value.row);
  if (!value.error.has_value()) return;
  WIRE_FIELDS(consumer);
}
WIRE_STRUCT(Agreed, wire::Agreed, first, rounds, waits_for);
WIRE_STRUCT(protocol::Remainder, wire::Remainder, before, pads);
WIRE_PAIR(StepMark, wire::StepMark) {
  WIRE_FIELDS(step, row);
  CheckRow(coder, value.row);
  coder.Require(value.step >= 0, "a step mark has a negative step");
}
WIRE_PAIR(ConsumersLost::Consumer, wire::ConsumersLost::Consumer) {
  WIRE_FIELDS(consumer, dead, why, ended);
  WIRE_NANOSECONDS(silent);
}
WIRE_STRUCT(ConsumersLost, wire::ConsumersLost, consumers);

// --- Client up ---

WIRE_PAIR(std::vector<PartitionIndices>, wire::ReceivedSets) {
  WIRE_PART(partitions);
}
WIRE_STRUCT(ClientHello::OfRepetition, wire::ClientHello::OfRepetition, repetition, state);
WIRE_PAIR(ClientHello, wire::ClientHello) {
  WIRE_FIELDS(job, repetition, client, incarnation, state, process, round, token, heard, version,
              release, others);
  WIRE_FIELD_IF(value.consumer >= 0, consumer);
  coder.Require(value.client && value.incarnation,
                "a client's hello has no client id or no incarnation");
}
WIRE_STRUCT(ClientHeartbeat, wire::ClientHeartbeat, counter, links, at_quota, steps, marks,
            only_changed_links, gone_links);
WIRE_PAIR(FenceAnswer, wire::PartitionReport) {
  Fields(coder, value.report, message);
}
WIRE_STRUCT(Report, wire::Report, partitions, rounds, waits, complete);
WIRE_STRUCT(Commit::OfRepetition, wire::Commit::OfRepetition, repetition, committed);
WIRE_STRUCT(Commit, wire::Commit, number, repetitions);
WIRE_STRUCT(Leave, wire::Leave, delivered);
WIRE_STRUCT(ReceiveLimit::OfPartition, wire::ReceiveLimit::OfPartition, partition, below);
WIRE_STRUCT(ReceiveLimit, wire::ReceiveLimit, partitions);

WIRE_PAIR(ClientUp, wire::ClientUp) {
  WIRE_CASE(ClientHello, hello);
  WIRE_CASE(ClientHeartbeat, heartbeat);
  WIRE_CASE(FenceAnswer, fence_answer);
  WIRE_CASE(Report, report);
  WIRE_CASE(Commit, commit);
  WIRE_CASE(Leave, leave);
  WIRE_CASE(ReceiveLimit, receive_limit);
  coder.Require(message.message_case() != 0, "the client", kUnknownMessage);
}

// --- Client down ---

WIRE_PAIR(Welcome, wire::Welcome) {
  WIRE_FIELDS(iteration, life, token, seed, terms, placements, first, passed, version, partial);
  WIRE_NANOSECONDS(heartbeat_interval, lease);
  coder.Require(value.first >= 0, "the order of a job begins at ", value.first,
                "; expected at least 0");
}
WIRE_STRUCT(ClientHeartbeatAnswer, wire::Heartbeat, counter);
WIRE_STRUCT(Membership::Partition, wire::Membership::Partition, partition, placement, worker, end);
WIRE_STRUCT(Membership::Worker, wire::Membership::Worker, worker, address, offers, tags, process);
WIRE_STRUCT(Membership, wire::Membership, version, partitions, workers, closed, max_bytes_in_flight,
            since, num_partitions);
WIRE_PAIR(ReportAtOnce, wire::Empty) {}
WIRE_STRUCT(Committed, wire::Committed, number);
WIRE_STRUCT(End, wire::End, rounds, elements);
WIRE_PAIR(Left, wire::Empty) {}
WIRE_PAIR(SessionError, wire::Refusal) {
  Fields(coder, value.status, message);
  WIRE_FIELDS(life);
}

WIRE_PAIR(ClientDown, wire::ClientDown) {
  WIRE_CASE(Welcome, welcome);
  WIRE_CASE(ClientHeartbeatAnswer, heartbeat);
  WIRE_CASE(Membership, membership);
  WIRE_CASE(Fence, fence);
  WIRE_CASE(ReportAtOnce, report_at_once);
  WIRE_CASE(Committed, committed);
  WIRE_CASE(End, end);
  WIRE_CASE(Left, left);
  WIRE_CASE(SessionError, error);
  WIRE_CASE(Agreed, agreed);
  WIRE_CASE(ConsumersLost, consumers_lost);
  coder.Require(message.message_case() != 0, "the client", kUnknownMessage);
}

// --- Worker up ---

WIRE_PAIR(WorkerHello, wire::WorkerHello) {
  WIRE_FIELDS(worker, version, address, offers, tags, permits, held, process, heard, release,
              reads);
  CheckVersions(coder, value.reads.size());
  coder.Require(static_cast<bool>(value.worker), "a worker's hello has no worker id");
}
WIRE_STRUCT(WorkerHeartbeat, wire::WorkerHeartbeat, counter, work, iterations);
WIRE_PAIR(SplitRequest, wire::SplitRequest) {
  WIRE_FIELDS(of, provider, repetition, first_ordinal, wanted);
  coder.Require(value.provider >= 0 && value.repetition >= 0 && value.first_ordinal >= 0,
                "a request for splits has a negative number");
}
WIRE_PAIR(Bookmark, wire::Bookmark) {
  WIRE_FIELDS(of, index, position, splits, versions);
  CheckVersions(coder, value.versions.size());
  CheckIndex(coder, "a bookmark", value.index);
}
WIRE_PAIR(Ended, wire::Ended) {
  WIRE_FIELDS(of, elements);
  CheckIndex(coder, "the end of a partition", value.elements);
}
WIRE_STRUCT(PartitionFailed, wire::PartitionFailed, of, status, refuses_dataset);
WIRE_PAIR(Drain, wire::Empty) {}
WIRE_PAIR(WorkerLeave, wire::Empty) {}
WIRE_PAIR(AtEnd, wire::Ended) {
  WIRE_FIELDS(of, elements);
  CheckIndex(coder, "the end of a partition", value.elements);
}

WIRE_PAIR(WorkerUp, wire::WorkerUp) {
  WIRE_CASE(WorkerHello, hello);
  WIRE_CASE(WorkerHeartbeat, heartbeat);
  WIRE_CASE(SplitRequest, split_request);
  WIRE_CASE(Bookmark, bookmark);
  WIRE_CASE(Ended, ended);
  WIRE_CASE(PartitionFailed, failed);
  WIRE_CASE(Drain, drain);
  WIRE_CASE(WorkerLeave, leave);
  WIRE_CASE(AtEnd, at_end);
  coder.Require(message.message_case() != 0, "the worker", kUnknownMessage);
}

// --- Worker down ---

WIRE_PAIR(WorkerWelcome, wire::WorkerWelcome) {
  WIRE_FIELDS(life, version);
  WIRE_NANOSECONDS(heartbeat_interval);
}
WIRE_PAIR(WorkerHeartbeatAnswer, wire::WorkerHeartbeatAnswer) {
  WIRE_FIELDS(counter);
  WIRE_NANOSECONDS(bookmark_interval, heartbeat_interval);
}
WIRE_PAIR(ShardOf, wire::ShardOf) {
  WIRE_FIELDS(mode, count, index);
  coder.Require(value.count >= 1 && value.index >= 0 && value.index < value.count, "invalid shard ",
                value.index, " of ", value.count);
}
WIRE_PAIR(Assign, wire::Assign) {
  WIRE_FIELDS(of, job, token, dataset_id, dataset_edition, terms, repetition, seed, skip,
              bookmark_index, bookmark, splits, readers, rows, remainder, lead, positions, copied);
  WIRE_FIELD_IF(value.shard.count > 0, shard);
  CheckIndex(coder, "an element that is copied", value.copied.value_or(0));
}
WIRE_STRUCT(AddReader, wire::AddReader, of, reader);
WIRE_STRUCT(RemoveReader, wire::RemoveReader, of, client);
WIRE_STRUCT(AllowRows, wire::AllowRows, of, rows, remainder);
WIRE_PAIR(Unassign, wire::PlacedPartition) {
  Fields(coder, value.of, message);
}
WIRE_STRUCT(Splits, wire::Splits, of, run);
WIRE_PAIR(Drained, wire::Empty) {}
WIRE_PAIR(WorkerRefused, wire::Refusal) {
  Fields(coder, value.status, message);
  WIRE_FIELDS(life);
}

WIRE_PAIR(WorkerDown, wire::WorkerDown) {
  WIRE_CASE(WorkerWelcome, welcome);
  WIRE_CASE(WorkerHeartbeatAnswer, heartbeat);
  WIRE_CASE(Assign, assign);
  WIRE_CASE(AddReader, add_reader);
  WIRE_CASE(Unassign, unassign);
  WIRE_CASE(Splits, splits);
  WIRE_CASE(Drained, drained);
  WIRE_CASE(WorkerRefused, refused);
  WIRE_CASE(AllowRows, allow_rows);
  WIRE_CASE(RemoveReader, remove_reader);
  coder.Require(message.message_case() != 0, "the worker", kUnknownMessage);
}

WIRE_CONVERTERS(ClientUp);
WIRE_CONVERTERS(ClientDown);
WIRE_CONVERTERS(WorkerUp);
WIRE_CONVERTERS(WorkerDown);

// --- Messages of later releases ---

template <class Message, class Wire>
static absl::StatusOr<std::optional<Message>> FromStream(const Wire& from, MessageStream stream) {
  if (from.message_case() != 0) return FromWire(from);
  CountIgnored(stream);
  return std::nullopt;
}

absl::StatusOr<std::optional<ClientUp>> FromStream(const wire::ClientUp& from) {
  return FromStream<ClientUp>(from, MessageStream::kClientUp);
}
absl::StatusOr<std::optional<ClientDown>> FromStream(const wire::ClientDown& from) {
  return FromStream<ClientDown>(from, MessageStream::kClientDown);
}
absl::StatusOr<std::optional<WorkerUp>> FromStream(const wire::WorkerUp& from) {
  return FromStream<WorkerUp>(from, MessageStream::kWorkerUp);
}
absl::StatusOr<std::optional<WorkerDown>> FromStream(const wire::WorkerDown& from) {
  return FromStream<WorkerDown>(from, MessageStream::kWorkerDown);
}

}  // namespace penstock::control
