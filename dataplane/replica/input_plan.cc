// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/input_plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/engine/static_shard.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/transforms/batch/batch_rows.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/replica/batch_sizes.h"
#include "dataplane/replica/cut_batch.h"
#include "dataplane/replica/job_of_replicas.h"
#include "dataplane/replica/shard_files.h"
#include "include/status_macros.h"
#include "penstock/fingerprint.h"

namespace penstock::replica {
namespace {

using Job = JobOfReplicas;
using Plan = DistributedDataset::Plan;

// The pipelines of all processes. This process has the pipelines [first, first + count).
struct Layout {
  std::vector<int> replicas;  // of each pipeline
  int first = 0;
  int count = 0;

  bool here(int pipeline) const { return pipeline >= first && pipeline < first + count; }
  int size() const { return static_cast<int>(replicas.size()); }
  bool all_here() const { return count == size(); }
};

Layout LayoutOf(const ReplicaGroup& group, ReplicationMode mode) {
  if (mode == ReplicationMode::kPerReplica) {
    return {std::vector<int>(group.num_replicas_in_sync(), 1), group.first_replica(),
            group.num_local_replicas()};
  }
  const absl::Span<const int> replicas = group.replicas_of_process();
  return {{replicas.begin(), replicas.end()}, group.process(), 1};
}

absl::Status CheckOptions(const ReplicaGroup& group, const InputOptions& options) {
  if (options.per_replica_buffer_size < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "per_replica_buffer_size must be at least 0, not ", options.per_replica_buffer_size));
  }
  if (options.steps.has_value() && *options.steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps must be at least 1, not ", *options.steps));
  }
  if (!options.fetch_to_device) return absl::OkStatus();
  for (const Device& device : group.devices()) {
    if (device.kind == Device::Kind::kCpu) continue;
    const absl::StatusOr<DeviceInfo> info = LinkedDeviceBackend().Describe(device.index);
    if (info.ok()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("values cannot be copied to ", device.ToString(), ": ",
                     std::string(info.status().message()),
                     "; with fetch_to_device = false they stay in host memory"));
  }
  return absl::OkStatus();
}

absl::Status NeedsBatchSize(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(what),
      " needs the number of rows of a whole batch, which is not known for this dataset; move Batch "
      "after the nodes that change batches, or set drop_remainder"));
}

absl::Status NeedsSteps() {
  return absl::FailedPreconditionError(
      "all processes must make the same number of steps, but the other processes' number is not "
      "known here: connect the group (ReplicaGroup::Connect), set InputOptions::steps, or read "
      "with kData, through a coordinated job (consumer_index, num_consumers), or from an infinite "
      "dataset (Repeat)");
}

absl::Status NeedsConnection() {
  return absl::FailedPreconditionError(
      "partial_batches kError reports the error to all processes, which needs a connected group: "
      "connect the group (ReplicaGroup::Connect)");
}

// Returns the settings that processes of a connected group compare before they read.
std::vector<std::pair<std::string, std::string>> AlikeIn(const Plan& plan, const Dataset& dataset,
                                                         const Job& job) {
  std::vector<std::pair<std::string, std::string>> alike = {
      {"the dataset's fingerprint",
       absl::StrCat(
           absl::Hex(AsConsumer(dataset, 0, std::nullopt).fingerprint(), absl::kZeroPad16))},
      {"the replicas of the processes", absl::StrJoin(plan.group.replicas_of_process(), ", ")},
      {"the number of steps",
       plan.steps < 0 ? "not known" : absl::StrCat(static_cast<int64_t>(plan.steps))}};
  if (job.kind == Job::Kind::kCoordinated)
    alike.emplace_back("num_consumers", absl::StrCat(job.num_consumers));
  if (job.kind != Job::Kind::kNone) alike.emplace_back("the job", job.name);
  return alike;
}

