// SPDX-License-Identifier: Apache-2.0
// Reads through the service, like distribute, register_dataset and from_dataset_id of
// tf.data.experimental.service.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/moved_field.h"
#include "penstock/spec.h"

#pragma GCC visibility push(default)
namespace penstock {

class Dataset;

enum class ShardingPolicy : uint8_t {
  kOff = 0,      // every worker reads the whole dataset ("parallel_epochs")
  kDynamic = 1,  // each element once, splits given out on demand ("distributed_epoch")
  kFile = 2,
  kData = 3,
  kFileOrData = 4,
  kHint = 5,
};

// Which elements count as part of the trainer's history.
enum class AckMode : uint8_t {
  kOnDelivery = 0,  // elements that were delivered and acknowledged
  kOnCommit = 1,    // only the elements that a committed state contains
  // Names before 0.9. Release 0.10 removes them.
  kTaken [[deprecated("kOnDelivery")]] = kOnDelivery,
  kCommitted [[deprecated("kOnCommit")]] = kOnCommit,
};
using Keep [[deprecated("AckMode")]] = AckMode;

enum class Visitation : uint8_t {
  kExactlyOnce = 0,
  // After a failure elements may come again, but none is lost. A partition moves without waiting
  // for the reports of its readers.
  kAtLeastOnce = 1,
};

// The workers from which a reader gets elements.
enum class TargetWorkers : uint8_t {
  kAuto = 0,   // all workers, except those tagged COLOCATED in other trainers' processes
  kAny = 1,    // all workers
  kLocal = 2,  // the workers in this process
};

// What happens to the last elements if they do not fill a round.
enum class RemainderPolicy : uint8_t {
  kPad = 0,    // copies, flagged as such, fill the round
  kDrop = 1,   // the elements are dropped, and counted
  kError = 2,  // OutOfRange instead of the round
};
using Rests [[deprecated("RemainderPolicy")]] = RemainderPolicy;

// What all consumers do when a round contains an error.
enum class RoundErrorPolicy : uint8_t {
  kSkipRound = 0,  // Next() returns the error; the next call continues with the next round
  kStop = 1,       // reading ends with the error
};
using RoundErrors [[deprecated("RoundErrorPolicy")]] = RoundErrorPolicy;

// The compression of a link between worker and client.
enum class LinkCompression : uint8_t {
  kNone = 0,
  kAuto = 1,  // measured: none over shm and RDMA; a codec if the link is slower than the codec
  kSnappy = 2,
  kLz4 = 3,
};

// --- Delivery: which elements a reader gets, and in which order -------------------

// The default: elements come as they arrive, and each goes to one of the job's readers.
struct FirstComeFirstServed {
  bool fair = false;  // partitions take turns when several have elements
  Visitation visitation = Visitation::kExactlyOnce;
  // For a job that several readers share. True: elements that this reader has received belong to it
  // while it lives. Other readers get none of these elements, and reach the end without waiting
  // until this reader has read them. If this reader leaves or dies, its undelivered elements go to
  // readers that have not reached their end or that join later. False: a reader that waits gets
  // elements that other readers hold and do not read.
  bool early_end = false;
  friend bool operator==(const FirstComeFirstServed&, const FirstComeFirstServed&) = default;
};

// A group of readers that need the same elements, such as the ranks of a tensor- or
// pipeline-parallel model.
struct ConsumerGroup {
  int64_t size = 1;
  int64_t member = 0;  // in [0, size): the number of this reader
  friend bool operator==(const ConsumerGroup&, const ConsumerGroup&) = default;
};

// A coordinated read: in each round every consumer gets an element of the same bucket. Requires a
// job_name, under which the consumers find each other.
struct CoordinatedRounds {
  int64_t consumer_index = 0;  // in [0, num_consumers)
  int64_t num_consumers = 1;
  RemainderPolicy remainder_policy = RemainderPolicy::kPad;
  RoundErrorPolicy on_error = RoundErrorPolicy::kSkipRound;
  // `size` readers have this consumer_index, and each of them gets all elements of the consumer. A
  // worker prepares an element once for the whole group. Over shm, it sends an element of 64 KiB or
  // more once, and the members read it in place. Where a step or an element names its consumer,
  // each member counts as a consumer: number consumer_index * size + member of num_consumers *
  // size.
  ConsumerGroup group;
  friend bool operator==(const CoordinatedRounds&, const CoordinatedRounds&) = default;
};

// The same order in every run, on any number of workers and after any failure: one element from
// each partition in turn; partitions that have ended are skipped. For one reader at a time, or for
// several consumers, each of which gets its part of the order (step_token.h). Not in mode OFF,
// where the order would depend on the number of workers.
struct DeterministicOrder {
  // The number of partitions into which the elements are divided and from which they are merged.
  // The order depends on this number, and the job can use at most this many permits of workers. 0:
  // 8 in mode DYNAMIC; the number of shards in FILE, DATA, FILE_OR_DATA and HINT.
  int64_t partitions = 0;
  int64_t consumer_index = 0;  // in [0, num_consumers)
  int64_t num_consumers = 0;   // 0: one reader at a time; otherwise a job_name is required
  friend bool operator==(const DeterministicOrder&, const DeterministicOrder&) = default;
};

// Trainers, each with its own id, read the same elements from one sliding window. Requires a
// job_name and an infinite dataset. Cannot be combined with ack_mode = on_commit.
struct CrossTrainerCache {
  std::string trainer_id;  // readers with the same id share the elements of that trainer
  bool fair = false;       // as in FirstComeFirstServed
  friend bool operator==(const CrossTrainerCache&, const CrossTrainerCache&) = default;
};

using DeliveryMode =
    std::variant<FirstComeFirstServed, CoordinatedRounds, DeterministicOrder, CrossTrainerCache>;

// How a reader merges the elements of all partitions: kAny is FirstComeFirstServed, kFair is
// FirstComeFirstServed with `fair`, kDeterministic is DeterministicOrder.
enum class MergeOrder : uint8_t { kAny = 0, kFair = 1, kDeterministic = 2 };

// Limits of one job; 0: no limit.
struct JobQuota {
  int64_t max_bytes_in_flight = 0;  // of elements between all workers and all clients
  int64_t max_permits = 0;          // partitions computed at once, over all workers
  friend bool operator==(const JobQuota&, const JobQuota&) = default;
};

// How a job shares workers with other jobs, when not all of their partitions can compute at once
// (docs/fair_shares.md).
struct JobShare {
  // From 1 to 1,000. Among jobs of one priority, each gets turns in proportion to its weight.
  int64_t weight = 1;
  // From -1,000 to 1,000. A job computes before all jobs of lower priorities.
  int64_t priority = 0;
  friend bool operator==(const JobShare&, const JobShare&) = default;
};

struct DistributeOptions {
  ShardingPolicy processing_mode = ShardingPolicy::kOff;
  // "[protocol://]address"; the only control protocol is "grpc". The target() of a DispatchServer
  // in this process is valid too. Several addresses of one service, "grpc://a:5050,b:5050": the
  // reader follows the dispatcher that leads.
  std::string service;
  // Readers that give the same name share one job: each element goes to one of them. Empty: this
  // iterator has its own job.
  std::string job_name;
  // A job_name whose job has finished can be read again under a different run_id.
  std::string run_id;
  // The maximum number of elements requested or held; 0: AUTO. Bounds the client's memory.
  int64_t max_outstanding_requests = 0;
  int64_t max_outstanding_bytes = 256 << 20;
  // "local", "shm", "tcp", "grpc", a protocol that a library registers, or "auto": the protocols
  // that the worker's config names, then the best one that both sides can use. Empty:
  // PENSTOCK_DATA_TRANSFER_PROTOCOL, else [client] of the file PENSTOCK_CONFIG, else "auto". A
  // named protocol is never silently replaced: NotFound if it cannot be used, unless `fallback`
  // lists others.
  std::string data_transfer_protocol;
  // Protocols to try next, in this order. Empty: PENSTOCK_FALLBACK (comma-separated), else the list
  // in [client] of the file PENSTOCK_CONFIG.
  std::vector<std::string> fallback;
  // Fixed when the job is created. Not given: kOnDelivery.
  std::optional<AckMode> ack_mode;
  MovedField<AckMode> keep;  // the name of ack_mode before 0.9; 0.10 removes it
  // Which elements this reader gets, and in which order. All readers of a job must give the same
  // kind of delivery:
  //   {.job_name = "train", .delivery = CoordinatedRounds{.consumer_index = 0, .num_consumers = 4}}
  DeliveryMode delivery;
  // The fields of `delivery` before 0.9, each with its old meaning. Release 0.9 still reads them,
  // and applies them on top of `delivery`; 0.10 removes them.
  MovedField<MergeOrder> order;
  MovedField<int64_t> partitions;
  MovedField<Visitation> visitation;
  MovedField<bool> early_end;
  MovedField<int64_t> consumer_index;
  MovedField<int64_t> num_consumers;
  MovedField<RemainderPolicy> rests;
  MovedField<RoundErrorPolicy> on_error;
  MovedField<ConsumerGroup> consumer_group;
  MovedField<CrossTrainerCache> cross_trainer_cache;
  TargetWorkers target_workers = TargetWorkers::kAuto;
  LinkCompression compression = LinkCompression::kAuto;
  JobQuota quota;
  JobShare share;
  // Jobs and dataset ids of different namespaces are separate. Empty: "default".
  std::string name_space;
  // The longest interval between heartbeats to the dispatcher, which pushes changes by itself;
  // zero: AUTO.
  absl::Duration task_refresh_interval_hint;
  // The time for which the dispatcher or the workers may be unreachable before reading fails.
  // Longer than the dispatcher's client_timeout (60 s): partitions that have lost their worker get
  // another one only when the lease of a trainer that died has ended.
  absl::Duration timeout = absl::Seconds(90);
  std::optional<uint64_t> seed;
};

// Parses "parallel_epochs" or "distributed_epoch". InvalidArgument, with both names, for any other
// text.
absl::StatusOr<ShardingPolicy> ProcessingModeFromName(std::string_view name);

struct RegisterOptions {
  std::string dataset_id;  // empty: the dispatcher chooses one
  bool replace = false;    // replaces a different definition under this id
  absl::Duration timeout = absl::Seconds(60);
};

// Registers a dataset and returns its id. An equal definition gets the id that it already has.
// InvalidArgument, with the first node that differs, if a different definition has the given id.
absl::StatusOr<std::string> RegisterDataset(std::string_view service, const Dataset& dataset,
                                            RegisterOptions options = {});

// Returns a dataset that this or another process registered earlier. NotFound for an id that the
// dispatcher does not know. Without `element_spec`, the spec is requested from the dispatcher.
absl::StatusOr<Dataset> FromDatasetId(std::string_view dataset_id, DistributeOptions options,
                                      std::optional<Spec> element_spec = std::nullopt);

}  // namespace penstock
#pragma GCC visibility pop
