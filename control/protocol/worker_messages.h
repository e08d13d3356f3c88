// SPDX-License-Identifier: Apache-2.0
// The messages between the dispatcher and a worker, as plain values. Messages that concern only one
// iteration are in messages.h. docs/protocol.md describes the order of messages, and
// docs/exactly_once.md explains why these messages suffice.
//
// client_messages.h explains the streams, and "up" and "down" messages.
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
#include "control/protocol/shard.h"
#include "penstock/ids.h"

namespace penstock::control {

// --- Up ------------------------------------------------------------------------------

struct WorkerHello {
  WorkerId worker;  // random, different in every process
  VersionRange version;
  std::string address;
  std::vector<TransferOffer> offers;
  std::vector<std::string> tags;
  int32_t permits = 1;
  std::vector<PlacedPartition> held;  // its partitions, after a broken stream
  Incarnation process;
  Heard heard;
  std::string release = {};                  // as in ClientHello
  std::vector<PositionVersions> reads = {};  // the bookmarks that it can read
  friend bool operator==(const WorkerHello&, const WorkerHello&) = default;
};

struct WorkerHeartbeat {
  uint64_t counter = 0;
  std::vector<DatasetWork> work;  // of the datasets that the worker has
  std::vector<IterationWork> iterations;
  friend bool operator==(const WorkerHeartbeat&, const WorkerHeartbeat&) = default;
};

// Asks for the splits from `first_ordinal` on. Repeated after a reconnect: the answer then contains
// the splits that were already given.
struct SplitRequest {
  PlacedPartition of;
  int32_t provider = 0;
  int64_t repetition = 0;
  int64_t first_ordinal = 0;
  int32_t wanted = 1;  // the dispatcher may give fewer, at least one
  friend bool operator==(const SplitRequest&, const SplitRequest&) = default;
};

// The first split of a provider that a replay from the bookmark still needs.
struct SplitMark {
  int32_t provider = 0;
  int64_t repetition = 0;
  int64_t ordinal = 0;
  friend bool operator==(const SplitMark&, const SplitMark&) = default;
};

// A saved position. The first element that a replay from this position makes has the index `index`.
struct Bookmark {
  PlacedPartition of;
  Index index = 0;
  std::string position;
  std::vector<SplitMark> splits;  // empty: unknown
  std::vector<PositionVersion> versions = {};
  friend bool operator==(const Bookmark&, const Bookmark&) = default;
};

// All elements outside `skip` have been sent, and none is in doubt.
struct Ended {
  PlacedPartition of;
  Index elements = 0;  // last index + 1
  friend bool operator==(const Ended&, const Ended&) = default;
};

// The partition cannot run on this worker at all. Not sent for an error of one element.
struct PartitionFailed {
  PlacedPartition of;
  absl::Status status;
  // The worker's operations differ from those of the program that registered the dataset, so it
  // would prepare other elements: it must get no partition of the dataset.
  bool refuses_dataset = false;
  friend bool operator==(const PartitionFailed&, const PartitionFailed&) = default;
};

// Sent after SIGTERM: asks the dispatcher to place this worker's partitions on other workers, and
// then to send Drained.
struct Drain {
  friend bool operator==(const Drain&, const Drain&) = default;
};

// The worker stops. All elements that it still has are lost.
struct WorkerLeave {
  friend bool operator==(const WorkerLeave&, const WorkerLeave&) = default;
};

// In a coordinated read: all elements have been produced. The last `elements` mod num_consumers
// elements are held back until an AllowRows has a `remainder`.
struct AtEnd {
  PlacedPartition of;
  Index elements = 0;
  friend bool operator==(const AtEnd&, const AtEnd&) = default;
};

using WorkerUp = std::variant<WorkerHello, WorkerHeartbeat, SplitRequest, Bookmark, Ended,
                              PartitionFailed, Drain, WorkerLeave, AtEnd>;

// --- Down ----------------------------------------------------------------------------

struct WorkerWelcome {
  Life life;
  absl::Duration heartbeat_interval;
  uint32_t version = 0;  // as in Welcome
  friend bool operator==(const WorkerWelcome&, const WorkerWelcome&) = default;
};

struct WorkerHeartbeatAnswer {
  uint64_t counter = 0;
  // The shortest time between two bookmarks of one partition. The more partitions the dispatcher
  // has, the longer.
  absl::Duration bookmark_interval = absl::ZeroDuration();
  // The time until the next heartbeat. The more workers the dispatcher has, the longer. Zero: as in
  // the welcome.
  absl::Duration heartbeat_interval = absl::ZeroDuration();
  friend bool operator==(const WorkerHeartbeatAnswer&, const WorkerHeartbeatAnswer&) = default;
};

// Run this partition. The worker accepts the message only if its placement is higher than the
// placement that it holds. The same placement again changes nothing.
struct Assign {
  PlacedPartition of;
  JobId job;
  std::string token;
  std::string dataset_id;
  uint64_t dataset_edition = 0;  // tells apart the definitions that had this id
  JobTerms terms;
  ShardOf shard;  // FILE, DATA, HINT
  int64_t repetition = 0;
  uint64_t seed = 0;  // of the iteration; the worker mixes it with the partition
  IndexSet skip;
  Index bookmark_index = 0;  // the index of `bookmark`; 0, the start, if `bookmark` is empty
  std::string bookmark;
  std::vector<SplitRun> splits;  // given earlier, from each provider's first retained ordinal on
  std::vector<Reader> readers;
  // For a coordinated read: the rows that may be sent, and the remainder if it is known. AllowRows
  // updates both. In order kDeterministic, a row is one element.
  int64_t rows = 0;
  std::optional<protocol::Remainder> remainder;
  // The number of elements that are produced and dropped before index 0. They are the first of the
  // partition, or the first after the bookmark if its index is 0.
  int64_t lead = 0;
  // For order kDeterministic with several consumers: determines the consumer of each element.
  std::optional<protocol::Positions> positions;
  // For a coordinated read: an element that is produced although it is sent to no reader, because
  // pads are copies of it. It is not in `skip`.
  std::optional<Index> copied;
  friend bool operator==(const Assign&, const Assign&) = default;
};

// Serve this reader too. Ignored if the worker does not hold the placement.
struct AddReader {
  PlacedPartition of;
  Reader reader;
  friend bool operator==(const AddReader&, const AddReader&) = default;
};

// Send nothing more to this client, and close its links. Sent only for a cross-trainer cache; in
// other reads the partition is placed again, without the reader that left or died. Ignored if the
// worker does not hold the placement.
struct RemoveReader {
  PlacedPartition of;
  ClientId client;
  friend bool operator==(const RemoveReader&, const RemoveReader&) = default;
};

// In a coordinated read: rows below `rows` may be sent. Once the partition's end is known,
// `remainder` determines which consumers get the elements after the whole rows. In order
// kDeterministic: elements below `rows` may be sent.
struct AllowRows {
  PlacedPartition of;
  int64_t rows = 0;
  std::optional<protocol::Remainder> remainder;
  friend bool operator==(const AllowRows&, const AllowRows&) = default;
};

// Stop working on the partition, if its placement here is this one or a lower one.
struct Unassign {
  PlacedPartition of;
  friend bool operator==(const Unassign&, const Unassign&) = default;
};

// Answers SplitRequest. Its run has numbers, no_more, or both.
struct Splits {
  PlacedPartition of;
  SplitRun run;
  friend bool operator==(const Splits&, const Splits&) = default;
};

// All partitions have been placed on other workers. The worker may exit.
struct Drained {
  friend bool operator==(const Drained&, const Drained&) = default;
};

// The worker is refused, because it was declared dead or speaks a different version. The stream
// then closes. A worker that was declared dead starts again under a new WorkerId.
struct WorkerRefused {
  absl::Status status;
  std::optional<Life> life = {};  // as in SessionError
  friend bool operator==(const WorkerRefused&, const WorkerRefused&) = default;
};

using WorkerDown = std::variant<WorkerWelcome, WorkerHeartbeatAnswer, Assign, AddReader, Unassign,
                                Splits, Drained, WorkerRefused, AllowRows, RemoveReader>;

}  // namespace penstock::control
