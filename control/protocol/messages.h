// SPDX-License-Identifier: Apache-2.0
// The messages between the parties of one iteration, as plain values. client_messages.h and
// worker_messages.h have the messages on the wire: some are defined in this file, others add the
// iteration, tokens, addresses and definitions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "control/protocol/iteration_record.h"

namespace penstock::protocol {

// --- Client → dispatcher ---------------------------------------------------------

// The first message on every stream. A restarted process reports the contents of the state that it
// resumed from (empty if it found none) until it has been welcomed. A process that only lost its
// stream reports no state.
struct Connect {
  ClientId client;
  Incarnation incarnation;
  std::optional<ReceivedSets> state;
  int64_t consumer = -1;  // its number, if each element belongs to a consumer from the start
  int64_t round = 0;      // the first round that `state` does not contain
};

// Reports a client's elements of a partition: the answer to a fence, and the report between fences.
// Contains everything that is new since the client last connected. Created by Receiver.
struct Report {
  PartitionId partition;
  Placement placement;  // the lowest that the client accepts
  IndexSet delivered;   // returned by the outermost Next()
  IndexSet received;    // not delivered yet
  // Reported as received, now or earlier, and still held by nodes after Distribute.
  IndexSet handed = {};
  // Received, not delivered, and given back: the client no longer has these.
  IndexSet returned = {};
  // The first report since it connected: the client has nothing else.
  bool whole = false;
  friend bool operator==(const Report&, const Report&) = default;
};

// An error that was received in place of an element.
struct RoundError {
  PartitionRow at;
  std::string message;
  int32_t code = 0;  // absl::StatusCode
  friend bool operator==(const RoundError&, const RoundError&) = default;
};
// Sent by a consumer of a coordinated read, after its reports.
struct RoundsReport {
  int64_t delivered = 0;           // rounds
  int64_t known = 0;               // rounds that it knows to be agreed on
  int64_t receive_budget = 0;      // received but undelivered elements it will hold; 0: unknown
  std::vector<RoundError> errors;  // all received errors of rounds that may still be asked about
  friend bool operator==(const RoundsReport&, const RoundsReport&) = default;
};

struct Commit {
  int64_t number;
  ReceivedSets committed;  // all that the state contains
};

struct Leave {
  ReceivedSets delivered;  // final; a state may report them again if some are not committed
};

// --- Dispatcher → client ---------------------------------------------------------

struct Placed {
  PartitionId partition;
  Placement placement;
};

// The session is open. The client accepts nothing below these placements.
struct Welcome {
  ClientId client;
  Incarnation incarnation;
  std::vector<Placed> placements;  // all partitions
};

enum class Refusal : uint8_t {
  kDeclaredDead,   // FailedPrecondition: its elements went to others
  kStateIsNewer,   // declared dead meanwhile; the state has elements that were never committed
  kStateIsOlder,   // the state lacks committed elements
  kReplaced,       // another process has resumed the session
  kFinished,       // the iteration is over and the state is not the last one
  kConsumerTaken,  // another process reads under that consumer_index
  kRoundsBegan,    // no state, and rounds have been given out
};
struct Refused {
  ClientId client;
  Incarnation incarnation;
  Refusal why;
};

// A message to a welcomed process, over its stream only. It is dropped if it cannot reach that
// incarnation.
template <class Payload>
struct ToClient : Payload {
  ClientId client;
  Incarnation incarnation;
};

// From now on the client accepts nothing below `placement`. In the same step it records the
// elements that it has, and it reports them. Repeated until answered.
struct Fence {
  PartitionId partition;
  Placement placement;
  // Another reader waits for elements that this one has received but not delivered.
  bool give_back = false;
  friend bool operator==(const Fence&, const Fence&) = default;
};
// No new element will arrive. The session ends when all received elements are delivered.
struct End {
  int64_t rounds = 0;    // of a coordinated read: the number of all rounds
  int64_t elements = 0;  // in all partitions, for all clients; added where it is sent
  friend bool operator==(const End&, const End&) = default;
};
// Rounds for which every consumer has received its element, and which may therefore be returned. A
// consumer that already knows some of them continues after those.
struct Agreed {
  struct Round {
    std::optional<PartitionRow> row;  // nullopt: the last round is not filled and has none
    bool unfilled = false;            // a last round that lacks elements: dropped, or an error
    bool pad = false;                 // a copy that fills up the last round
    std::optional<RoundError> error;  // of any consumer
    int64_t consumer = -1;            // the consumer that had the error
    friend bool operator==(const Round&, const Round&) = default;
  };
  int64_t first = 0;  // the number of rounds[0]
  std::vector<Round> rounds;
  // Why no more rounds are agreed on; empty: nothing blocks them. Consumers of order kDeterministic
  // get only this.
  std::string waits_for;
  friend bool operator==(const Agreed&, const Agreed&) = default;
};
// Answers Commit.
struct Committed {
  int64_t number = 0;
  friend bool operator==(const Committed&, const Committed&) = default;
};
// Answers Leave.
struct Left {
  friend bool operator==(const Left&, const Left&) = default;
};

// --- Dispatcher → worker ---------------------------------------------------------

// A client's session that a worker may serve.
struct Reader {
  ClientId client;
  Incarnation incarnation;
  int64_t consumer = -1;  // its number in a coordinated read; not part of its identity
  friend auto operator<=>(const Reader& a, const Reader& b) {
    return std::tie(a.client, a.incarnation) <=> std::tie(b.client, b.incarnation);
  }
  friend bool operator==(const Reader& a, const Reader& b) { return (a <=> b) == 0; }
};
using Readers = absl::InlinedVector<Reader, 2>;

// The worker replays `partition` from `bookmark` (or its beginning). It sends each index outside
// `skip` once, to one of these readers.
struct Assign {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  IndexSet skip;
  std::optional<Bookmark> bookmark;
  Readers readers;
  int64_t rows = 0;                    // how many may be sent so far, in a coordinated read
  std::optional<Remainder> remainder;  // once it is known
  std::optional<Positions> positions;  // order kDeterministic: which consumer an element is for
  // An element that is produced but sent to no reader, because pads are copies of it. It is not in
  // `skip`.
  std::optional<Index> copied;
};
struct AddReader {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  Reader reader;
};
// There is no RemoveReader: when a reader leaves, the partition is placed again.

// Allows more rows. `remainder`: the partition ends, and its last elements are sent by this rule.
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

// Messages to one receiver must be sent in this order.
using Message =
    std::variant<Welcome, Refused, ToClient<Fence>, ToClient<End>, ToClient<Committed>,
                 ToClient<Left>, Assign, AddReader, Unassign, ToClient<Agreed>, AllowRows>;

// --- Worker → dispatcher ---------------------------------------------------------

// A placement that a worker still has when it registers again. The worker then repeats Ended and
// its newest bookmark.
struct HeldPlacement {
  PartitionId partition;
  Placement placement;
};

}  // namespace penstock::protocol
