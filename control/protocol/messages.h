// SPDX-License-Identifier: Apache-2.0
// What the parties of one iteration say to each other about it, as plain
// values. The iteration itself, tokens, addresses and definitions are added
// where messages are put on the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "control/protocol/iteration_record.h"

namespace penstock::protocol {

// --- Client → dispatcher ---------------------------------------------------------

// First on every stream. A restarted process names the state it took up (empty
// if it found none) until it is welcomed; a process that merely lost its stream
// names none.
struct Connect {
  ClientId client;
  Incarnation incarnation;
  std::optional<ReceivedSets> state;
  int64_t consumer = -1;  // its number, where elements are some consumer's from the start
  int64_t round = 0;      // the first that `state` does not contain
};

// What a client has: the answer to a fence, and the report between fences. Only
// what is new since it last connected; the first names all. FenceAnswer
// and Report of the wire are both this.
struct Report {
  PartitionId partition;
  Placement placement;  // the lowest it accepts
  IndexSet delivered;
  IndexSet received;  // not delivered yet
  // Of what was received, now or in an earlier report: with nodes behind Distribute, not given
  // it on.
  IndexSet handed = {};
  // Received, not delivered, and given back: it has them no more.
  IndexSet returned = {};
  // The first since it connected: it has nothing but what this names.
  bool whole = false;
};

// An error that was received in the place of an element.
struct RoundError {
  PartitionRow at;
  std::string message;
  int32_t code = 0;  // absl::StatusCode
  friend bool operator==(const RoundError&, const RoundError&) = default;
};
// Of a consumer of a coordinated read, behind its reports.
struct RoundsReport {
  int64_t delivered = 0;           // rounds
  int64_t known = 0;               // rounds that it knows to be agreed on
  int64_t receive_budget = 0;      // elements it will hold, received and not delivered; 0: not said
  std::vector<RoundError> errors;  // all received in rounds it may still be asked about
  friend bool operator==(const RoundsReport&, const RoundsReport&) = default;
};

struct Commit {
  int64_t number;
  ReceivedSets committed;  // all that the state contains
};

struct Leave {
  ReceivedSets delivered;  // final; may come back in a state if some are not committed
};

// --- Dispatcher → client ---------------------------------------------------------

struct Placed {
  PartitionId partition;
  Placement placement;
};

// The session is in force; accept nothing below these placements.
struct Welcome {
  ClientId client;
  Incarnation incarnation;
  std::vector<Placed> placements;  // all partitions
};

enum class Refusal : uint8_t {
  kDeclaredDead,   // FailedPrecondition: its elements went to others
  kStateIsNewer,   // declared dead meanwhile; contains what was never committed
  kStateIsOlder,   // lacks what was committed
  kReplaced,       // another process has resumed the session
  kFinished,       // the iteration is over and the state is not the last one
  kConsumerTaken,  // another process reads under that consumer_index
  kRoundsBegan,    // without a state, where rounds have been given out
};
struct Refused {
  ClientId client;
  Incarnation incarnation;
  Refusal why;
};

// The rest goes to a welcomed process, over its stream alone: what cannot reach
// that incarnation is dropped.

// Accept nothing below `placement` from now on, and say what you have.
struct Fence {
  ClientId client;
  PartitionId partition;
  Placement placement;
  Incarnation incarnation;
  bool give_back = false;  // others wait for what you received and did not deliver
};
// Nothing will come that was not received yet.
struct End {
  ClientId client;
  Incarnation incarnation;
  int64_t rounds = 0;  // of a coordinated read: how many there are
};
// All consumers have received theirs of these rounds, which may be returned. A consumer
// that has heard of some before goes on behind them.
struct Agreed {
  struct Round {
    std::optional<PartitionRow> row;  // nullopt: a last round that is not filled has none
    bool unfilled = false;            // a last round that lacks elements: dropped, or an error
    bool pad = false;                 // a copy that fills up the last round
    std::optional<RoundError> error;  // some consumer's
    int64_t consumer = -1;            // whose error
    friend bool operator==(const Round&, const Round&) = default;
  };
  ClientId client;
  Incarnation incarnation;
  int64_t first = 0;  // the number of rounds[0]
  std::vector<Round> rounds;
  // Why no more are agreed on; empty: nothing blocks them. Consumers of order kDeterministic hear
  // nothing else.
  std::string waits_for;
};
struct CommitDone {
  ClientId client;
  int64_t number;
  Incarnation incarnation;
};
struct LeaveDone {
  ClientId client;
  Incarnation incarnation;
};

// --- Dispatcher → worker ---------------------------------------------------------

struct Reader {
  ClientId client;
  Incarnation incarnation;
  int64_t consumer = -1;
  friend bool operator==(const Reader&, const Reader&) = default;
};
using Readers = absl::InlinedVector<Reader, 2>;

// Replay `partition` from `bookmark` (or its beginning) and send what lies
// outside `skip`, each index once, to these readers and no others.
struct Assign {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  IndexSet skip;
  std::optional<Bookmark> bookmark;
  Readers readers;
  int64_t rows = 0;                    // that may be sent so far, in a coordinated read
  std::optional<Remainder> remainder;  // once it is known
  std::optional<Positions> positions;  // of order kDeterministic: whose an element is
  // Made, though it is sent to nobody: pads are copies of it. Not in `skip`.
  std::optional<Index> copied;
};
struct AddReader {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  Reader reader;
};
// There is no RemoveReader: whenever a reader goes, the partition is placed anew.
// More rows may be sent; `remainder`: the partition ends, and its last elements go this way.
struct AllowRows {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  int64_t rows = 0;
  std::optional<Remainder> remainder;
};
struct Unassign {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
};

// In the order in which they must be sent to one receiver.
using Message = std::variant<Welcome, Refused, Fence, End, CommitDone, LeaveDone, Assign, AddReader,
                             Unassign, Agreed, AllowRows>;

// --- Worker → dispatcher ---------------------------------------------------------

// A placement that a worker still has when it registers (again). It then says
// Ended and its newest bookmark anew.
struct HeldPlacement {
  PartitionId partition;
  Placement placement;
};

}  // namespace penstock::protocol