// Returns the policy that divides a dataset among several pipelines, if the processes read it
// without a job.
absl::StatusOr<AutoShardPolicy> ResolvePolicy(const Dataset& dataset, const InputOptions& options,
                                              int pipelines) {
  switch (options.auto_shard) {
    case AutoShardPolicy::kAuto: {
      const bool endless = dataset.cardinality() == kInfinite || options.steps.has_value();
      const bool files = endless && CheckFiles(dataset, pipelines).ok();
      if (!files) RETURN_IF_ERROR(CheckShardable(dataset, ShardingPolicy::kData));
      return files ? AutoShardPolicy::kFile : AutoShardPolicy::kData;
    }
    case AutoShardPolicy::kFile:
      RETURN_IF_ERROR(CheckFiles(dataset, pipelines));
      return options.auto_shard;
    case AutoShardPolicy::kData:
      RETURN_IF_ERROR(CheckShardable(dataset, ShardingPolicy::kData));
      return options.auto_shard;
    case AutoShardPolicy::kHint:
      RETURN_IF_ERROR(CheckShardable(dataset, ShardingPolicy::kHint));
      if (HasShardHint(dataset)) return options.auto_shard;
      return absl::InvalidArgumentError(
          "auto_shard kHint needs a Shard of kShardHint in the dataset; add one where it should "
          "be divided, or use a different policy");
    case AutoShardPolicy::kOff:
      return options.auto_shard;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown auto_shard policy ", static_cast<int>(options.auto_shard)));
}

Dataset ShardOf(const Dataset& dataset, AutoShardPolicy policy, int pipelines, int index) {
  if (policy == AutoShardPolicy::kFile) return ShardFiles(dataset, pipelines, index);
  if (policy == AutoShardPolicy::kHint) return WithShardForHint(dataset, pipelines, index);
  return dataset;
}

// Divides a dataset of global batches among the replicas.
class Division {
 public:
  Division(const Dataset& dataset, const InputOptions& options, AutoShardPolicy policy,
           const Layout& layout)
      : dataset_(dataset),
        drop_(options.partial_batches == PartialBatches::kDrop),
        policy_(layout.size() == 1 ? AutoShardPolicy::kOff : policy),
        layout_(layout),
        batch_size_(BatchSizeOf(dataset)) {
    for (const int of_pipeline : layout.replicas) replicas_ += of_pipeline;
    if (batch_size_ > 0) sizes_ = BatchSizes(batch_size_, layout.replicas);
  }

  bool by_data() const { return policy_ == AutoShardPolicy::kData; }

  PipelineInput Pipeline(int n) const {
    const int replicas = layout_.replicas[n];
    if (by_data()) {
      int first = 0;
      for (int i = 0; i < n; ++i) first += layout_.replicas[i];
      PipelineInput input{CutBatch(dataset_, {.parts = replicas_,
                                              .first = first,
                                              .count = replicas,
                                              .whole_rows = drop_ ? batch_size_ : 0}),
                          replicas,
                          {}};
      if (batch_size_ > 0) {
        const std::vector<int64_t> parts = PartSizes(batch_size_, replicas_);
        input.sizes.assign(parts.begin() + first, parts.begin() + first + replicas);
      }
      return input;
    }
    const Dataset shard = ShardOf(dataset_, policy_, layout_.size(), n);
    if (batch_size_ <= 0) {
      return {CutBatch(shard, {.parts = replicas_, .first = 0, .count = replicas_}), replicas, {}};
    }
    // If all batches are whole and are cut into parts of equal size, there is no remainder, and the
    // parts' size is known.
    const bool whole = RowsKnown(dataset_.element_spec());
    return {shard.Rebatch(sizes_[n], {.drop_remainder = whole && batch_size_ % replicas_ == 0}),
            replicas, sizes_[n]};
  }

  // Returns the number of steps of all pipelines; kUnknown if only reading can determine this
  // number.
  Cardinality Steps() const {
    if (dataset_.cardinality() == kInfinite) return kInfinite;
    if (by_data()) return drop_ ? kUnknown : dataset_.cardinality();
    std::optional<int64_t> steps;
    for (int n = 0; n < layout_.size(); ++n) {
      const Cardinality of = StepsOfPipeline(n);
      if (of < 0) return kUnknown;
      steps = !steps.has_value() ? of : drop_ ? std::min(*steps, of) : std::max(*steps, of);
    }
    return steps.value_or(kUnknown);
  }

 private:
  static bool RowsKnown(const Spec& spec) {
    return std::all_of(spec.leaves().begin(), spec.leaves().end(), [](const TensorSpec& leaf) {
      return leaf.shape.has_rank() && leaf.shape.dim(0) != kUnknownDim;
    });
  }

  Cardinality StepsOfPipeline(int n) const {
    if (policy_ == AutoShardPolicy::kFile && dataset_.cardinality() != 0) return kUnknown;
    const Dataset shard = ShardOf(dataset_, policy_, layout_.size(), n);
    const int replicas = layout_.replicas[n];
    if (batch_size_ > 0) {
      const Cardinality rows = RowsOf(shard);
      return rows < 0 ? kUnknown : replica::StepsOf(rows, sizes_[n], replicas, drop_);
    }
    int64_t parts;
    if (shard.cardinality() < 0 || __builtin_mul_overflow(shard.cardinality(), replicas_, &parts)) {
      return kUnknown;
    }
    return parts / replicas + (parts % replicas != 0 && !drop_ ? 1 : 0);
  }

  const Dataset dataset_;
  const bool drop_;
  const AutoShardPolicy policy_;
  const Layout layout_;
  const int64_t batch_size_;
  int replicas_ = 0;
  std::vector<std::vector<int64_t>> sizes_;  // batch sizes of each pipeline; {}: not known
};

absl::Status CheckDivisible(const Dataset& dataset, int replicas) {
  const absl::Status rows = RowSpecOf(dataset.element_spec()).status();
  if (rows.ok()) return rows;
  return absl::InvalidArgumentError(
      absl::StrCat("call Batch on the dataset, so that its batches can be divided among ", replicas,
                   " replicas: ", rows.message()));
}

// Completes the parts of the plan that concern all pipelines, after the pipelines have been made.
absl::Status Finish(Plan& plan, const Layout& layout, uint64_t fingerprint, bool end_alike,
                    bool job) {
  const InputOptions& options = plan.options;
  for (PipelineInput& pipeline : plan.pipelines) {
    RETURN_IF_ERROR(pipeline.dataset.status());
    // A job's client reads ahead by itself.
    if (!job) pipeline.buffer = options.per_replica_buffer_size * pipeline.replicas;
  }
  if (options.steps.has_value()) plan.steps = *options.steps;
  plan.limited = options.steps.has_value() || (!layout.all_here() && plan.steps >= 0);
  const bool errs = options.partial_batches == PartialBatches::kError && !plan.coordinated;
  const bool unknown = plan.steps == kUnknown && !end_alike;
  if (!layout.all_here() && plan.steps != kInfinite && (unknown || errs)) {
    if (!plan.group.connected()) return errs ? NeedsConnection() : NeedsSteps();
    plan.aligned = true;
  }
  const bool fills = options.partial_batches == PartialBatches::kPad ||
                     options.partial_batches == PartialBatches::kRepeat;
  if (fills && !plan.coordinated && plan.cardinality != kInfinite) {
    if (job) {
      return absl::InvalidArgumentError(
          "partial_batches kPad and kRepeat read the data again from the start, which a job does "
          "not deliver twice; use kEmpty or kDrop, or a coordinated job");
    }
    for (const PipelineInput& pipeline : plan.pipelines)
      if (pipeline.sizes.empty()) return NeedsBatchSize("partial_batches kPad or kRepeat");
  }
  plan.seeded = options.seed.has_value() || !layout.all_here();
  plan.seed = options.seed.value_or(Fingerprint(fingerprint, Fingerprint(plan.group.launch_id())));
  return absl::OkStatus();
}

// Adds pipelines for a coordinated job, in which each replica is a consumer.
absl::Status AddConsumers(Plan& plan, const Layout& layout, const Dataset& dataset,
                          const Job& job) {
  if (job.num_consumers != layout.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(job.node, " has num_consumers = ", job.num_consumers, ", but the group has ",
                     layout.size(), " replicas; each replica must be one consumer"));
  }
  std::optional<RemainderPolicy> policy;
  if (plan.options.partial_batches == PartialBatches::kDrop) policy = RemainderPolicy::kDrop;
  if (plan.options.partial_batches == PartialBatches::kError) policy = RemainderPolicy::kError;
  const int64_t rows = BatchSizeOf(dataset);
  for (int n = layout.first; n < layout.first + layout.count; ++n) {
    PipelineInput& input = plan.pipelines.emplace_back();
    input.dataset = AsConsumer(dataset, n, policy);
    if (rows > 0) input.sizes = {rows};
  }
  plan.coordinated = true;
  plan.steps = dataset.cardinality() == kInfinite ? kInfinite : kUnknown;
  return absl::OkStatus();
}

