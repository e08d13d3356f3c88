// SPDX-License-Identifier: Apache-2.0
// What is read through the service, seen by the replicas that read it.
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
    kNone,         // the dataset is this process's own
    kAnonymous,    // each iterator is a job of its own
    kNamed,        // iterators share one job
    kCoordinated,  // of which each iterator is a consumer
  };
  Kind kind = Kind::kNone;
  int64_t num_consumers = 0;
  std::string node;  // "Distribute#3"
  std::string name;  // of the job
};

// By the Distribute nodes of `dataset`. InvalidArgument if they are of several kinds.
absl::StatusOr<JobOfReplicas> JobOf(const Dataset& dataset);

// The same dataset as consumer number `consumer`. `rests`, if given, stands where it
// says Rests::kPad.
Dataset AsConsumer(const Dataset& dataset, int64_t consumer, std::optional<Rests> rests);

// The same dataset as one of several readers of its named job: all iterators over one Distribute
// node read pass after pass, and those of readers with nodes of their own the same passes together.
Dataset AsReader(const Dataset& dataset);

}  // namespace penstock::replica
