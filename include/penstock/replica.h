// SPDX-License-Identifier: Apache-2.0
// The replicas of a synchronous trainer, which step together in one process or in several, and
// operations on per-replica values. penstock/distributed_dataset.h gives them a dataset to read.
// The guide is docs/replicas.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "penstock/element.h"
#include "penstock/map.h"
#include "penstock/moved_field.h"
#include "penstock/status.h"

#pragma GCC visibility push(default)
namespace penstock {

class DistributedValues;  // penstock/distributed_dataset.h
namespace replica {
class Collective;  // dataplane/replica/collective/collective.h
class ReplicaGroupAccess;
}  // namespace replica
namespace replica_internal {
template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;
}

// The device on which a replica computes.
struct Device {
  enum class Kind : uint8_t { kCpu = 0, kGpu = 1 };
  Kind kind = Kind::kCpu;
  int index = 0;
  std::string ToString() const;  // "GPU:0"
  friend bool operator==(const Device&, const Device&) = default;
};

// Parses
//   device = [ "/" ] [ "device:" ] kind [ ":" index ]; kind = "CPU" | "GPU"
// in any case; without an index, the index is 0. "GPU:1", "/gpu:1" and "/device:GPU:1" name the
// same device. InvalidArgument, with this grammar, for any other text.
absl::StatusOr<Device> ParseDevice(std::string_view name);

// One value for each local replica, in the replicas' order.
template <class T>
class PerReplica {
 public:
  PerReplica() = default;
  explicit PerReplica(std::vector<T> values) : values_(std::move(values)) {}

  size_t size() const { return values_.size(); }
  typename std::vector<T>::const_reference operator[](size_t replica) const {
    return values_[replica];
  }
  typename std::vector<T>::reference operator[](size_t replica) { return values_[replica]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  // Returns the value of a single replica. REQUIRES: size() == 1.
  const T& value() const { return values_[0]; }

  // Returns the plain value if there is one replica; otherwise "PerReplica:{", for each replica a
  // line "  0: <value>,", and "}".
  std::string ToString() const {
    if (size() == 1) return Text(values_[0]);
    std::string text = "PerReplica:{";
    for (size_t i = 0; i < size(); ++i)
      absl::StrAppend(&text, i == 0 ? "\n  " : ",\n  ", i, ": ", Text(values_[i]));
    return text + "\n}";
  }

 private:
  static std::string Text(const T& value) {
    if constexpr (requires { value.ToString(); })
      return value.ToString();
    else
      return absl::StrCat(value);
  }

  std::vector<T> values_;
};

// Names the replica for which DistributeValuesFromFunction() calls its function.
struct ValueContext {
  int replica_id_in_sync_group = 0;
  int num_replicas_in_sync = 1;
};

enum class ReduceOp : uint8_t { kSum = 0, kMean = 1 };

struct ReplicaGroupOptions {
  std::vector<std::string> devices = {"CPU:0"};  // of this process, one replica each; may repeat
  // The number of replicas of each process, at least 1; {}: there is no other process.
  std::vector<int> replicas_of_process;
  int process = 0;
  // An id that is equal in all processes of one launch, and different in the next launch. Seeds
  // that a dataset does not give are derived from it. Empty: all launches derive the same seeds.
  std::string launch_id;
  MovedField<std::string> launch;  // the name of launch_id before 0.9; 0.10 removes it
};

struct ConnectOptions {
  // "host:port" at which process 0 listens for the other processes; empty: MASTER_ADDR and
  // MASTER_PORT. Under torchrun, torch itself often uses that port; then give a different address
  // here.
  std::string address;
  absl::Duration timeout = absl::Seconds(60);  // until all processes have connected
  // When a process is killed, the other processes notice it at once. A process whose machine or
  // network fails counts as gone after this time without a byte from it.
  absl::Duration silence = absl::Seconds(10);
};

// The replicas of all processes, and the devices of this process. A value; copying is cheap enough.
// Any thread may call any method, except for operations across processes (Reduce(), Gather(),
// iterators, StepAligner). Calls of these are matched by their order, as in NCCL, so all processes
// must make the same calls in the same order, on one thread at a time.
class ReplicaGroup {
 public:
  // Makes a group of one process per replica from the variables of torchrun (RANK, WORLD_SIZE,
  // TORCHELASTIC_RUN_ID), Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_ID) or Open MPI
  // (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE). With several `devices` each process has one
  // replica per device. FailedPrecondition if none of the variables is set. InvalidArgument, with
  // the variable's name, if a variable is not valid.
  static absl::StatusOr<ReplicaGroup> FromEnvironment(std::vector<std::string> devices = {"CPU:0"});
  // Makes a group of this process alone, with one replica per device. {}: one replica per GPU of
  // this process or, without a GPU, one on the CPU.
  static absl::StatusOr<ReplicaGroup> Mirrored(std::vector<std::string> devices = {});
  // Makes a group of one process per rank of an NCCL communicator (an ncclComm_t). Each process has
  // one replica, on the communicator's device. The communicator must outlive the group and
  // everything made from it. Penstock uses the communicator only in this call, to split off one of
  // its own with ncclCommSplit. All ranks must make this call. Rank 0 draws the group's launch_id
  // and sends it to the other ranks. Unimplemented in a build without CUDA. FailedPrecondition if
  // libnccl.so.2 (2.18 or later) cannot be opened.
  static absl::StatusOr<ReplicaGroup> FromNccl(void* communicator);
  // Makes a group from explicit options. Processes may have different numbers of replicas.
  static absl::StatusOr<ReplicaGroup> Create(ReplicaGroupOptions options);

