// SPDX-License-Identifier: Apache-2.0
// Reading through the service: what tf.data.experimental.service.distribute,
// register_dataset and from_dataset_id offer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/spec.h"

namespace penstock {

class Dataset;

enum class ShardingPolicy : uint8_t {
  kOff = 0,      // every worker reads the whole dataset ("parallel_epochs")
  kDynamic = 1,  // each element once, splits handed out on demand ("distributed_epoch")
  kFile = 2,
  kData = 3,
  kFileOrData = 4,
  kHint = 5,
};

enum class Keep : uint8_t {
  kTaken = 0,      // what was taken and acknowledged is in the trainer's history
  kCommitted = 1,  // only what a committed state contains
};

// How the elements of all partitions come together at a reader.
enum class MergeOrder : uint8_t {
  kAny = 0,   // as they arrive
  kFair = 1,  // as they arrive, partitions in turn where several have some
  // The same at every run, on any number of workers, and behind any failure: one element of each
  // partition in turn, without those that have ended. For one reader at a time, or for several
  // consumers (step_token.h). Not in mode OFF, where it would depend on the number of workers.
  kDeterministic = 2,
};

enum class Visitation : uint8_t {
  kExactlyOnce = 0,
  // After a failure elements may come again, none is lost: a partition moves without waiting for
  // what its readers have of it.
  kAtLeastOnce = 1,
};

// Whose elements are read.
enum class TargetWorkers : uint8_t {
  kAuto = 0,   // all workers', but in other trainers' processes those tagged COLOCATED
  kAny = 1,    // all workers'
  kLocal = 2,  // those of workers in this process
};

// What becomes of the at most num_consumers - 1 elements that fill no last round.
enum class Rests : uint8_t {
  kPad = 0,    // the round is filled with copies that are flagged
  kDrop = 1,   // they are dropped, and counted
  kError = 2,  // OutOfRange instead of the round
};

// What all consumers do at a round that holds an error.
enum class RoundErrors : uint8_t {
  kSkipRound = 0,  // Next() returns it, and the one after goes on with the next round
  kStop = 1,       // reading ends with it
};

// Between worker and client, by link.
enum class LinkCompression : uint8_t {
  kNone = 0,
  kAuto = 1,  // by measuring: none over shm and RDMA, a codec where the link is slower than it
  kSnappy = 2,
  kLz4 = 3,
};

// Trainers with ids of their own read the same elements of one sliding window.
struct CrossTrainerCache {
  std::string trainer_id;  // readers of one id share its elements
};

// Readers that need the same elements, as the ranks of a tensor- or pipeline-parallel model do.
struct ConsumerGroup {
  int64_t size = 1;
  int64_t member = 0;  // in [0, size): which of them this one is
};

// What one job may use; 0: no bound.
struct JobQuota {
  int64_t max_bytes_in_flight = 0;  // of elements between workers and clients, over all of them
  int64_t max_permits = 0;          // partitions computed at once, over all workers
  friend bool operator==(const JobQuota&, const JobQuota&) = default;
};

struct DistributeOptions {
  ShardingPolicy processing_mode = ShardingPolicy::kOff;
  // "[protocol://]address"; only "grpc" is a control protocol. An in-process
  // DispatchServer's target() fits too.
  std::string service;
  // Readers that give the same name share one job: each element goes to one of
  // them. Empty: a job of this iterator's own.
  std::string job_name;
  // A finished name may be asked for again under another run_id.
  std::string run_id;
  // Elements requested or held at most; 0: AUTO. Bounds the client's memory.
  int64_t max_outstanding_requests = 0;
  int64_t max_outstanding_bytes = 256 << 20;
  // "local", "shm", "tcp", "grpc", one registered by a library, or "auto": what the worker's config
  // names, then the best that both can do. Empty: PENSTOCK_DATA_TRANSFER_PROTOCOL, else [client] of
  // the file PENSTOCK_CONFIG, else "auto". A named protocol is never silently replaced: NotFound,
  // unless `fallback` lists others.
  std::string data_transfer_protocol;
  // In order. Empty: PENSTOCK_FALLBACK (with commas), else the file's.
  std::vector<std::string> fallback;
  // Fixed when the job is made. Not given: kTaken.
  std::optional<Keep> keep;
  MergeOrder order = MergeOrder::kAny;
  // Of order kDeterministic: how many partitions the elements are divided into and merged from,
  // on which the order depends, and how many workers' permits can be of use. 0: 8 in mode DYNAMIC;
  // as many as there are shards in FILE, DATA, FILE_OR_DATA and HINT.
  int64_t partitions = 0;
  Visitation visitation = Visitation::kExactlyOnce;
  // Of a job that readers share: what this one has received is its own while it lives. The others
  // are told the end without waiting until it has taken that, and are given none of it. What it has
  // not taken when it leaves or dies goes to readers that are not at their end, or come later.
  // Without it a reader that waits gets what others hold and do not take.
  bool early_end = false;

  // Coordinated reads: in each round every consumer gets an element of the same bucket; or, with
  // order kDeterministic, its part of that order (step_token.h). Both or neither, and a job_name.
  std::optional<int64_t> consumer_index;  // in [0, num_consumers)
  std::optional<int64_t> num_consumers;
  Rests rests = Rests::kPad;
  RoundErrors on_error = RoundErrors::kSkipRound;

  // Of a coordinated read: `size` readers have this consumer_index, and each gets all its elements.
  // A worker prepares an element once for all of them and, over shm, sends it once: they read it
  // where it lies (64 KiB or more). Elsewhere, where a step or an element names its consumer, each
  // member counts as one: consumer_index * size + member of num_consumers * size. Not with order
  // kDeterministic.
  std::optional<ConsumerGroup> consumer_group;

  // Needs a job_name and an infinite dataset.
  std::optional<CrossTrainerCache> cross_trainer_cache;
  TargetWorkers target_workers = TargetWorkers::kAuto;
  LinkCompression compression = LinkCompression::kAuto;
  JobQuota quota;
  // Jobs and dataset ids of different namespaces do not see each other. Empty: "default".
  std::string name_space;
  // How often to ask the dispatcher what is new, where it cannot tell by itself; zero: AUTO.
  absl::Duration task_refresh_interval_hint;
  // How long the dispatcher or the workers may be out of reach before an error.
  absl::Duration timeout = absl::Seconds(60);
  std::optional<uint64_t> seed;
};

// "parallel_epochs" or "distributed_epoch"; InvalidArgument lists both.
absl::StatusOr<ShardingPolicy> ProcessingModeFromName(std::string_view name);

struct RegisterOptions {
  std::string dataset_id;  // empty: chosen by the dispatcher
  bool replace = false;    // take the place of another definition under this id
  absl::Duration timeout = absl::Seconds(60);
};

// Registers a dataset and returns its id. An equal definition gets the id it
// already has; another one under a given id is InvalidArgument naming the first
// node that differs.
absl::StatusOr<std::string> RegisterDataset(std::string_view service, const Dataset& dataset,
                                            RegisterOptions options = {});

// Reads a dataset registered earlier, by this or another process. NotFound for
// an id the dispatcher does not know. `element_spec` left out: asked for.
absl::StatusOr<Dataset> FromDatasetId(std::string_view dataset_id, DistributeOptions options,
                                      std::optional<Spec> element_spec = std::nullopt);

}  // namespace penstock
