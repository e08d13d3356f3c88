// SPDX-License-Identifier: Apache-2.0
// One dataset that a group of replicas (penstock/replica.h) reads. Each replica gets its own part
// of every global batch, as with tf.distribute's distributed datasets. docs/replicas.md explains
// the rules with examples.
//
//   PENSTOCK_ASSIGN_OR_RETURN(ps::ReplicaGroup group,
//                             ps::ReplicaGroup::Mirrored({"CPU:0", "CPU:1"}));
//   PENSTOCK_ASSIGN_OR_RETURN(ps::DistributedDataset batches,
//                             ps::DistributeDataset(group, dataset));
//   for (absl::StatusOr<ps::DistributedValues>& values : batches.Elements()) …
//
// All replicas make the same number of steps. If a process cannot know how many steps the other
// processes make, the processes of a connected group (ReplicaGroup::Connect, FromNccl) agree on
// each step. In a group that is not connected, DistributeDataset() refuses such a dataset with an
// error that names the remedies.
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

#pragma GCC visibility push(default)
namespace penstock {

// How a dataset of this process is divided among the pipelines: one per process, or one per replica
// (ReplicationMode). A dataset read through a named or coordinated job is already divided and is
// never sharded again.
enum class AutoShardPolicy : int8_t {
  kOff = -1,  // every pipeline reads the whole dataset
  kAuto = 0,  // kData; kFile if the data has no end and there are enough files
  kFile = 1,  // pipeline i reads files i, i + n, …
  kData = 2,  // each pipeline reads all batches, and takes its parts of each
  kHint = 3,  // divides at the Shard of kShardHint (penstock/sharding.h)
};

// What happens to a step for which some or all replicas have no data.
enum class PartialBatches : uint8_t {
  kEmpty = 0,   // replicas without data get batches of 0 rows
  kDrop = 1,    // all replicas leave the step out
  kPad = 2,     // rows from the front of the data fill up each batch, with weight 0
  kRepeat = 3,  // like kPad, but the added rows count
  kError = 4,   // all replicas get OutOfRange instead of the step, and the data ends
};

enum class ReplicationMode : uint8_t {
  kPerWorker = 0,   // one pipeline per process; its replicas get its batches in turn
  kPerReplica = 1,  // one pipeline per replica, each with its own read-ahead
};

struct InputOptions {
  AutoShardPolicy auto_shard = AutoShardPolicy::kAuto;
  PartialBatches partial_batches = PartialBatches::kEmpty;
  ReplicationMode replication_mode = ReplicationMode::kPerWorker;
  // The number of steps of one pass, for all replicas. If the data has fewer steps, partial_batches
  // determines how the missing steps are filled up (kDrop: OutOfRange). If the data has more steps,
  // the rest is not read. Not given: as many steps as the data has.
  std::optional<int64_t> steps;
  int64_t per_replica_buffer_size = 1;  // batches prepared in advance; 0: none
  // True: values of replicas on GPUs are copied to the GPU (DistributedValues::on_device);
  // FailedPrecondition if this process has no such GPU. False: all values stay in host memory.
  bool fetch_to_device = true;
  // This many consecutive replicas of a process get the same element (ranks of tensor or pipeline
  // parallelism). The element is read once for them. Each device copies it from the same slot in
  // host memory, which is returned after the last copy. Elements in host memory are then shared and
  // read-only. When batches are cut, jobs are coordinated and steps are agreed on, each such set of
  // replicas counts as one replica. InvalidArgument if this number does not divide the number of
  // replicas of every process.
  int replicas_per_element = 1;
  // The seed of the passes. Not given: each pass draws a new one. In a group of several processes,
  // the drawn seed is the same in all processes: it is derived from the launch, the dataset and the
  // number of the pass.
  std::optional<uint64_t> seed;
};

// Describes the pipeline for which a dataset function makes the dataset.
struct InputContext {
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;
  // InvalidArgument if `global_batch_size` is not a multiple of the number of replicas.
  absl::StatusOr<int64_t> GetPerReplicaBatchSize(int64_t global_batch_size) const;
  std::string ToString() const;  // "InputContext(input pipeline id 0, total: 1)"
};

// The element spec of each replica.
class PerReplicaSpec {
 public:
  PerReplicaSpec() = default;
  explicit PerReplicaSpec(std::vector<Spec> specs) : specs_(std::move(specs)) {}

