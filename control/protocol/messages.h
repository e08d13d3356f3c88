// SPDX-License-Identifier: Apache-2.0
// The messages between the parties of one iteration, as plain values. client_messages.h and
// worker_messages.h have the messages on the wire. Some of these are defined in this file; others
// add the iteration, tokens, addresses and definitions.
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

// The first message on every stream. Until a restarted process has been welcomed, it reports the
// contents of the state from which it resumed (empty if it found none). A process that only lost
// its stream reports no state.
struct Connect {
  ClientId client;
  Incarnation incarnation;
  std::optional<ReceivedSets> state;
  int64_t consumer = -1;  // its number, if each element belongs to a consumer from the start
  int64_t round = 0;      // the first round that `state` does not contain
  // The client reports all elements that it has, also of partitions that its Welcome does not name,
  // and then says that it is complete. Not set in order kDeterministic, which the record of an
  // iteration without consumers does not show.
  bool reports_all = false;
};

// Reports a client's elements of a partition. Sent as the answer to a fence, and between fences.
// Contains all changes since the client last connected. Made by Receiver.
struct Report {
  PartitionId partition;
  Placement placement;  // the lowest placement that the client accepts
  IndexSet delivered;   // returned by the outermost Next()
  IndexSet received;    // not delivered yet
  // Reported as received, now or earlier, and still held by nodes after Distribute.
  IndexSet handed = {};
  // Received, not delivered, and given back: the client no longer has these.
  IndexSet returned = {};
  // The client has no other elements of the partition. Set in the first report on a stream of each
  // partition that the stream's Welcome names, or of which the client had elements before. After a
  // partial Welcome, until the client is complete, the first report of any other partition counts
  // as whole too.
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
  int64_t receive_budget = 0;      // undelivered elements that it will hold; 0: unknown
  std::vector<RoundError> errors;  // all received errors of rounds not yet delivered to all
  friend bool operator==(const RoundsReport&, const RoundsReport&) = default;
};

struct Commit {
  int64_t number;
  ReceivedSets committed;  // all that the state contains
};

struct Leave {
  ReceivedSets delivered;  // final; a later state may contain those that are not committed
};

// --- Dispatcher → client ---------------------------------------------------------

struct Placed {
  PartitionId partition;
  Placement placement;
};

// The session is open. The client accepts no elements under placements below those in `placements`.
struct Welcome {
  ClientId client;
  Incarnation incarnation;
  std::vector<Placed> placements;  // all partitions, unless `partial`
  bool partial = false;  // names only the partitions that may send to this reader, or that ask it
};

enum class Refusal : uint8_t {
  kDeclaredDead,   // FailedPrecondition: its elements went to other clients
  kStateIsNewer,   // the client was declared dead, and its state has uncommitted elements
  kStateIsOlder,   // the state lacks committed elements
  kReplaced,       // another process has resumed the session
  kFinished,       // the iteration is over and the state is not the last one
  kConsumerTaken,  // another client reads under this consumer_index
  kRoundsBegan,    // the client has no state, but rounds have been given out
};
struct Refused {
  ClientId client;
  Incarnation incarnation;
  Refusal why;
};

// A message to one welcomed incarnation of a client. It is sent only on the stream of this
// incarnation, and dropped if there is no such stream.
template <class Payload>
struct ToClient : Payload {
  ClientId client;
  Incarnation incarnation;
};

// From now on the client accepts no element under a placement below `placement`. In the same step
// the client records the elements that it has, and then it reports them. Repeated until answered.
struct Fence {
  PartitionId partition;
  Placement placement;
  // Another reader waits for elements that this reader has received but not delivered.
  bool give_back = false;
  friend bool operator==(const Fence&, const Fence&) = default;
};
// No new element will arrive. The session ends when all received elements are delivered.
struct End {
  int64_t rounds = 0;    // of a coordinated read: the number of all rounds
  int64_t elements = 0;  // in all partitions, for all clients; added where it is sent
  friend bool operator==(const End&, const End&) = default;
};
// Rounds for which every consumer has received its element. Next() may therefore return their
// elements. A consumer that already knows some of these rounds ignores those.
struct Agreed {
  struct Round {
    std::optional<PartitionRow> row;  // nullopt: this consumer lacks one, in a last round that is
                                      // not filled
    bool unfilled = false;            // the last round lacks elements: it is dropped or is an error
    bool pad = false;                 // a copy that fills up the last round
    std::optional<RoundError> error;  // of any consumer
    int64_t consumer = -1;            // the consumer that had the error
    friend bool operator==(const Round&, const Round&) = default;
  };
  int64_t first = 0;  // the number of rounds[0]
  std::vector<Round> rounds;
  // The reason for which no more rounds are agreed on; empty if nothing blocks them. For consumers
  // of order kDeterministic, only this field is set.
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

// The worker replays `partition` from `bookmark` or, without one, from the beginning. It sends each
// index outside `skip` once, to one of `readers`.
struct Assign {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  IndexSet skip;
  std::optional<Bookmark> bookmark;
  Readers readers;
  int64_t rows = 0;                    // in a coordinated read: the number of rows that may be sent
                                       // so far
  std::optional<Remainder> remainder;  // once it is known
  std::optional<Positions> positions;  // order kDeterministic: which consumer gets which element
  // An element that is not in `skip` but is sent to no reader: it is produced because pads are
  // copies of it.
  std::optional<Index> copied;
};
struct AddReader {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  Reader reader;
};
// Only with CommitPolicy::kNever. Otherwise the partition is placed again when a reader leaves.
struct RemoveReader {
  WorkerId worker;
  PartitionId partition;
  Placement placement;
  ClientId client;
};

// Allows more rows. `remainder`: set once the partition's end is known; determines which consumers
// get its last elements.
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
using Message = std::variant<Welcome, Refused, ToClient<Fence>, ToClient<End>, ToClient<Committed>,
                             ToClient<Left>, Assign, AddReader, RemoveReader, Unassign,
                             ToClient<Agreed>, AllowRows>;

// --- Worker → dispatcher ---------------------------------------------------------

// A placement that a worker still has when it registers again. The worker then sends its newest
// bookmark again, and repeats Ended if it has already sent Ended.
struct HeldPlacement {
  PartitionId partition;
  Placement placement;
};

}  // namespace penstock::protocol
