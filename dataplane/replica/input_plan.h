// SPDX-License-Identifier: Apache-2.0
// The plan for the input of this process's replicas, made once, before anything is read.
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

// One iterator, whose elements go to the pipeline's replicas in rotation.
struct PipelineInput {
  Dataset dataset;
  int replicas = 1;
  // The numbers of rows of complete elements, used cyclically; {}: not known.
  std::vector<int64_t> sizes;
  Dataset front;       // all of the data; the first rows fill incomplete batches
  int64_t buffer = 0;  // elements that are read ahead
};

}  // namespace replica

// Constant, except for the number of passes begun.
struct DistributedDataset::Plan {
  ReplicaGroup group;  // counts the replicas that share an element as one
  ReplicaGroup whole;  // has every replica; options.replicas_per_element replicas share an element
  InputOptions options;
  Cardinality cardinality = kUnknown;
  std::vector<replica::PipelineInput> pipelines;  // the pipelines of this process
  // True for a coordinated job. The job's elements that merely fill up the last round are flagged,
  // and handled according to partial_batches.
  bool coordinated = false;
  Cardinality steps = kUnknown;
  bool limited = false;  // a pass has exactly `steps` steps, regardless of the data
  bool aligned = false;  // the processes agree on every step, with a StepAligner
  // Settings that must be equal in all processes: (name, value).
  std::vector<std::pair<std::string, std::string>> must_match;
  uint64_t seed = 0;  // of the first pass; random if other processes have pipelines
  bool seeded = false;
  std::vector<replica::TracedFunction> maps;
  std::optional<int> device_depth;  // PrefetchToDevice
  std::shared_ptr<std::atomic<int64_t>> passes = std::make_shared<std::atomic<int64_t>>(0);
};

namespace replica {

// Returns `dataset` with this number of elements read ahead, or `dataset` itself for 0 elements.
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