  size_t size() const { return specs_.size(); }
  const Spec& operator[](size_t replica) const { return specs_[replica]; }
  // Returns OK if values that `other` describes fit where this spec is expected. InvalidArgument if
  // the numbers of replicas differ, or if a leaf does not fit; in that case the message names the
  // replica and the leaf.
  absl::Status Admits(const PerReplicaSpec& other) const;
  absl::Status Admits(const DistributedValues& values) const;
  // Returns the tightest spec that admits all values of both specs. InvalidArgument if the numbers
  // of replicas, nests or dtypes differ.
  absl::StatusOr<PerReplicaSpec> MostGeneral(const PerReplicaSpec& other) const;
  // Returns the nest with PerReplicaSpec(…) at its leaves; for a single replica its plain spec.
  std::string ToString() const;
  friend bool operator==(const PerReplicaSpec&, const PerReplicaSpec&) = default;

 private:
  std::vector<Spec> specs_;
};

// One step's elements of the local replicas. Each element is on its replica's device
// (`is_on_device`) or in host memory.
class DistributedValues {
 public:
  DistributedValues() = default;
  // `weights` is empty or has one list per replica, which may be empty.
  explicit DistributedValues(std::vector<Element> elements,
                             std::vector<std::vector<float>> weights = {});
  // `on_devices` has one entry per replica. An entry that is not empty holds the replica's element.
  DistributedValues(std::vector<Element> elements, std::vector<DeviceElement> on_devices,
                    std::vector<std::vector<float>> weights);

  size_t size() const { return elements_.size(); }
  // Empty if the replica's values are on its device.
  const Element& operator[](size_t replica) const { return elements_[replica]; }
  Element& operator[](size_t replica) { return elements_[replica]; }
  bool is_on_device(size_t replica) const {
    return !on_devices_.empty() && static_cast<bool>(on_devices_[replica]);
  }
  [[deprecated("is_on_device")]] bool landed(size_t replica) const { return is_on_device(replica); }
  // REQUIRES: is_on_device(replica).
  const DeviceElement& on_device(size_t replica) const { return on_devices_[replica]; }
  DeviceElement& on_device(size_t replica) { return on_devices_[replica]; }
  // FailedPrecondition unless is_on_device() is `expected` for every replica. The message names the
  // replica, and the caller, which is given as `what`.
  absl::Status CheckOnDevice(bool expected, std::string_view what) const;
  [[deprecated("CheckOnDevice")]] absl::Status CheckLanded(bool landed,
                                                           std::string_view what) const {
    return CheckOnDevice(landed, what);
  }
  PerReplica<Tensor> tensor(size_t leaf) const;               // valid while the elements live
  PerReplica<Tensor> operator[](std::string_view key) const;  // as Element's
  // Returns the weight of each row (PartialBatches::kPad); empty: all rows count 1.
  absl::Span<const float> weights(size_t replica) const;
  PerReplicaSpec spec() const;
  // Returns the nest with PerReplica:{…} at its leaves; for a single replica in host memory its
  // plain element. Shows only the dtypes and shapes of values that are on a device.
  std::string ToString() const;

 private:
  friend class ReplicaGroup;
  std::string LeafText(size_t replica, size_t leaf) const;

  std::vector<Element> elements_;
  std::vector<DeviceElement> on_devices_;  // {}: none on a device
  std::vector<std::vector<float>> weights_;
};

inline absl::Span<const Element> LocalResults(const DistributedValues& values) {
  return absl::MakeConstSpan(&values[0], values.size());
}

// The implementation of a DistributedIterator, in dataplane/replica.
class DistributedIteratorImpl {
 public:
  virtual ~DistributedIteratorImpl() = default;
  virtual absl::StatusOr<std::optional<DistributedValues>> Next() = 0;
  virtual absl::Status CheckStep(int64_t step) const = 0;
  virtual absl::StatusOr<State> Save() = 0;
  virtual absl::Status Restore(const State& state) = 0;
  virtual absl::Status Commit(const State& state) = 0;
  virtual absl::Status Stop(absl::Duration bound) = 0;
  virtual std::vector<DeviceCopyStats> CopyStats() const = 0;
};

// Reads a distributed dataset step by step. One thread at a time may call Next(), Save() and
// Restore(), but not inside Run(). Any thread may call Stop(). The destructor stops the iterator.
//
// In a connected group the first Next() checks that all processes have the same dataset, job,
// policy and step. If not, it returns FailedPrecondition, which names the processes that differ and
// the differences.
//
// If the processes agree on each step, and one process dies or destroys its iterator before the
// end, the iterators of the other processes end with Unavailable, which names that process. Under
// kDrop and kError each Next() waits for the answers of all processes. Under the other policies
// only a process without data waits.
class DistributedIterator {
 public:
  explicit DistributedIterator(std::unique_ptr<DistributedIteratorImpl> impl)
      : impl_(std::move(impl)) {}