  // Returns this group with its processes connected over TCP, so that they can step, reduce and
  // gather together. All processes must call it. DeadlineExceeded, which names the missing
  // processes, if some did not call it in time. InvalidArgument without an address.
  // FailedPrecondition if the processes belong to different launches.
  absl::StatusOr<ReplicaGroup> Connect(ConnectOptions options = {}) const;
  // Returns a group of the first of every `n` replicas of each process, connected as this group is.
  // InvalidArgument if n does not divide the number of replicas of every process.
  absl::StatusOr<ReplicaGroup> Subsample(int n) const;

  // Names before 0.9. Release 0.10 removes them.
  [[deprecated("Create")]] static absl::StatusOr<ReplicaGroup> Of(ReplicaGroupOptions options);
  [[deprecated("Subsample")]] absl::StatusOr<ReplicaGroup> EveryNth(int n) const;
  [[deprecated("launch_id")]] const std::string& launch() const { return launch_id(); }

  // Returns whether all processes of the group can exchange values.
  bool connected() const { return num_processes() == 1 || collective_ != nullptr; }

  int num_replicas_in_sync() const { return replicas_; }
  int num_processes() const { return static_cast<int>(options_.replicas_of_process.size()); }
  int process() const { return options_.process; }
  absl::Span<const int> replicas_of_process() const { return options_.replicas_of_process; }
  // This process has the replicas [first_replica(), first_replica() + num_local_replicas()).
  int first_replica() const { return first_replica_; }
  int num_local_replicas() const { return static_cast<int>(devices_.size()); }
  absl::Span<const Device> devices() const { return devices_; }
  const std::string& launch_id() const { return options_.launch_id; }
  std::string ToString() const;  // "4 replica(s) in 2 process(es); here 2 and 3 on GPU:0 and GPU:1"

  // --- Functions per replica ---------------------------------------------------
  // Calls `fn` with each local replica's value, and returns when all calls have returned. Each call
  // has its own thread; the first replica's is the caller's thread. `fn` takes a T. For
  // DistributedValues, it takes an Element, or a DeviceElement if the values are on a device. `fn`
  // returns nothing, a value, an absl::Status or an absl::StatusOr. If calls fail, Run() returns
  // the error of the first replica whose call failed. Inside `fn`, reading an iterator or calling
  // Run() is FailedPrecondition.
  template <class F, class T>
  auto Run(F fn, const PerReplica<T>& values) const;
  template <class F>
  auto Run(F fn, const DistributedValues& values) const;
  // Applies a traced function (penstock/map.h) to each replica's element.
  absl::StatusOr<DistributedValues> RunTraced(const MapFunction& fn,
                                              const DistributedValues& values) const;

  // --- Values of all replicas ----------------------------------------------------
  // All processes get the same bits, because each process combines the values of all replicas in
  // the order of the replicas. Each process therefore receives all values: use these calls for
  // losses, counts and small models. FailedPrecondition if the group has other processes and is not
  // connected. Once a process is gone, the error is the one that ended the connection.
  //
  // Returns the sum or the mean over all replicas, computed in double, int64_t or uint64_t.
  template <replica_internal::Arithmetic T>
  absl::StatusOr<T> Reduce(ReduceOp op, const PerReplica<T>& values) const;
  // Reduces vectors position by position. InvalidArgument if their lengths differ.
  template <replica_internal::Arithmetic T>
  absl::StatusOr<std::vector<T>> Reduce(ReduceOp op,
                                        const PerReplica<std::vector<T>>& values) const;
  // Reduces each tensor value by value; the tensor must have the same shape on all replicas. With
  // axis 0, also reduces over the rows of all replicas, whose numbers of rows may differ; each row
  // counts 1, or its DistributedValues::weights(). The sum takes integers and floating-point
  // numbers; the mean takes only floating-point numbers. InvalidArgument, with the leaf's name, if
  // a leaf does not fit.
  absl::StatusOr<Element> Reduce(ReduceOp op, const DistributedValues& values,
                                 std::optional<int> axis = std::nullopt) const;
  // Returns the rows of all replicas, one replica after the other.
  absl::StatusOr<Element> Gather(const DistributedValues& values) const;

  // Calls fn(i) for each local replica, as Run() does. FailedPrecondition inside Run().
  absl::Status OnEachReplica(const std::function<absl::Status(int replica)>& fn) const;

