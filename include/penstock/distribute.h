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

enum class MergeOrder : uint8_t { kAny = 0, kFair = 1 };

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
