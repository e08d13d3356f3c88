// SPDX-License-Identifier: Apache-2.0
// The service's job for a dataset, as seen by the replicas that read the dataset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/dataset.h"
#include "penstock/distribute.h"

namespace penstock::replica {

struct JobOfReplicas {
  enum class Kind : uint8_t {
    kNone,         // this process reads the dataset without a job
    kAnonymous,    // each iterator has its own job
    kNamed,        // iterators share one job
    kCoordinated,  // each iterator is a consumer of one job
  };
  Kind kind = Kind::kNone;
  int64_t num_consumers = 0;
  std::string node;  // "Distribute#3"
  std::string name;  // of the job
};

// Returns the job of the Distribute nodes of `dataset`. InvalidArgument if these nodes have jobs of
// different kinds.
absl::StatusOr<JobOfReplicas> JobOf(const Dataset& dataset);

// Returns the dataset as read by consumer number `consumer`. `policy`, if given, replaces
// RemainderPolicy::kPad.
Dataset AsConsumer(const Dataset& dataset, int64_t consumer, std::optional<RemainderPolicy> policy);

// Returns the dataset as read by one of several readers of its named job. Iterators over one
// Distribute node read one pass after another. Each result has a Distribute node of its own, so
// that the readers read the same passes together.
Dataset AsReader(const Dataset& dataset);

}  // namespace penstock::replica
