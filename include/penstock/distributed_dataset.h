// SPDX-License-Identifier: Apache-2.0
// One dataset read by a group of replicas (penstock/replica.h), each with its own
// part of every global batch; what tf.distribute's distributed datasets offer.
// docs/replicas.md tells the rules with examples.
//
//   ASSIGN_OR_RETURN(ps::ReplicaGroup group, ps::ReplicaGroup::Mirrored({"CPU:0", "CPU:1"}));
//   ASSIGN_OR_RETURN(ps::DistributedDataset batches, ps::DistributeDataset(group, dataset));
//   for (absl::StatusOr<ps::DistributedValues>& values : batches.Elements()) …
//
// All replicas make the same number of steps. Where a process cannot know by itself
// how many the others make, they agree step by step if the group is connected
// (ReplicaGroup::Connect, FromNccl); else that is refused when the dataset is
// distributed, in words that say what helps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "penstock/dataset.h"
#include "penstock/device_element.h"
#include "penstock/element.h"
#include "penstock/iterator.h"
#include "penstock/replica.h"
#include "penstock/spec.h"

namespace penstock {

// How a dataset of this process's own is divided among the pipelines: one per
// process, or one per replica (ReplicationMode). What is read through a named or
// a coordinated job is divided already, and never sharded again.
enum class AutoShardPolicy : int8_t {
  kOff = -1,  // every pipeline reads all of it
  kAuto = 0,  // kData; kFile where the data has no end and enough files
  kFile = 1,  // pipeline i reads files i, i + n, …
  kData = 2,  // all read all, and take their parts of each batch: batches stay whole
  kHint = 3,  // at the Shard of kShardHint (penstock/sharding.h)
};

// What becomes of a step for which data is missing: the last one, or those that
// other replicas still make.
enum class PartialBatches : uint8_t {
  kEmpty = 0,   // replicas without data get batches of 0 rows
  kDrop = 1,    // the step is left out, for all replicas
  kPad = 2,     // rows from the front of the data fill up each batch, with weight 0
  kRepeat = 3,  // the same, and they count
  kError = 4,   // the step is an OutOfRange of all replicas instead, and the last one
};

enum class ReplicationMode : uint8_t {
  kPerWorker = 0,   // one pipeline per process, whose batches its replicas get in turn
  kPerReplica = 1,  // one per replica, each read ahead by itself
};

struct InputOptions {
  AutoShardPolicy auto_shard = AutoShardPolicy::kAuto;
  PartialBatches partial_batches = PartialBatches::kEmpty;
  ReplicationMode replication_mode = ReplicationMode::kPerWorker;
  // Steps of one pass, for all replicas: less data is filled up as
  // partial_batches says (kDrop: OutOfRange), more is left. Not given: as the data has.
  std::optional<int64_t> steps;
  int64_t per_replica_buffer_size = 1;  // batches made ahead; 0: none
  // Values of replicas on GPUs land there (DistributedValues::on_device); false leaves
  // them in host memory. FailedPrecondition where this process has no such GPU.
  bool fetch_to_device = true;
  // So many replicas of a process, one behind the other, get the same element (ranks of
  // tensor or pipeline parallelism): it is read once for them, and each device copies it
  // from the one slot in host memory, which goes back behind the last copy. Elements in
  // host memory are then shared, for reading only. Batches are cut, jobs are coordinated
  // and steps agreed on as in a group of one replica for each. InvalidArgument where it
  // does not divide the replicas of every process.
  int replicas_per_element = 1;
  // Of passes; not given: drawn anew for each, in groups of several processes
  // alike in all of them (from the launch, the dataset and the pass's number).
  std::optional<uint64_t> seed;
};

// What a dataset function is told about the pipeline that it makes.
struct InputContext {
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;
  // InvalidArgument if `global_batch_size` cannot be divided by the replicas.
  absl::StatusOr<int64_t> GetPerReplicaBatchSize(int64_t global_batch_size) const;
  std::string ToString() const;  // "InputContext(input pipeline id 0, total: 1)"
};

// What each replica's elements look like.
class PerReplicaSpec {
 public:
  PerReplicaSpec() = default;
  explicit PerReplicaSpec(std::vector<Spec> specs) : specs_(std::move(specs)) {}

  size_t size() const { return specs_.size(); }
  const Spec& operator[](size_t replica) const { return specs_[replica]; }
  // OK if what `other` describes may be given to who expects this;
  // InvalidArgument for another number of replicas, or naming replica and leaf.
  absl::Status Admits(const PerReplicaSpec& other) const;
  absl::Status Admits(const DistributedValues& values) const;
  // The tightest that admits both. InvalidArgument for other numbers of replicas,
  // nests or dtypes.
  absl::StatusOr<PerReplicaSpec> MostGeneral(const PerReplicaSpec& other) const;
  // The nest, with PerReplicaSpec(…) at its leaves; the plain spec of a lone replica.
  std::string ToString() const;
  friend bool operator==(const PerReplicaSpec&, const PerReplicaSpec&) = default;

