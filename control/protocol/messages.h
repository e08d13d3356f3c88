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
struct Presents {
  ClientId client;
  Incarnation incarnation;
  std::optional<Holdings> state;
  int64_t consumer = -1;  // its number, where elements are some consumer's from the start
  int64_t round = 0;      // the first that `state` does not contain
};

// What a client has: the answer to a fence, and the report between fences. Only
// what is new since it last presented itself; the first names all. FenceAnswer
// and Report of the wire are both this.
struct Report {
  PartitionId partition;
  Placement placement;  // the lowest it accepts
  IndexSet taken;
  IndexSet landed;  // not taken yet
  // Of what landed, here or in an earlier report: with nodes behind Distribute, that have not given
  // it on.
  IndexSet handed = {};
  // Landed, not taken, and given back: it has them no more.
  IndexSet returned = {};
  // The first since it presented itself: it has nothing but what this names.
  bool whole = false;
};

// An error that landed in the place of an element.
struct RoundError {
  TurnOf at;
  std::string message;
  int32_t code = 0;  // absl::StatusCode
  friend bool operator==(const RoundError&, const RoundError&) = default;
};
// Of a consumer of a coordinated read, behind its reports.
struct RoundsReport {
  int64_t taken = 0;  // rounds
  int64_t heard = 0;  // rounds that it knows to be agreed on
  int64_t room = 0;   // elements that it will hold, landed and not taken; 0: it does not say
  std::vector<RoundError> errors;  // all that landed in rounds it may still be asked about
  friend bool operator==(const RoundsReport&, const RoundsReport&) = default;
};

struct Commit {
  int64_t number;
  Holdings kept;  // all that the state contains
};

struct Leave {
  Holdings taken;  // final; may come back in a state, where it contains what is not kept
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
  kReplaced,       // another process has taken up the session
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
  bool give_back = false;  // others wait for what you landed and do not take
};
// Nothing will come that has not landed.
struct End {
  ClientId client;
  Incarnation incarnation;
  int64_t rounds = 0;  // of a coordinated read: how many there are
};
// All consumers have landed theirs of these rounds, which may be returned. A consumer
// that has heard of some before goes on behind them.
struct Agreed {
  struct Round {
    std::optional<TurnOf> turn;       // nullopt: a last round that is not filled has none for it
    bool rest = false;                // a last round that lacks elements: dropped, or an error
    bool pad = false;                 // a copy that fills up the last round
    std::optional<RoundError> error;  // some consumer's
    int64_t consumer = -1;            // whose error
    friend bool operator==(const Round&, const Round&) = default;
  };
  ClientId client;
  Incarnation incarnation;
  int64_t first = 0;  // the number of rounds[0]
  std::vector<Round> rounds;
  // Why no more are agreed on; empty: nothing hinders. Consumers of order kDeterministic hear
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
  int64_t turns = 0;               // that may be sent so far, in a coordinated read
  std::optional<RestOf> rest;      // once it is known
  std::optional<Positions> dealt;  // of order kDeterministic: whose an element is
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
// More turns may be sent; `rest`: the partition ends, and so goes what is left of it.
struct AllowTurns {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  int64_t turns = 0;
  std::optional<RestOf> rest;
};
struct Unassign {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
};

// In the order in which they must be sent to one receiver.
using Message = std::variant<Welcome, Refused, Fence, End, CommitDone, LeaveDone, Assign, AddReader,
                             Unassign, Agreed, AllowTurns>;

// --- Worker → dispatcher ---------------------------------------------------------

// A placement that a worker still has when it registers (again). It then says
// Ended and its newest bookmark anew.
struct Held {
  PartitionId partition;
  Placement placement;
};

}  // namespace penstock::protocol