 private:
  friend class replica::ReplicaGroupAccess;  // dataplane/replica/collective/collective.h
  ReplicaGroup(ReplicaGroupOptions options, std::vector<Device> devices);
  absl::Status CheckLocal(size_t values) const;
  // Reduces the `values` of this process's replicas with the values of all other replicas, position
  // by position. T is double, int64_t or uint64_t; `type` is the tag of the caller's type.
  template <class T>
  absl::StatusOr<std::vector<T>> ReduceWide(ReduceOp op, const std::vector<std::vector<T>>& values,
                                            char type) const;
  // Returns the `bytes` of all processes, by process. `what`: the name of the caller.
  absl::StatusOr<std::vector<std::string>> Exchange(std::string_view what,
                                                    std::string_view bytes) const;
  // Returns the `values` of all replicas.
  absl::StatusOr<DistributedValues> OfAllReplicas(std::string_view what,
                                                  const DistributedValues& values) const;

  ReplicaGroupOptions options_;
  std::vector<Device> devices_;
  int first_replica_ = 0;
  int replicas_ = 0;
  std::shared_ptr<replica::Collective> collective_;
};

// Returns the values of this process's replicas.
template <class T>
absl::Span<const T> LocalResults(const PerReplica<T>& values) {
  return absl::MakeConstSpan(&*values.begin(), values.size());
}

// Calls fn(ValueContext) for each local replica and returns the results.
template <class F>
auto DistributeValuesFromFunction(const ReplicaGroup& group, F fn) {
  std::vector<std::invoke_result_t<F, const ValueContext&>> values;
  for (int i = 0; i < group.num_local_replicas(); ++i)
    values.push_back(fn(ValueContext{group.first_replica() + i, group.num_replicas_in_sync()}));
  return PerReplica(std::move(values));
}

// Returns whether this thread is inside a function that Run() calls.
bool InReplicaFunction();

// --- Templates ---------------------------------------------------------------------
namespace replica_internal {

template <class R>
struct ResultOf {
  using Value = R;
};
template <class R>
struct ResultOf<absl::StatusOr<R>> {
  using Value = R;
};

// Distinguishes types of different size or kind.
template <class T>
inline constexpr char kTypeTag = static_cast<char>(4 * sizeof(T) +
                                                   (std::is_floating_point_v<T> ? 2 : 0) +
                                                   (std::is_signed_v<T> ? 1 : 0));
// The type in which values of T are added.
template <class T>
using Widest = std::conditional_t<std::is_floating_point_v<T>, double,
                                  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// Calls fn(i) for each local replica.
template <class F>
auto RunEach(const ReplicaGroup& group, F fn) {
  using Result = std::invoke_result_t<F, size_t>;
  if constexpr (std::is_same_v<Result, absl::Status>) {
    return group.OnEachReplica([&](int i) { return fn(static_cast<size_t>(i)); });
  } else if constexpr (std::is_void_v<Result>) {
    return group.OnEachReplica([&](int i) {
      fn(static_cast<size_t>(i));
      return absl::OkStatus();
    });
  } else {
    using Value = typename ResultOf<Result>::Value;
    std::vector<std::optional<Value>> made(static_cast<size_t>(group.num_local_replicas()));
    absl::Status status = group.OnEachReplica([&](int i) -> absl::Status {
      const auto replica = static_cast<size_t>(i);
      if constexpr (std::is_same_v<Result, Value>) {
        made[replica].emplace(fn(replica));
      } else {
        Result result = fn(replica);
        if (!result.ok()) return result.status();
        made[replica].emplace(*std::move(result));
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return absl::StatusOr<PerReplica<Value>>(std::move(status));
    std::vector<Value> values;
    for (std::optional<Value>& value : made) values.push_back(*std::move(value));
    return absl::StatusOr<PerReplica<Value>>(PerReplica<Value>(std::move(values)));
  }
}

}  // namespace replica_internal

template <class F, class T>
auto ReplicaGroup::Run(F fn, const PerReplica<T>& values) const {
  using Each = decltype(replica_internal::RunEach(*this, [&](size_t i) { return fn(values[i]); }));
  if (absl::Status local = CheckLocal(values.size()); !local.ok()) return Each(local);
  return replica_internal::RunEach(*this, [&](size_t i) { return fn(values[i]); });
}

template <replica_internal::Arithmetic T>
absl::StatusOr<T> ReplicaGroup::Reduce(ReduceOp op, const PerReplica<T>& values) const {
  std::vector<std::vector<T>> vectors;
  for (const T value : values) vectors.push_back({value});
  absl::StatusOr<std::vector<T>> reduced = Reduce(op, PerReplica(std::move(vectors)));
  if (!reduced.ok()) return reduced.status();
  return reduced->front();
}

template <replica_internal::Arithmetic T>
absl::StatusOr<std::vector<T>> ReplicaGroup::Reduce(
    ReduceOp op, const PerReplica<std::vector<T>>& values) const {
  std::vector<std::vector<replica_internal::Widest<T>>> wide;
  for (const std::vector<T>& of_replica : values)
    wide.emplace_back(of_replica.begin(), of_replica.end());
  const auto reduced = ReduceWide(op, wide, replica_internal::kTypeTag<T>);
  if (!reduced.ok()) return reduced.status();
  std::vector<T> result;
  for (const auto value : *reduced) result.push_back(static_cast<T>(value));
  return result;
}

}  // namespace penstock
#pragma GCC visibility pop