  // Returns the next step's values, or nullopt at the end and ever after. The end comes at the same
  // step for all replicas. An error of one replica is the error of the step. Reading may continue
  // after it, according to the rules of Iterator::Next().
  absl::StatusOr<std::optional<DistributedValues>> Next() { return impl_->Next(); }
  // Same as Iterator::CheckStep().
  absl::Status CheckStep(int64_t step) const { return impl_->CheckStep(step); }
  [[deprecated("CheckStep")]] absl::StatusOr<std::optional<DistributedValues>> Next(int64_t step) {
    if (absl::Status next = CheckStep(step); !next.ok()) return next;
    return Next();
  }
  // Same as Next(), but OutOfRange at the end.
  absl::StatusOr<DistributedValues> GetNext();

  // Returns the position of all local replicas after the last step, as one state.
  absl::StatusOr<State> Save() { return impl_->Save(); }
  // InvalidArgument for a state of a different dataset or group.
  absl::Status Restore(const State& state) { return impl_->Restore(state); }
  // Same as Iterator::Commit(), for all local replicas.
  absl::Status Commit(const State& state) { return impl_->Commit(state); }
  absl::Status Stop(absl::Duration bound = absl::Seconds(10)) { return impl_->Stop(bound); }
  // Returns the stats of the local replicas whose values go to a device, in the replicas' order.
  // Any thread.
  std::vector<DeviceCopyStats> CopyStats() const { return impl_->CopyStats(); }
  [[deprecated("CopyStats")]] std::vector<DeviceCopyStats> LandingStats() const {
    return CopyStats();
  }

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

// A dataset and how a group reads it. A value; copying is cheap. Any thread.
class DistributedDataset {
 public:
  const ReplicaGroup& group() const;
  PerReplicaSpec element_spec() const;
  Cardinality cardinality() const;  // of the original dataset, counted in its own elements
  // The number of steps of one pass; kUnknown if only reading shows it.
  Cardinality steps() const;
  std::string Explain() const;  // each local pipeline as a tree of nodes

  // Applies `fn` to each replica's element after the element has been cut and filled up. Runs in
  // this process, separately for each replica. InvalidArgument if `fn` cannot be traced, or after
  // PrefetchToDevice().
  absl::StatusOr<DistributedDataset> Map(MapFunction fn) const;

  // Begins to copy a step's values to the replicas' devices up to `depth` steps before Next()
  // returns them. Without this call the depth is per_replica_buffer_size, but at most 4. 0: copies
  // begin in Next(). A device holds at most `depth` + 2 steps, so destroy a step's values once you
  // have the next. Call it after Map; the results of a Map are made, and copied, only in Next().
  // Has no effect on replicas whose values stay in host memory. InvalidArgument if `depth` is below
  // 0 or above 1024.
  absl::StatusOr<DistributedDataset> PrefetchToDevice(int depth) const;

  // Makes an iterator that starts at the beginning. Each pass has a new order if the dataset
  // reshuffles in each pass.
  absl::StatusOr<DistributedIterator> MakeIterator() const;
  DistributedRange Elements() const { return DistributedRange(MakeIterator()); }

  // Folds over all steps: `fn` takes (state, values) and returns the next state.
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

// Distributes `dataset`, which yields global batches of G rows. Of n replicas, the first G mod n
// get ceil(G / n) rows of a batch, and all others get floor(G / n) rows. From step to step, the
// larger parts move on to other replicas, and a batch with too few rows is filled up from the next
// batch. Under AutoShardPolicy::kData, the parts do not move and batches are not filled up. If G
// cannot be known in advance, each batch is cut into n parts by the same rule. A single replica
// gets the dataset's elements as they are.
//
// If a group has several pipelines, and the dataset reads through Distribute:
//   with a job_name, the pipelines share the job, and the dataset is not sharded again;
//   with consumer_index (of any value) and num_consumers = replicas, replica i is consumer i, and
//   each element is one replica's batch;
//   with neither, the dataset is allowed only under kOff.
//
// InvalidArgument for a dataset without rows to divide (call Batch), or for options that conflict.
// FailedPrecondition if the number of steps cannot be known.
absl::StatusOr<DistributedDataset> DistributeDataset(const ReplicaGroup& group,
                                                     const Dataset& dataset,
                                                     InputOptions options = {});

// Calls `fn` for each local pipeline, to make the pipeline's dataset. The elements of this dataset
// are batches for one replica each, which are neither cut nor sharded. All these datasets must have
// one element_spec.
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
  if (absl::Status place = values.CheckOnDevice(kOnDevice, "the function"); !place.ok())
    return Each(place);
  return replica_internal::RunEach(*this, each);
}

}  // namespace penstock
#pragma GCC visibility pop