 private:
  std::vector<Spec> specs_;
};

// One step's elements of the local replicas. Those that landed are on the replica's
// device, the others in host memory.
class DistributedValues {
 public:
  DistributedValues() = default;
  // `weights` {}, or one list per replica, which may be empty.
  explicit DistributedValues(std::vector<Element> elements,
                             std::vector<std::vector<float>> weights = {});
  // `on_devices`: one per replica; where it is not empty, its element is.
  DistributedValues(std::vector<Element> elements, std::vector<DeviceElement> on_devices,
                    std::vector<std::vector<float>> weights);

  size_t size() const { return elements_.size(); }
  // Empty if the replica's values landed.
  const Element& operator[](size_t replica) const { return elements_[replica]; }
  Element& operator[](size_t replica) { return elements_[replica]; }
  bool landed(size_t replica) const {
    return !on_devices_.empty() && static_cast<bool>(on_devices_[replica]);
  }
  // REQUIRES: landed(replica).
  const DeviceElement& on_device(size_t replica) const { return on_devices_[replica]; }
  DeviceElement& on_device(size_t replica) { return on_devices_[replica]; }
  // FailedPrecondition in words if `landed` is not so for all replicas; `what` needs it.
  absl::Status CheckLanded(bool landed, std::string_view what) const;
  PerReplica<Tensor> tensor(size_t leaf) const;               // valid while the elements live
  PerReplica<Tensor> operator[](std::string_view key) const;  // as Element's
  // What each row counts (PartialBatches::kPad); empty: all count 1.
  absl::Span<const float> weights(size_t replica) const;
  PerReplicaSpec spec() const;
  // The nest, with PerReplica:{…} at its leaves; the plain element of a lone replica.
  // Of values that landed, their shapes.
  std::string ToString() const;

 private:
  friend class ReplicaGroup;
  std::string LeafText(size_t replica, size_t leaf) const;

  std::vector<Element> elements_;
  std::vector<DeviceElement> on_devices_;  // {}: none landed
  std::vector<std::vector<float>> weights_;
};

inline absl::Span<const Element> LocalResults(const DistributedValues& values) {
  return absl::MakeConstSpan(&values[0], values.size());
}

// What a distributed iterator is made of (dataplane/replica).
class DistributedIteratorImpl {
 public:
  virtual ~DistributedIteratorImpl() = default;
  virtual absl::StatusOr<std::optional<DistributedValues>> Next(std::optional<int64_t> step) = 0;
  virtual absl::StatusOr<State> Save() = 0;
  virtual absl::Status Restore(const State& state) = 0;
  virtual absl::Status Commit(const State& state) = 0;
  virtual absl::Status Stop(absl::Duration bound) = 0;
  virtual std::vector<DeviceLandingStats> LandingStats() const = 0;
};

// Next(), Save() and Restore() are for one thread at a time and outside of Run();
// Stop() is for any. Destroying it stops it.
//
// In a connected group the first Next() checks that all processes read alike: the
// dataset, its job, the policy and the step. FailedPrecondition says who differs, and
// how. Where steps are agreed on one by one, destroying it before its end ends the
// others' with Unavailable, as a process that dies does, naming it; under kDrop and
// kError each Next() waits until all processes have theirs, under the other policies
// only one without data does.
class DistributedIterator {
 public:
  explicit DistributedIterator(std::unique_ptr<DistributedIteratorImpl> impl)
      : impl_(std::move(impl)) {}

  // The next step's values; nullopt at the end, which comes at the same step for
  // all replicas, and ever after. An error of one replica is the step's; reading
  // may go on behind it as behind Iterator::Next()'s.
  absl::StatusOr<std::optional<DistributedValues>> Next() { return impl_->Next(std::nullopt); }
  // The same, and checks that this is step `step`: OutOfRange otherwise.
  absl::StatusOr<std::optional<DistributedValues>> Next(int64_t step) { return impl_->Next(step); }
  // The same with OutOfRange at the end.
  absl::StatusOr<DistributedValues> GetNext();

  // The position of all local replicas behind the last step, as one state.
  absl::StatusOr<State> Save() { return impl_->Save(); }
  // InvalidArgument for a state of another dataset or of another group.
  absl::Status Restore(const State& state) { return impl_->Restore(state); }
  // As Iterator::Commit(), for all local replicas.
  absl::Status Commit(const State& state) { return impl_->Commit(state); }
  absl::Status Stop(absl::Duration bound = absl::Seconds(10)) { return impl_->Stop(bound); }
  // Of the local replicas whose values land on a device, in their order. Any thread.
  std::vector<DeviceLandingStats> LandingStats() const { return impl_->LandingStats(); }