absl::StatusOr<ReplicaGroup> ReadersOf(const ReplicaGroup& whole, const InputOptions& options) {
  RETURN_IF_ERROR(CheckOptions(whole, options));
  absl::StatusOr<ReplicaGroup> readers = whole.Subsample(options.replicas_per_element);
  RETURN_IF_ERROR(Annotate(readers.status(), "replicas_per_element"));
  return readers;
}

}  // namespace

absl::StatusOr<Plan> PlanInput(const ReplicaGroup& whole, const Dataset& dataset,
                               const InputOptions& options) {
  RETURN_IF_ERROR(dataset.status());
  ASSIGN_OR_RETURN(const ReplicaGroup group, ReadersOf(whole, options));
  ASSIGN_OR_RETURN(const Job job, JobOf(dataset));
  Plan plan{
      .group = group, .whole = whole, .options = options, .cardinality = dataset.cardinality()};
  const uint64_t fingerprint = dataset.fingerprint();
  const bool coordinated = job.kind == Job::Kind::kCoordinated;
  const Layout layout =
      LayoutOf(group, coordinated ? ReplicationMode::kPerReplica : options.replication_mode);
  if (coordinated) {
    RETURN_IF_ERROR(AddConsumers(plan, layout, dataset, job));
    RETURN_IF_ERROR(Finish(plan, layout, fingerprint, /*end_alike=*/true, /*job=*/true));
    plan.must_match = AlikeIn(plan, dataset, job);
    return plan;
  }
  if (group.num_replicas_in_sync() == 1) {
    PipelineInput& input = plan.pipelines.emplace_back();
    input.dataset = input.front = dataset;
    if (const int64_t rows = BatchSizeOf(dataset); rows > 0) input.sizes = {rows};
    const bool counts_rest = options.partial_batches != PartialBatches::kDrop;
    plan.steps = counts_rest || dataset.cardinality() < 0 ? dataset.cardinality() : kUnknown;
    RETURN_IF_ERROR(
        Finish(plan, layout, fingerprint, /*end_alike=*/true, job.kind != Job::Kind::kNone));
    return plan;
  }
  RETURN_IF_ERROR(CheckDivisible(dataset, group.num_replicas_in_sync()));
  AutoShardPolicy policy = AutoShardPolicy::kOff;
  if (layout.size() > 1 && job.kind == Job::Kind::kNone) {
    ASSIGN_OR_RETURN(policy, ResolvePolicy(dataset, options, layout.size()));
  } else if (layout.size() > 1 && job.kind == Job::Kind::kAnonymous &&
             options.auto_shard != AutoShardPolicy::kOff) {
    return absl::InvalidArgumentError(absl::StrCat(
        job.node, " has no job_name, so each of the ", layout.size(),
        " input pipelines would read its own job in its own order; set job_name to share one job, "
        "consumer_index and num_consumers to coordinate them, or auto_shard kOff to read all data "
        "in each"));
  }
  const Division division(dataset, options, policy, layout);
  if (division.by_data() && options.partial_batches == PartialBatches::kDrop &&
      BatchSizeOf(dataset) <= 0) {
    return NeedsBatchSize("partial_batches kDrop with auto_shard kData");
  }
  for (int n = layout.first; n < layout.first + layout.count; ++n) {
    PipelineInput& input = plan.pipelines.emplace_back(division.Pipeline(n));
    if (job.kind == Job::Kind::kNamed) input.dataset = AsReader(input.dataset);
  }
  const Dataset unsharded = ShardOf(dataset, policy, 1, 0);
  for (PipelineInput& input : plan.pipelines) input.front = unsharded;
  // A process learns only by reading how many elements of a shared job it gets.
  plan.steps = job.kind == Job::Kind::kNone || dataset.cardinality() == kInfinite ? division.Steps()
                                                                                  : kUnknown;
  RETURN_IF_ERROR(
      Finish(plan, layout, fingerprint, division.by_data(), job.kind != Job::Kind::kNone));
  plan.must_match = AlikeIn(plan, dataset, job);
  return plan;
}

