// SPDX-License-Identifier: Apache-2.0
// The messages between the dispatcher and a client, as plain values. Messages that concern only one
// iteration are in messages.h. docs/protocol.md describes the order of messages, and
// docs/exactly_once.md explains why these messages suffice.
//
// A worker and each client session have one stream to the dispatcher. "Up" messages go to the
// dispatcher, and "down" messages come from it. Every message may be lost with its stream. A peer
// that reconnects sends a hello and is sent the current state again, so each message is safe to
// repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/protocol/index_set.h"
#include "control/protocol/job_terms.h"
#include "control/protocol/lives.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/messages.h"
#include "penstock/ids.h"

namespace penstock::control {

// --- Up ------------------------------------------------------------------------------

// The first message of every stream of a session. The client draws its id at random when its first
// session starts, and keeps it in its states.
struct ClientHello {
  struct OfRepetition {
    int64_t repetition = 0;
    std::vector<PartitionIndices> state;
    friend bool operator==(const OfRepetition&, const OfRepetition&) = default;
  };
  JobId job;
  int64_t repetition = 0;
  ClientId client;
  Incarnation incarnation;
  // For a restarted process: the elements of this repetition that are in the state from which it
  // resumed (none if the repetition is later than the state). Ignored once this incarnation has
  // been welcomed, because it has more elements by then.
  std::optional<std::vector<PartitionIndices>> state;
  Incarnation process;    // the client's process; shows which workers are in the same process
  int64_t consumer = -1;  // its number, if each element belongs to a consumer from the start
  int64_t round = 0;      // the first round that `state` does not contain
  std::string token;      // the job's; in another life, a different job may have the same id
  Heard heard;            // heard by this session, or by the session that saved its state
  VersionRange version;
  std::string release = {};  // "0.9.0"; empty: a release that does not say it
  // The other repetitions in the state of a restarted process. A state is resumed whole or not at
  // all: the dispatcher refuses this hello if it would refuse that of another repetition.
  std::vector<OfRepetition> others = {};
  friend bool operator==(const ClientHello&, const ClientHello&) = default;
};

// The row that a consumer of a coordinated read returned in one of its steps.
struct StepMark {
  int64_t step = 0;
  protocol::PartitionRow row;
  friend bool operator==(const StepMark&, const StepMark&) = default;
};

// The first control version in which heartbeats may name only the changed links. An earlier
// dispatcher takes them for all links.
inline constexpr uint32_t kFirstWithChangedLinks = 3;

// Sent at the interval given in Welcome. Each heartbeat is answered. The session's lease runs from
// the time at which the last answered heartbeat was *sent*.
struct ClientHeartbeat {
  uint64_t counter = 0;
  // The session's links, each with its counts so far. The first heartbeat on a stream has all of
  // them.
  std::vector<LinkCounts> links;
  bool at_quota = false;  // held back by its share of the quota since the last heartbeat
  StepCounts steps;
  std::vector<StepMark> marks = {};  // of some steps, to compare with those of other consumers
  // True: `links` has only the links that have changed since the previous heartbeat on this stream,
  // and all others are as they were, except `gone_links`, which the session no longer has. A link
  // in both lists was forgotten and began again. False in control versions before
  // kFirstWithChangedLinks.
  bool only_changed_links = false;
  std::vector<WorkerId> gone_links = {};
  friend bool operator==(const ClientHeartbeat&, const ClientHeartbeat&) = default;
};

// Answers Fence: from now on the client accepts no element under a placement below `placement`.
struct FenceAnswer {
  PartitionReport report;
  friend bool operator==(const FenceAnswer&, const FenceAnswer&) = default;
};

// Reports all changes since the last report. Sent with heartbeats, and at once after ReportAtOnce.
// After each Welcome all elements count as changes, so the report names the partitions that Welcome
// names, and those of which the client has elements.
struct Report {
  std::vector<PartitionReport> partitions;
  // Sent by a consumer of a coordinated read, which reports each received element at once.
  std::optional<protocol::RoundsReport> rounds;
  // Sent when Next() waits and the client has no element that it could return.
  bool waits = false;
  // Sent with the first report after a partial Welcome, even if that names no partition: the client
  // has no elements of other partitions than those that it has reported on this stream.
  bool complete = false;
  friend bool operator==(const Report&, const Report&) = default;
};

// Sent when a state is durable at the trainer. Commits all repetitions that the state contains, in
// one step. It may be sent on the stream of any of these repetitions. A restarted process must
// first have sent a ClientHello for each of them. Answered by Committed.
struct Commit {
  struct OfRepetition {
    int64_t repetition = 0;
    std::vector<PartitionIndices> committed;
    friend bool operator==(const OfRepetition&, const OfRepetition&) = default;
  };
  int64_t number = 0;  // greater than that of any earlier commit of this client
  std::vector<OfRepetition> repetitions;
  friend bool operator==(const Commit&, const Commit&) = default;
};

// Sent when the process ends on purpose. The elements delivered to it are then committed. Under
// AckMode::kOnCommit, only the elements in its committed states are committed, and another process
// may join with a newer state until client_timeout has passed. Answered by Left.
struct Leave {
  std::vector<PartitionIndices> delivered;
  friend bool operator==(const Leave&, const Leave&) = default;
};

// For order kDeterministic: this reader cannot hold elements of a partition at or after `below`
// yet, so they must not be sent. The limits only grow. All limits are sent again after each
// Welcome.
struct ReceiveLimit {
  struct OfPartition {
    PartitionId partition;
    Index below = 0;
    friend bool operator==(const OfPartition&, const OfPartition&) = default;
  };
  std::vector<OfPartition> partitions;
  friend bool operator==(const ReceiveLimit&, const ReceiveLimit&) = default;
};

using ClientUp =
    std::variant<ClientHello, ClientHeartbeat, FenceAnswer, Report, Commit, Leave, ReceiveLimit>;

// --- Down ----------------------------------------------------------------------------

using protocol::Fence;

// The first control version in which a Welcome may be partial. An earlier client would not say that
// its reports are complete.
inline constexpr uint32_t kFirstWithPartialWelcomes = 4;

// Answers ClientHello. A Membership follows.
struct Welcome {
  IterationId iteration;
  Life life;
  std::string token;
  uint64_t seed = 0;
  JobTerms terms;
  absl::Duration heartbeat_interval;
  absl::Duration lease;  // client_timeout
  // The client accepts no lower placements. Names all partitions, unless `partial` is set.
  std::vector<Fence> placements;
  // For order kDeterministic: the position at which the order begins (protocol::Positions::first),
  // and by partition the indices that are already in a history. For a consumer, `passed` contains
  // the consumer's rows instead.
  Index first = 0;
  std::vector<IndexSet> passed;
  uint32_t version = 0;  // of the control protocol, which both sides use; 0: the lowest
  // `placements` has only the partitions that may send to this client, and those of which the
  // dispatcher waits for the client's answer. False in control versions before
  // kFirstWithPartialWelcomes.
  bool partial = false;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct ClientHeartbeatAnswer {
  uint64_t counter = 0;
  friend bool operator==(const ClientHeartbeatAnswer&, const ClientHeartbeatAnswer&) = default;
};

// The partitions of the iteration that serve this client, and their workers: whole after each
// Welcome, then what has changed. A partition that serves other clients only (rule 32) is named
// only if it served this one before, without its worker. A worker without a partition is not part
// of it. MembershipView (control/stub) puts the messages together.
struct Membership {
  struct Partition {
    PartitionId partition;
    Placement placement;
    WorkerId worker;  // none while it moves, waits for a worker, is closed, or serves only others
    // For order kDeterministic: the partition's number of elements, once it has ended.
    std::optional<Index> end = std::nullopt;
    friend bool operator==(const Partition&, const Partition&) = default;
  };
  struct Worker {
    WorkerId worker;
    std::string address;
    std::vector<TransferOffer> offers;
    std::vector<std::string> tags;
    Incarnation process;
    friend bool operator==(const Worker&, const Worker&) = default;
  };
  uint64_t version = 0;               // grows within a term
  std::vector<Partition> partitions;  // in ascending order
  // All workers that have a partition. In a change: at least the workers of its partitions, and the
  // workers whose record has changed.
  std::vector<Worker> workers;
  bool closed = false;  // all elements are read: no partition waits for a worker
  // The maximum total size, in bytes, of the elements that this client requests or holds. This is
  // its share of the job's quota; 0: no bound.
  int64_t max_bytes_in_flight = 0;
  // 0: this is the whole. Otherwise `partitions` and `workers` have only what has changed since
  // this version, which is the version of the last Membership on this stream.
  uint64_t since = 0;
  uint64_t num_partitions = 0;  // of the iteration, also those that do not serve this client
  friend bool operator==(const Membership&, const Membership&) = default;
};

// Sent when the last split has been given out. From now on, report each change at once.
struct ReportAtOnce {
  friend bool operator==(const ReportAtOnce&, const ReportAtOnce&) = default;
};

using protocol::Agreed;  // in order kDeterministic it contains no rounds
using protocol::Committed;
using protocol::End;
using protocol::Left;

// The consumers of a coordinated read that are no longer heard from. Sent in full at each change,
// to all other consumers of the read.
struct ConsumersLost {
  struct Consumer {
    int64_t consumer = 0;
    absl::Duration silent;  // since it was last heard from
    bool dead = false;      // declared dead; otherwise suspected, perhaps only late
    std::string why;        // "its connection to the dispatcher ended"
    bool ended = false;     // its connection ended; otherwise it was silent
    friend bool operator==(const Consumer&, const Consumer&) = default;
  };
  std::vector<Consumer> consumers;
  friend bool operator==(const ConsumersLost&, const ConsumersLost&) = default;
};

// Sent when reading cannot continue, because the job was cancelled, the session was declared dead,
// the state was refused, or the pipeline is broken. The stream then closes. Do not reconnect.
struct SessionError {
  absl::Status status;
  // The life of the dispatcher that refuses. nullopt if its port refused, or if its release is
  // older.
  std::optional<Life> life = {};
  friend bool operator==(const SessionError&, const SessionError&) = default;
};

using ClientDown = std::variant<Welcome, ClientHeartbeatAnswer, Membership, Fence, ReportAtOnce,
                                Committed, End, Left, SessionError, Agreed, ConsumersLost>;

}  // namespace penstock::control
