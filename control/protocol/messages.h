// SPDX-License-Identifier: Apache-2.0
// What the parties of one iteration say to each other about it, as plain
// values. The iteration itself, tokens, addresses and definitions are added
// where messages are put on the wire.
#pragma once

#include <cstdint>
#include <optional>
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
};

// What a client has: the answer to a fence, and the report between fences. Only
// what is new since it last presented itself; the first names all. FenceAnswer
// and Report of the wire are both this.
struct Report {
  PartitionId partition;
  Placement placement;  // the lowest it accepts
  IndexSet taken;
  IndexSet landed;  // not taken yet
};

struct Commit {
  int64_t number;
  Holdings kept;  // all that the state contains
};

struct Leave {
  Holdings taken;  // final
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
  kDeclaredDead,  // FailedPrecondition: its elements went to others
  kStateIsNewer,  // declared dead meanwhile; contains what was never committed
  kStateIsOlder,  // lacks what was committed
  kReplaced,      // another process has taken up the session
  kFinished,      // the iteration is over and the state is not the last one
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
};
// Nothing will come that has not landed.
struct End {
  ClientId client;
  Incarnation incarnation;
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
};
struct AddReader {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  Reader reader;
};
// There is no RemoveReader: whenever a reader goes, the partition is placed anew.
struct Unassign {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
};

// In the order in which they must be sent to one receiver.
using Message =
    std::variant<Welcome, Refused, Fence, End, CommitDone, LeaveDone, Assign, AddReader, Unassign>;

// --- Worker → dispatcher ---------------------------------------------------------

// A placement that a worker still has when it registers (again). It then says
// Ended and its newest bookmark anew.
struct Held {
  PartitionId partition;
  Placement placement;
};

}  // namespace penstock::protocol
