// SPDX-License-Identifier: Apache-2.0
// What the replicas of this process read, decided once, before anything is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/replica/traced_function.h"
#include "penstock/distributed_dataset.h"

namespace penstock {
namespace replica {

// One iterator, whose elements its replicas get in turn.
struct PipelineInput {
  Dataset dataset;
  int replicas = 1;
  // Rows of its whole elements, which take turns; {}: not known.
  std::vector<int64_t> sizes;
  Dataset front;       // all of the data, whose first rows fill up what is missing
  int64_t buffer = 0;  // its elements that are read ahead
};

}  // namespace replica

// Constant, but for the number of passes begun.
struct DistributedDataset::Plan {
  ReplicaGroup group;  // a replica per element of a step
  ReplicaGroup whole;  // each options.replicas_per_element of which share one
  InputOptions options;
  Cardinality cardinality = kUnknown;
  std::vector<replica::PipelineInput> pipelines;  // of this process
  // Elements that only fill up a last round are flagged, and handled as
  // partial_batches says.
  bool coordinated = false;
  Cardinality steps = kUnknown;
  bool limited = false;  // a pass has exactly `steps`, whatever the data has
  bool aligned = false;  // the processes agree on every step, by a StepAligner
  // What all processes must have alike, as (name, value).
  std::vector<std::pair<std::string, std::string>> alike;
  uint64_t seed = 0;  // the first pass's; drawn if the group has other pipelines elsewhere
  bool seeded = false;
  std::vector<replica::TracedFunction> maps;
  std::optional<int> device_depth;  // PrefetchToDevice
  std::shared_ptr<std::atomic<int64_t>> passes = std::make_shared<std::atomic<int64_t>>(0);
};

namespace replica {

// With so many of its elements read ahead; 0: itself.
inline Dataset Buffered(const Dataset& dataset, int64_t elements) {
  return elements == 0 ? dataset : dataset.Prefetch(elements);
}

absl::StatusOr<DistributedDataset::Plan> PlanInput(const ReplicaGroup& whole,
                                                   const Dataset& dataset,
                                                   const InputOptions& options);

absl::StatusOr<DistributedDataset::Plan> PlanInputFromFunction(
    const ReplicaGroup& whole, const std::function<Dataset(const InputContext&)>& fn,
    const InputOptions& options);

}  // namespace replica
}  // namespace penstock
