// SPDX-License-Identifier: Apache-2.0
// The messages between the dispatcher and a client, as plain values. Messages about one iteration
// alone are in messages.h. Their order: docs/protocol.md; why they suffice: docs/exactly_once.md.
//
// A worker and each client session have one stream to the dispatcher. "Up" messages go to the
// dispatcher, "down" messages come from it. Every message may be lost with its stream. A peer that
// reconnects sends a hello and is sent the current state again, so each message is safe to repeat.
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
  JobId job;
  int64_t repetition = 0;
  ClientId client;
  Incarnation incarnation;
  // For a restarted process: the elements of this repetition in the state that it resumed from
  // (none if the repetition is later). Ignored once this incarnation has been welcomed, because it
  // has more by then.
  std::optional<std::vector<PartitionIndices>> state;
  Incarnation process;    // of the client; tells which workers are in the same process
  int64_t consumer = -1;  // its number, if each element belongs to a consumer from the start
  int64_t round = 0;      // the first round that `state` does not contain
  std::string token;      // of the job; in another life a different job may have its number
  Heard heard;            // by this session, or by the session that saved its state
  VersionRange version;
  friend bool operator==(const ClientHello&, const ClientHello&) = default;
};

// The row that a consumer of a coordinated read returned in one of its steps.
struct StepMark {
  int64_t step = 0;
  protocol::PartitionRow row;
  friend bool operator==(const StepMark&, const StepMark&) = default;
};

// Sent at the interval of Welcome, and answered. The session's lease runs from the moment when the
// last answered heartbeat was *sent*.
struct ClientHeartbeat {
  uint64_t counter = 0;
  std::vector<LinkCounts> links;  // to all workers so far
  bool at_quota = false;          // held back by its share of the quota since the last heartbeat
  StepCounts steps;
  std::vector<StepMark> marks = {};  // of some steps, to compare with other consumers'
  friend bool operator==(const ClientHeartbeat&, const ClientHeartbeat&) = default;
};

// Answers Fence: from now on the client accepts no element below `placement`.
struct FenceAnswer {
  PartitionReport report;
  friend bool operator==(const FenceAnswer&, const FenceAnswer&) = default;
};

// Reports everything that is new since the last report. Sent with heartbeats, and at once after
// ReportAtOnce. After each Welcome everything is new, so the report names all partitions.
struct Report {
  std::vector<PartitionReport> partitions;
  // From a consumer of a coordinated read, which reports each received element at once.
  std::optional<protocol::RoundsReport> rounds;
  // Next() waits, and nothing is left that it could return.
  bool waits = false;
  friend bool operator==(const Report&, const Report&) = default;
};

// A state is durable at the trainer. Covers all repetitions that the state contains, committed in
// one step, over the stream of any of them. A restarted process has sent a ClientHello for each of
// them before. Answered by Committed.
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

// The process ends on purpose; the elements delivered to it are committed. Answered by Left. Under
// AckMode::kOnCommit only its states are committed, and another process may join with a newer state
// until client_timeout has passed.
struct Leave {
  std::vector<PartitionIndices> delivered;
  friend bool operator==(const Leave&, const Leave&) = default;
};

// For order kDeterministic: this reader has no room yet for elements of a partition at or after
// `below`, so they must not be sent. Numbers only grow; all are sent again after each Welcome.
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

// Answers ClientHello. A Membership follows.
struct Welcome {
  IterationId iteration;
  Life life;
  std::string token;
  uint64_t seed = 0;
  JobTerms terms;
  absl::Duration heartbeat_interval;
  absl::Duration lease;           // client_timeout
  std::vector<Fence> placements;  // all partitions: accept nothing below
  // For order kDeterministic: where it begins (protocol::Positions::first), and by partition the
  // indices that are already in a history; for a consumer, its rows.
  Index first = 0;
  std::vector<IndexSet> passed;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct ClientHeartbeatAnswer {
  uint64_t counter = 0;
  friend bool operator==(const ClientHeartbeatAnswer&, const ClientHeartbeatAnswer&) = default;
};

// All partitions and their workers. Sent in full at each change.
struct Membership {
  struct Partition {
    PartitionId partition;
    Placement placement;
    WorkerId worker;  // none while it moves, waits for a worker, or is closed
    // For order kDeterministic: its number of elements, once it has ended.
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
  uint64_t version = 0;  // grows within a term
  std::vector<Partition> partitions;
  std::vector<Worker> workers;
  bool closed = false;  // all is read: no partition waits for a worker
  // The maximum total size of the elements that this client may have requested or hold: its share
  // of the job's quota in bytes; 0: no bound.
  int64_t max_bytes_in_flight = 0;
  friend bool operator==(const Membership&, const Membership&) = default;
};

// The last split has been given out: report each change at once from now on.
struct ReportAtOnce {
  friend bool operator==(const ReportAtOnce&, const ReportAtOnce&) = default;
};

using protocol::Agreed;  // under order kDeterministic without rounds
using protocol::Committed;
using protocol::End;
using protocol::Left;

// The consumers of the same coordinated read that are no longer heard from. Sent in full at each
// change, to all other consumers.
struct ConsumersLost {
  struct Consumer {
    int64_t consumer = 0;
    absl::Duration silent;  // since it was last heard from
    bool dead = false;      // declared dead; else suspected, perhaps only late
    std::string why;        // "its connection to the dispatcher ended"
    bool ended = false;     // its connection ended; else it was silent
    friend bool operator==(const Consumer&, const Consumer&) = default;
  };
  std::vector<Consumer> consumers;
  friend bool operator==(const ConsumersLost&, const ConsumersLost&) = default;
};

// Reading cannot continue: job cancelled, session declared dead, state refused, pipeline broken.
// The stream then closes; do not reconnect.
struct SessionError {
  absl::Status status;
  friend bool operator==(const SessionError&, const SessionError&) = default;
};

using ClientDown = std::variant<Welcome, ClientHeartbeatAnswer, Membership, Fence, ReportAtOnce,
                                Committed, End, Left, SessionError, Agreed, ConsumersLost>;

}  // namespace penstock::control
