// SPDX-License-Identifier: Apache-2.0
// The messages between dispatcher, workers and clients, as plain values. Messages about one
// iteration alone are in messages.h; this file adds the messages with addresses, tokens and
// definitions. Their order: docs/protocol.md; why they suffice: docs/exactly_once.md.
//
// A worker and each client session have one stream to the dispatcher. "Up" messages go to the
// dispatcher, "down" messages come from it. Every message may be lost with its stream. A peer that
// reconnects sends a hello and is sent the current state again, so each message is safe to repeat.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/index_set.h"
#include "control/protocol/job_terms.h"
#include "control/protocol/lives.h"
#include "control/protocol/messages.h"
#include "control/protocol/shard.h"
#include "penstock/distribute.h"
#include "penstock/ids.h"
#include "penstock/iterator.h"
#include "penstock/spec.h"

namespace penstock::control {

// --- Pieces --------------------------------------------------------------------

// The control protocol versions of this release: any in [min, max].
struct VersionRange {
  uint32_t min = 2;
  uint32_t max = 2;
  friend bool operator==(const VersionRange&, const VersionRange&) = default;
};

// A partition of any iteration.
struct PartitionKey {
  IterationId iteration;
  PartitionId partition;
  friend auto operator<=>(const PartitionKey&, const PartitionKey&) = default;
};

// A partition under one assignment.
struct PlacedPartition {
  IterationId iteration;
  PartitionId partition;
  Placement placement;
  uint64_t journal = 0;  // of the assignment (Life); the numbers are valid in this journal only
  friend auto operator<=>(const PlacedPartition&, const PlacedPartition&) = default;
};

// A transport that a worker offers; the dispatcher passes it on unread.
struct TransferOffer {
  std::string protocol;
  std::string address;
  std::string compatibility;
  int32_t preference = 0;  // 1, 2, …: the place of the protocol in the worker's config
  friend bool operator==(const TransferOffer&, const TransferOffer&) = default;
};

// Splits of one provider and repetition that belong to a partition: numbers[i] is its split number
// `first_ordinal + i`.
struct SplitRun {
  int32_t provider = 0;
  int64_t repetition = 0;
  int64_t first_ordinal = 0;
  std::vector<int64_t> numbers;
  bool no_more = false;  // nothing follows the last of `numbers`
  friend bool operator==(const SplitRun&, const SplitRun&) = default;
};

using protocol::Reader;  // its `consumer` is not part of its identity

// A set of indices of one partition of the session's iteration.
struct PartitionIndices {
  PartitionId partition;
  IndexSet indices;
  friend bool operator==(const PartitionIndices&, const PartitionIndices&) = default;
};

using PartitionReport = protocol::Report;

// --- Datasets and jobs (unary) -----------------------------------------------------

// A repeated request with the same number from the same process gets the same answer, even from a
// restarted dispatcher. Zero: not repeatable.
struct RequestId {
  Incarnation incarnation;
  uint64_t counter = 0;
  friend auto operator<=>(const RequestId&, const RequestId&) = default;
};

// The fingerprint of one node of a dataset, in topological order.
struct NodeFingerprint {
  std::string name;
  uint64_t fingerprint = 0;
  friend bool operator==(const NodeFingerprint&, const NodeFingerprint&) = default;
};

// A source that can be divided. Providers are numbered by their place in the plan.
struct SplitProvider {
  std::string node;
  int64_t count = 0;  // splits of one repetition
  bool shuffled = false;
  std::optional<uint64_t> seed;    // of the permutation; absent: from the iteration's seed
  std::vector<std::string> files;  // of a source of files: in split order
  bool by_file = false;  // a split is one or several files, so that mode FILE can divide it
  friend bool operator==(const SplitProvider&, const SplitProvider&) = default;
};

// The part of a dataset that the dispatcher reads; it passes the definition on unread.
struct DatasetSummary {
  uint64_t fingerprint = 0;
  uint64_t spec_fingerprint = 0;
  std::string spec_text;  // as Spec::ToString() prints it
  Cardinality cardinality = kUnknown;
  bool ends = false;  // certainly, even if the number of elements is unknown
  std::vector<NodeFingerprint> nodes;
  std::vector<SplitProvider> plan;  // made where the files can be read
  friend bool operator==(const DatasetSummary&, const DatasetSummary&) = default;
};

struct RegisterDatasetRequest {
  RequestId request;
  std::string dataset_id;  // empty: chosen by the dispatcher
  bool replace = false;    // replaces a different definition under dataset_id
  std::string name_space;  // of an id chosen by the dispatcher; empty: "default"
  std::string definition;
  DatasetSummary summary;
};

struct RegisterDatasetAnswer {
  std::string dataset_id;
  bool existed = false;  // an equal definition had this id
  friend bool operator==(const RegisterDatasetAnswer&, const RegisterDatasetAnswer&) = default;
};

struct GetDatasetAnswer {
  std::string dataset_id;
  std::string definition;
  DatasetSummary summary;
};

struct GetOrCreateJobRequest {
  RequestId request;
  std::string name;    // empty: a job of this request's own
  std::string run_id;  // a finished name may be requested again under a different run_id
  std::string dataset_id;
  // The fingerprint of the registered dataset; absent: any dataset with this id.
  std::optional<uint64_t> dataset_fingerprint;
  JobTerms terms;
  std::optional<uint64_t> seed;  // absent: drawn by the dispatcher, and journaled
  std::string name_space;        // of a name chosen by the dispatcher; empty: "default"
};

struct JobAnswer {
  JobId job;
  std::string name;   // also of an anonymous job
  std::string token;  // authorises its data links
  std::string dataset_id;
  uint64_t seed = 0;
  bool existed = false;
  friend bool operator==(const JobAnswer&, const JobAnswer&) = default;
};

struct DatasetStatus {
  std::string dataset_id;
  uint64_t fingerprint = 0;
  std::string spec_text;
  Cardinality cardinality = kUnknown;
  int64_t definition_bytes = 0;
  int64_t jobs = 0;                                   // jobs that read it
  absl::Duration goes_in = absl::InfiniteDuration();  // until removal, unless a job reads it
};

struct PartitionStatus {
  PartitionId partition;
  Placement placement;
  WorkerId worker;  // none while it moves or waits for a worker
  bool ended = false;
  int64_t elements = -1;  // its last index + 1, once it ended
  int64_t splits_given = 0;
  int64_t received = 0;   // known to be received, over all clients
  int64_t committed = 0;  // in histories for good
  std::string waits_for;  // why it is not placed; empty if it is
};

struct IterationStatus {
  IterationId iteration;
  int64_t repetition = 0;
  bool closed = false;    // clients see the end
  bool finished = false;  // all is committed
  std::vector<Reader> readers;
  std::vector<PartitionStatus> partitions;
  std::string owed;  // the elements that no client has; empty: none
  // The consumers that the rounds of a coordinated read, or readers of order kDeterministic, wait
  // for; empty: none.
  std::string waits_for;
};

// How many workers keep a job's trainers fed, from rates in elements of the job.
struct JobFeed {
  double wanted_per_s = 0;  // by all its trainers if they never waited; 0: unknown
  double worker_per_s = 0;  // of a worker that serves this job only; 0: unknown
  double busy = 0;          // the share of their time in which its trainers did not wait (AU)
  double workers = 0;       // needed, if it were the only job; 0: no estimate
  friend bool operator==(const JobFeed&, const JobFeed&) = default;
};

enum class JobPhase : uint8_t { kActive = 0, kFinished = 1, kCancelled = 2 };

struct JobStatus {
  JobId job;
  std::string name;
  std::string run_id;
  std::string dataset_id;
  JobTerms terms;
  uint64_t seed = 0;
  JobPhase phase = JobPhase::kActive;
  std::vector<IterationStatus> iterations;  // without the earlier ones
  // Finished iterations that nobody is connected to any more, except the last hundred.
  int64_t earlier_iterations = 0;
  int64_t earlier_elements = 0;
  std::string slowed_by;  // the job's quota if it slows the job down; else empty
  JobFeed feed;
  absl::Duration unread_for;                          // zero: a client reads it
  absl::Duration goes_in = absl::InfiniteDuration();  // until removal, unless a client reads it
};

struct WorkerStatus {
  WorkerId worker;
  std::string address;
  int32_t permits = 0;
  int32_t partitions = 0;
  bool draining = false;
  bool connected = false;
  absl::Duration silent_for;  // since its last heartbeat
};

// Elements of at least 64 KiB over shared memory, by how they got into the client's memory
// (dataplane/transfer/filled.h).
struct FilledElements {
  int64_t in_place = 0;  // made there; the others were copied
  int64_t no_slot = 0;
  int64_t for_another = 0;
  int64_t elsewhere = 0;
  friend bool operator==(const FilledElements&, const FilledElements&) = default;
};

// The elements from one worker since the session began, over all connections to it.
struct LinkCounts {
  WorkerId worker;
  std::string protocol;  // of the latest connection; empty before the first
  std::string reason;    // why that one: "tcp: PENSTOCK_DATA_TRANSFER_PROTOCOL"
  bool open = false;
  int64_t elements = 0;
  int64_t bytes = 0;    // of their blocks
  int64_t credits = 0;  // of the worker, now
  // How often an element of this worker ended a wait of Next(), the time waited until it was
  // received, and the time waited after that.
  int64_t waits = 0;
  absl::Duration waited_until_received;
  absl::Duration waited_after_received;
  bool down = false;  // wanted, but it could not be opened or broke
  FilledElements filled;
  friend bool operator==(const LinkCounts&, const LinkCounts&) = default;
};

// How a session's user has spent its time since the first element. Measured at calls of Next(), so
// that whole steps are counted.
struct StepCounts {
  int64_t elements = 0;   // returned by Next()
  absl::Duration own;     // between a return of Next() and the next call
  absl::Duration waited;  // inside Next(), for elements that had not arrived
  friend bool operator==(const StepCounts&, const StepCounts&) = default;
};

// A worker's work for an iteration since it first had partitions of it. Counts whole elements.
struct IterationWork {
  IterationId iteration;
  int64_t elements = 0;    // produced here, needed or not
  absl::Duration busy;     // of all partitions: with a permit, so not waiting for trainers
  int32_t partitions = 0;  // those not at their end
  friend bool operator==(const IterationWork&, const IterationWork&) = default;
};

// One link, as of the client's last heartbeat.
struct LinkStatus {
  ClientId client;
  IterationId iteration;
  std::string job;     // its name
  std::string worker;  // its address; empty if it is gone
  LinkCounts counts;
  double elements_per_s = 0;  // since the previous heartbeat; 0 at the first
  double bytes_per_s = 0;
};

// The work of a dataset's nodes on one worker, for all its partitions there, since the worker first
// had the dataset.
struct DatasetWork {
  std::string dataset_id;
  IteratorStats stats;
  friend bool operator==(const DatasetWork&, const DatasetWork&) = default;
};

// A worker's work for a dataset, as of its last heartbeat.
struct WorkStatus {
  WorkerId worker;
  std::string address;
  DatasetWork work;
};

struct DispatcherStatus {
  Term term;
  VersionRange version;
  std::string release;  // "0.1.0"
  std::string journal;  // "memory", "sqlite:<path>"
  uint64_t journal_sequence = 0;
  std::vector<DatasetStatus> datasets;
  std::vector<JobStatus> jobs;
  std::vector<WorkerStatus> workers;
  std::vector<LinkStatus> links;  // of the sessions that are connected
  std::vector<WorkStatus> work;   // of the workers that are connected
  int64_t wanted_workers = 0;     // to keep the trainers of all jobs fed; 0: no estimate
};

// --- Client up ---------------------------------------------------------------------

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

// --- Client down -------------------------------------------------------------------

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

// --- Worker up ---------------------------------------------------------------------

struct WorkerHello {
  WorkerId worker;  // random, new in every process
  VersionRange version;
  std::string address;
  std::vector<TransferOffer> offers;
  std::vector<std::string> tags;
  int32_t permits = 1;
  std::vector<PlacedPartition> held;  // its partitions, after a broken stream
  Incarnation process;
  Heard heard;
  friend bool operator==(const WorkerHello&, const WorkerHello&) = default;
};

struct WorkerHeartbeat {
  uint64_t counter = 0;
  std::vector<DatasetWork> work;  // of the datasets that it has
  std::vector<IterationWork> iterations;
  friend bool operator==(const WorkerHeartbeat&, const WorkerHeartbeat&) = default;
};

// Asks for the splits from `first_ordinal` on. Repeated after a reconnect; splits that were given
// out stay given.
struct SplitRequest {
  PlacedPartition of;
  int32_t provider = 0;
  int64_t repetition = 0;
  int64_t first_ordinal = 0;
  int32_t wanted = 1;  // the dispatcher may give fewer, at least one
  friend bool operator==(const SplitRequest&, const SplitRequest&) = default;
};

// The first split of a provider that a replay from a bookmark still needs.
struct SplitMark {
  int32_t provider = 0;
  int64_t repetition = 0;
  int64_t ordinal = 0;
  friend bool operator==(const SplitMark&, const SplitMark&) = default;
};

// A saved position: a replay from it yields `index` first.
struct Bookmark {
  PlacedPartition of;
  Index index = 0;
  std::string position;
  std::vector<SplitMark> splits;  // empty: unknown
  friend bool operator==(const Bookmark&, const Bookmark&) = default;
};

// Everything outside `skip` has been sent and nothing is in doubt.
struct Ended {
  PlacedPartition of;
  Index elements = 0;  // last index + 1
  friend bool operator==(const Ended&, const Ended&) = default;
};

// The partition cannot run here at all (not an error of one element).
struct PartitionFailed {
  PlacedPartition of;
  absl::Status status;
  friend bool operator==(const PartitionFailed&, const PartitionFailed&) = default;
};

// After SIGTERM: give this worker's partitions to others, then send Drained.
struct Drain {
  friend bool operator==(const Drain&, const Drain&) = default;
};

// The worker stops; everything that it still has is lost.
struct WorkerLeave {
  friend bool operator==(const WorkerLeave&, const WorkerLeave&) = default;
};

// In a coordinated read: everything has been produced. The last `elements` mod num_consumers
// elements are held back until an AllowRows has their `remainder`.
struct AtEnd {
  PlacedPartition of;
  Index elements = 0;
  friend bool operator==(const AtEnd&, const AtEnd&) = default;
};

using WorkerUp = std::variant<WorkerHello, WorkerHeartbeat, SplitRequest, Bookmark, Ended,
                              PartitionFailed, Drain, WorkerLeave, AtEnd>;

// --- Worker down -------------------------------------------------------------------

struct WorkerWelcome {
  Life life;
  absl::Duration heartbeat_interval;
  friend bool operator==(const WorkerWelcome&, const WorkerWelcome&) = default;
};

struct WorkerHeartbeatAnswer {
  uint64_t counter = 0;
  friend bool operator==(const WorkerHeartbeatAnswer&, const WorkerHeartbeatAnswer&) = default;
};

// Run this partition. Accepted only if its placement is higher than the one held; the same
// placement again changes nothing.
struct Assign {
  PlacedPartition of;
  JobId job;
  std::string token;
  std::string dataset_id;
  uint64_t dataset_edition = 0;  // of the definition, among those that had this id
  JobTerms terms;
  ShardOf shard;  // FILE, DATA, HINT
  int64_t repetition = 0;
  uint64_t seed = 0;  // of the iteration; below the cut it is mixed with the partition
  IndexSet skip;
  Index bookmark_index = 0;  // the index of `bookmark`; 0 and empty: the start
  std::string bookmark;
  std::vector<SplitRun> splits;  // given before, from each provider's first retained ordinal on
  std::vector<Reader> readers;
  // For a coordinated read; AllowRows brings more of both. Under order kDeterministic a row is one
  // element.
  int64_t rows = 0;
  std::optional<protocol::Remainder> remainder;
  // How many elements are produced and dropped before index 0, or after the bookmark at index 0.
  int64_t lead = 0;
  // For order kDeterministic with several consumers: which consumer an element is for.
  std::optional<protocol::Positions> positions;
  // For a coordinated read: produced although it is sent to no reader, because pads are copies of
  // it. Not in `skip`.
  std::optional<Index> copied;
  friend bool operator==(const Assign&, const Assign&) = default;
};

// Serve this reader too. Ignored for a placement that is not held. There is no RemoveReader,
// because the partition is placed again whenever a reader leaves.
struct AddReader {
  PlacedPartition of;
  Reader reader;
  friend bool operator==(const AddReader&, const AddReader&) = default;
};

// In a coordinated read: rows below `rows` may be sent. If the partition ends, `remainder` tells
// where its elements after the whole rows belong. Under order kDeterministic: elements below `rows`
// may be sent.
struct AllowRows {
  PlacedPartition of;
  int64_t rows = 0;
  std::optional<protocol::Remainder> remainder;
  friend bool operator==(const AllowRows&, const AllowRows&) = default;
};

// Stop working on it, at this placement or a lower one.
struct Unassign {
  PlacedPartition of;
  friend bool operator==(const Unassign&, const Unassign&) = default;
};

// Answers SplitRequest. Has numbers, no_more, or both.
struct Splits {
  PlacedPartition of;
  SplitRun run;
  friend bool operator==(const Splits&, const Splits&) = default;
};

// All partitions are placed elsewhere; the worker may exit.
struct Drained {
  friend bool operator==(const Drained&, const Drained&) = default;
};

// The worker is refused: it was declared dead, or speaks a different version. The stream then
// closes. A worker that was declared dead starts again under a new WorkerId.
struct WorkerRefused {
  absl::Status status;
  friend bool operator==(const WorkerRefused&, const WorkerRefused&) = default;
};

using WorkerDown = std::variant<WorkerWelcome, WorkerHeartbeatAnswer, Assign, AddReader, Unassign,
                                Splits, Drained, WorkerRefused, AllowRows>;

}  // namespace penstock::control