absl::StatusOr<Plan> PlanInputFromFunction(const ReplicaGroup& whole,
                                           const std::function<Dataset(const InputContext&)>& fn,
                                           const InputOptions& options) {
  ASSIGN_OR_RETURN(const ReplicaGroup group, ReadersOf(whole, options));
  const Layout layout = LayoutOf(group, options.replication_mode);
  Plan plan{.group = group, .whole = whole, .options = options};
  bool job = false;
  int coordinated = 0;
  for (int n = layout.first; n < layout.first + layout.count; ++n) {
    PipelineInput& input = plan.pipelines.emplace_back();
    input.dataset = input.front = fn({layout.size(), n, group.num_replicas_in_sync()});
    input.replicas = layout.replicas[n];
    RETURN_IF_ERROR(input.dataset.status());
    RETURN_IF_ERROR(
        Annotate(plan.pipelines[0].dataset.element_spec().Admits(input.dataset.element_spec()),
                 "the datasets of input pipelines ", layout.first, " and ", n, " differ"));
    ASSIGN_OR_RETURN(const Job of, JobOf(input.dataset));
    job = job || of.kind != Job::Kind::kNone;
    coordinated += of.kind == Job::Kind::kCoordinated ? 1 : 0;
    if (const int64_t rows = BatchSizeOf(input.dataset); rows > 0) input.sizes = {rows};
  }
  if (coordinated > 0 && (coordinated < layout.count || layout.replicas[layout.first] > 1)) {
    return absl::InvalidArgumentError(
        "in a coordinated read each replica is a consumer: use ReplicationMode::kPerReplica, and "
        "input_pipeline_id as each dataset's consumer_index");
  }
  plan.coordinated = coordinated > 0;
  const auto endless = [](const PipelineInput& input) {
    return input.dataset.cardinality() == kInfinite;
  };
  if (std::all_of(plan.pipelines.begin(), plan.pipelines.end(), endless))
    plan.cardinality = plan.steps = kInfinite;
  else if (plan.pipelines.size() == 1)
    plan.cardinality = plan.pipelines[0].dataset.cardinality();
  RETURN_IF_ERROR(Finish(plan, layout, /*fingerprint=*/0, plan.coordinated, job));
  plan.must_match = {{"the element_spec", plan.pipelines[0].dataset.element_spec().ToString()}};
  return plan;
}

}  // namespace penstock::replica