 private:
  std::unique_ptr<DistributedIteratorImpl> impl_;
};

// A range over absl::StatusOr<DistributedValues>, as ElementRange.
class DistributedRange {
 public:
  explicit DistributedRange(absl::StatusOr<DistributedIterator> iterator)
      : iterator_(std::move(iterator)) {}

  class Cursor {
   public:
    explicit Cursor(DistributedRange* range) : range_(range) { ++*this; }
    absl::StatusOr<DistributedValues>& operator*() { return *range_->current_; }
    Cursor& operator++() {
      range_->Advance();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !range_->current_.has_value(); }

   private:
    DistributedRange* range_;
  };
  Cursor begin() { return Cursor(this); }
  std::default_sentinel_t end() { return std::default_sentinel; }

 private:
  friend class Cursor;
  void Advance();

  absl::StatusOr<DistributedIterator> iterator_;
  std::optional<absl::StatusOr<DistributedValues>> current_;
  bool over_ = false;
};

// A value; copying is cheap. Any thread.
class DistributedDataset {
 public:
  const ReplicaGroup& group() const;
  PerReplicaSpec element_spec() const;
  Cardinality cardinality() const;  // of the dataset given, in its own elements
  // Steps of one pass; kUnknown where only reading tells.
  Cardinality steps() const;
  std::string Explain() const;  // each local pipeline as a tree of nodes

  // `fn` of each replica's element, after it was cut and filled up; in this
  // process, each replica's by itself. InvalidArgument where it does not trace.
  absl::StatusOr<DistributedDataset> Map(MapFunction fn) const;

  // So many steps are on their way to each replica's device ahead of the one that Next()
  // gives; else it is per_replica_buffer_size, at most 4. 0: copies begin in Next(). A device then
  // holds `depth` + 2 steps at a time: let go of values when the next have come. Stands
  // behind Map; what a Map gives is made, and copied, in Next(). Replicas whose values stay
  // in host memory are not concerned. InvalidArgument below 0 or above 1024.
  absl::StatusOr<DistributedDataset> PrefetchToDevice(int depth) const;

  // From the front; each pass is shuffled anew where the dataset is.
  absl::StatusOr<DistributedIterator> MakeIterator() const;
  DistributedRange Elements() const { return DistributedRange(MakeIterator()); }

  // Folds over all steps: `fn` takes (state, values) and gives the next state.
  template <class S, class F>
  absl::StatusOr<S> Reduce(S state, F fn) const {
    for (absl::StatusOr<DistributedValues>& values : Elements()) {
      if (!values.ok()) return values.status();
      state = fn(std::move(state), *values);
    }
    return state;
  }

  struct Plan;  // dataplane/replica/input_plan.h
  explicit DistributedDataset(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

 private:
  std::shared_ptr<const Plan> plan_;
};

// `dataset` gives global batches of G rows; of n replicas, the first G mod n get
// ceil(G / n) rows of a batch and the others floor(G / n), in turns that move on
// from step to step. A batch that comes short is filled up from the next (not
// under AutoShardPolicy::kData). Where G cannot be told beforehand each batch is
// cut into n parts by the same rule. One replica gets what the dataset gives.
//
// A dataset behind Distribute, in a group of several pipelines:
//   with a job_name, it is shared by them and not sharded again;
//   with consumer_index (of whatever value) and num_consumers = replicas, replica i
//   is consumer i, and elements are the batches of replicas as they are;
//   with neither, only under kOff.
//
// InvalidArgument for a dataset without rows to divide (call Batch) or options
// that do not go together; FailedPrecondition if the number of steps cannot be known.
absl::StatusOr<DistributedDataset> DistributeDataset(const ReplicaGroup& group,
                                                     const Dataset& dataset,
                                                     InputOptions options = {});

// `fn` makes the dataset of each local pipeline, of batches for a replica each;
// they are neither cut nor sharded. All must have one element_spec.
absl::StatusOr<DistributedDataset> DistributeDatasetsFromFunction(
    const ReplicaGroup& group, const std::function<Dataset(const InputContext&)>& fn,
    InputOptions options = {});

template <class F>
auto ReplicaGroup::Run(F fn, const DistributedValues& values) const {
  constexpr bool kOnDevice =
      std::is_invocable_v<F&, const DeviceElement&> && !std::is_invocable_v<F&, const Element&>;
  const auto each = [&](size_t i) {
    if constexpr (kOnDevice)
      return fn(values.on_device(i));
    else
      return fn(values[i]);
  };
  using Each = decltype(replica_internal::RunEach(*this, each));
  if (absl::Status local = CheckLocal(values.size()); !local.ok()) return Each(local);
  if (absl::Status place = values.CheckLanded(kOnDevice, "the function"); !place.ok())
    return Each(place);
  return replica_internal::RunEach(*this, each);
}

}  // namespace penstock
