// SPDX-License-Identifier: Apache-2.0
#include "penstock/distributed_dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/replica/distributed_iterator.h"
#include "dataplane/replica/input_plan.h"
#include "include/status_macros.h"

namespace penstock {

absl::StatusOr<int64_t> InputContext::GetPerReplicaBatchSize(int64_t global_batch_size) const {
  if (global_batch_size >= 0 && global_batch_size % num_replicas_in_sync == 0)
    return global_batch_size / num_replicas_in_sync;
  return absl::InvalidArgumentError(
      absl::StrCat("the global batch size ", global_batch_size, " cannot be divided among ",
                   num_replicas_in_sync, " replicas; use a multiple of ", num_replicas_in_sync));
}

std::string InputContext::ToString() const {
  return absl::StrCat("InputContext(input pipeline id ", input_pipeline_id,
                      ", total: ", num_input_pipelines, ")");
}

absl::StatusOr<DistributedDataset> DistributeDataset(const ReplicaGroup& group,
                                                     const Dataset& dataset, InputOptions options) {
  ASSIGN_OR_RETURN(DistributedDataset::Plan plan, replica::PlanInput(group, dataset, options));
  return DistributedDataset(std::make_shared<const DistributedDataset::Plan>(std::move(plan)));
}

absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
    const ReplicaGroup& group, const std::function<Dataset(const InputContext&)>& fn,
    InputOptions options) {
  ASSIGN_OR_RETURN(DistributedDataset::Plan plan,
                   replica::PlanInputFromFunction(group, fn, options));
  return DistributedDataset(std::make_shared<const DistributedDataset::Plan>(std::move(plan)));
}

const ReplicaGroup& DistributedDataset::group() const {
  return plan_->whole;
}

PerReplicaSpec DistributedDataset::element_spec() const {
  std::vector<Spec> specs;
  for (const replica::PipelineInput& pipeline : plan_->pipelines) {
    const Spec& spec =
        plan_->maps.empty() ? pipeline.dataset.element_spec() : plan_->maps.back().output();
    const int replicas = pipeline.replicas * plan_->options.replicas_per_element;
    specs.insert(specs.end(), static_cast<size_t>(replicas), spec);
  }
  return PerReplicaSpec(std::move(specs));
}

Cardinality DistributedDataset::cardinality() const {
  return plan_->cardinality;
}

Cardinality DistributedDataset::steps() const {
  return plan_->steps;
}

std::string DistributedDataset::Explain() const {
  std::string text;
  for (const replica::PipelineInput& pipeline : plan_->pipelines)
    absl::StrAppend(&text, pipeline.replicas * plan_->options.replicas_per_element,
                    " replica(s) read\n",
                    replica::Buffered(pipeline.dataset, pipeline.buffer).Explain());
  return text;
}

absl::StatusOr<DistributedDataset> DistributedDataset::Map(MapFunction fn) const {
  if (plan_->device_depth.has_value()) {
    return absl::InvalidArgumentError(
        "Map comes after PrefetchToDevice, whose values are on devices; move it before");
  }
  Plan plan = *plan_;
  ASSIGN_OR_RETURN(replica::TracedFunction traced,
                   replica::TracedFunction::Of(fn, element_spec()[0]));
  plan.maps.push_back(std::move(traced));
  return DistributedDataset(std::make_shared<const Plan>(std::move(plan)));
}

absl::StatusOr<DistributedDataset> DistributedDataset::PrefetchToDevice(int depth) const {
  constexpr int kMost = 1024;
  if (depth < 0 || depth > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("the depth of PrefetchToDevice must be in [0, ", kMost, "], not ", depth));
  }
  Plan plan = *plan_;
  plan.device_depth = depth;
  return DistributedDataset(std::make_shared<const Plan>(std::move(plan)));
}

absl::StatusOr<DistributedIterator> DistributedDataset::MakeIterator() const {
  ASSIGN_OR_RETURN(std::unique_ptr<replica::StepIterator> iterator,
                   replica::StepIterator::Start(plan_));
  return DistributedIterator(std::move(iterator));
}

absl::StatusOr<DistributedValues> DistributedIterator::GetNext() {
  ASSIGN_OR_RETURN(std::optional<DistributedValues> values, Next());
  if (!values.has_value()) return absl::OutOfRangeError("the data has ended");
  return *std::move(values);
}

void DistributedRange::Advance() {
  current_.reset();
  if (over_) return;
  if (!iterator_.ok()) {
    over_ = true;
    current_.emplace(iterator_.status());
    return;
  }
  absl::StatusOr<std::optional<DistributedValues>> next = iterator_->Next();
  if (!next.ok()) {
    over_ = absl::IsCancelled(next.status()) || absl::IsFailedPrecondition(next.status());
    current_.emplace(next.status());
  } else if (next->has_value()) {
    current_.emplace(**std::move(next));
  } else {
    over_ = true;
  }
}

}  // namespace penstock
