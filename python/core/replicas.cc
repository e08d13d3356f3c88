// SPDX-License-Identifier: Apache-2.0
#include "python/core/replicas.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "dataplane/dataset/engine/background_task.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"
#include "penstock/distributed_dataset.h"
#include "penstock/replica.h"
#include "python/core/casters.h"
#include "python/core/errors.h"
#include "python/core/iterators.h"
#include "python/core/signals.h"
#include "python/core/tensors.h"
#include "python/core/values.h"
#include "python/core/without_gil.h"

namespace penstock::python {

namespace py = pybind11;
using py::arg;

namespace {

// Calls `function` without the GIL.
template <class F>
auto Waiting(F function) {
  StayAwayIfLeaving();
  WithoutGil without_gil;
  return function();
}

// --- Values of replicas -------------------------------------------------------------

// The leaves from one replica, in the form that Dataset's sources take.
using GivenLeaves = std::vector<std::tuple<DType, std::vector<int64_t>, py::object>>;

// Copies the values of the replicas into elements. REQUIRES: `spec` admits all of them.
DistributedValues ValuesFrom(const std::vector<GivenLeaves>& of_replicas, const Spec& spec,
                             std::vector<std::vector<float>> weights) {
  std::vector<Element> elements;
  for (const GivenLeaves& leaves : of_replicas) {
    std::vector<std::unique_ptr<Values>> values;
    std::vector<Tensor> tensors;
    for (const auto& [dtype, dims, data] : leaves) {
      values.push_back(std::make_unique<Values>(dtype, dims, data));
      tensors.push_back(values.back()->tensor());
    }
    elements.push_back(ValueOrRaise(MakeElement(DefaultPool(), tensors, spec)));
  }
  return DistributedValues(std::move(elements), std::move(weights));
}

py::tuple LeavesOfOwn(absl::StatusOr<Element> made) {
  return LeavesOf(ValueOrRaise(std::move(made)), /*writable=*/true);
}

py::tuple Reduce(const ReplicaGroup& group, ReduceOp op,
                 const std::vector<GivenLeaves>& of_replicas, const Spec& spec,
                 std::optional<int> axis, std::vector<std::vector<float>> weights) {
  const DistributedValues values = ValuesFrom(of_replicas, spec, std::move(weights));
  return LeavesOfOwn(Waiting([&] { return group.Reduce(op, values, axis); }));
}

py::tuple Gather(const ReplicaGroup& group, const std::vector<GivenLeaves>& of_replicas,
                 const Spec& spec) {
  const DistributedValues values = ValuesFrom(of_replicas, spec, {});
  return LeavesOfOwn(Waiting([&] { return group.Gather(values); }));
}

// --- Groups -------------------------------------------------------------------------

void BindGroups(py::module_& module) {
  py::enum_<ReduceOp>(module, "ReduceOp", "How values of replicas are combined.")
      .value("SUM", ReduceOp::kSum)
      .value("MEAN", ReduceOp::kMean);
  py::class_<ReplicaGroup>(module, "ReplicaGroup",
                           "The replicas of a synchronous trainer, in one process or several, and "
                           "the part of them in this process.")
      .def_static(
          "mirrored",
          [](std::vector<std::string> devices) {
            return ValueOrRaise(ReplicaGroup::Mirrored(std::move(devices)));
          },
          arg("devices") = std::vector<std::string>(),
          "Returns a group with all replicas in this process, one for each device.")
      .def_static(
          "from_environment",
          [](std::vector<std::string> devices) {
            return ValueOrRaise(ReplicaGroup::FromEnvironment(std::move(devices)));
          },
          arg("devices") = std::vector<std::string>{"CPU:0"},
          "Returns a group with a process for each replica, as torchrun, Slurm or Open MPI sets it "
          "up in the environment.")
      .def_static(
          "from_nccl",
          [](uintptr_t communicator) {
            return ValueOrRaise(Waiting([&] {
              return ReplicaGroup::FromNccl(
                  reinterpret_cast<void*>(communicator));  // NOLINT(performance-no-int-to-ptr)
            }));
          },
          arg("communicator"),
          "Returns a connected group of the ranks of an ncclComm_t, given as its address.")
      .def_static(
          "create",
          [](std::vector<std::string> devices, std::vector<int> replicas_of_process, int process,
             std::string launch_id) {
            return ValueOrRaise(
                ReplicaGroup::Create({.devices = std::move(devices),
                                      .replicas_of_process = std::move(replicas_of_process),
                                      .process = process,
                                      .launch_id = std::move(launch_id)}));
          },
          arg("devices") = std::vector<std::string>{"CPU:0"},
          arg("replicas_of_process") = std::vector<int>(), arg("process") = 0,
          arg("launch_id") = "",
          "Returns a group with the given number of replicas in each process; `process` is the "
          "index of this process.")
      .def(
          "connect",
          [](const ReplicaGroup& self, std::string address, double timeout, double silence) {
            return ValueOrRaise(Waiting([&] {
              return self.Connect({.address = std::move(address),
                                   .timeout = absl::Seconds(timeout),
                                   .silence = absl::Seconds(silence)});
            }));
          },
          arg("address") = "", arg("timeout") = 60.0, arg("silence") = 10.0,
          "Returns the same group, connected over TCP, so that it can reduce and gather. "
          "`address`: the address at which process 0 listens. `timeout`: seconds within which all "
          "processes must connect. `silence`: seconds without a byte from a process after which it "
          "counts as gone.")
      .def_property_readonly("connected", &ReplicaGroup::connected,
                             "Whether the group's processes can reduce and gather.")
      .def_property_readonly("num_replicas_in_sync", &ReplicaGroup::num_replicas_in_sync,
                             "The number of replicas in all processes.")
      .def_property_readonly("num_processes", &ReplicaGroup::num_processes,
                             "The number of processes.")
      .def_property_readonly("process", &ReplicaGroup::process,
                             "The index of this process, from 0.")
      .def_property_readonly("first_replica", &ReplicaGroup::first_replica,
                             "The index of this process's first replica.")
      .def_property_readonly("num_local_replicas", &ReplicaGroup::num_local_replicas,
                             "The number of replicas in this process.")
      .def_property_readonly("launch_id", &ReplicaGroup::launch_id,
                             "The name of this launch, equal in all of its processes.")
      .def_property_readonly(
          "devices",
          [](const ReplicaGroup& self) {
            std::vector<std::string> names;
            for (const Device& device : self.devices()) names.push_back(device.ToString());
            return names;
          },
          "The names of the devices of this process's replicas.")
      .def("__repr__", &ReplicaGroup::ToString)
      .def("_reduce", &Reduce)
      .def("_gather", &Gather);
}

// --- Reading ------------------------------------------------------------------------

using NextStep = absl::StatusOr<std::optional<DistributedValues>>;

// An iterator whose steps are made on a separate thread, so that Next() can stop waiting for one.
// Used by one thread at a time, except for Commit() and Stop() of the iterator.
class Steps {
 public:
  explicit Steps(DistributedIterator iterator) : iterator_(std::move(iterator)) {}
  ~Steps() {
    if (background_.under_way()) iterator_.Stop(absl::ZeroDuration()).IgnoreError();
  }

  DistributedIterator& iterator() { return iterator_; }
  // A step was requested but not yet delivered.
  bool pending() const { return background_.under_way(); }

  NextStep Next(std::optional<int64_t> step) {
    if (pending()) return *NextBy(step, absl::InfiniteFuture());
    if (step.has_value()) RETURN_IF_ERROR(iterator_.CheckStep(*step));
    return iterator_.Next();
  }
  // nullopt if the step is not made by `until`; the next call returns it.
  std::optional<NextStep> NextBy(std::optional<int64_t> step, absl::Time until) {
    if (!pending()) {
      if (step.has_value()) {
        if (absl::Status next = iterator_.CheckStep(*step); !next.ok()) return next;
      }
      step_ = step;
      if (absl::Status begun = background_.Begin(); !begun.ok()) return begun;
    } else if (step.has_value() && step != step_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "step ", *step, " was requested while the step of an interrupted next(",
          step_.has_value() ? absl::StrCat(*step_) : "", ") is being made; take that step first"));
    }
    if (!background_.Await(until - absl::Now())) return std::nullopt;
    return std::move(made_);
  }
  // Waits for a step that was not delivered, and drops it.
  bool LetGoBy(absl::Time until) { return !pending() || NextBy(std::nullopt, until).has_value(); }

 private:
  DistributedIterator iterator_;
  std::optional<int64_t> step_;  // of the requested step
  NextStep made_;                // by background_
  BackgroundTask background_{[this] { made_ = iterator_.Next(); }};
};

// A distributed iterator whose calls wait without the GIL.
class HeldSteps {
 public:
  HeldSteps(DistributedIterator iterator, bool exclusive)
      : steps_(new Steps(std::move(iterator))), exclusive_(exclusive) {}
  ~HeldSteps() {
    if (!in_creator_) return;  // its threads are the parent's
    WithoutGil without_gil;
    delete steps_;
  }
  HeldSteps(const HeldSteps&) = delete;

  // Returns (leaves of each replica, weights of its rows or an empty list), or None at the end. If
  // a signal handler raises, the next call returns the step for which this call waited.
  py::object Next(std::optional<int64_t> step) {
    std::optional<DistributedValues> values =
        ValueOrRaise(HearingSignals([&](absl::Time until) -> std::optional<NextStep> {
          return until == absl::InfiniteFuture() ? steps_->Next(step) : steps_->NextBy(step, until);
        }));
    if (!values.has_value()) return py::none();
    py::list leaves;
    py::list weights;
    for (size_t i = 0; i < values->size(); ++i) {
      const absl::Span<const float> of_rows = values->weights(i);
      weights.append(py::cast(std::vector<float>(of_rows.begin(), of_rows.end())));
      if (values->is_on_device(i)) {
        leaves.append(LeavesOf(std::move(values->on_device(i))));
        continue;
      }
      Element element = std::move((*values)[i]);
      const bool writable = exclusive_ && !element.IsShared();
      leaves.append(LeavesOf(std::move(element), writable));
    }
    return py::make_tuple(leaves, weights);
  }

  // Returns a dict for each replica of this process whose values are put on a device.
  py::list CopyStats() {
    CheckUsable();
    py::list replicas;
    // Does not wait, so it may be called while Next() waits.
    for (const DeviceCopyStats& stats : steps_->iterator().CopyStats()) {
      py::dict its;
      its["device"] = absl::StrCat("GPU:", stats.device);
      its["copied"] = stats.elements;
      its["direct"] = stats.direct;
      its["waits"] = stats.waits;
      its["not_page_locked"] = stats.not_page_locked;
      its["page_locking"] = stats.page_locking;
      its["gpu_direct"] = stats.gpu_direct;
      replicas.append(its);
    }
    return replicas;
  }

  py::bytes Save() {
    CheckUsable();
    return py::bytes(ValueOrRaise(Waiting([&]() -> absl::StatusOr<State> {
                       std::lock_guard lock(mu_);
                       if (!steps_->pending()) return steps_->iterator().Save();
                       return absl::FailedPreconditionError(
                           "a next() was interrupted, and its step cannot be undone: take the step "
                           "with another next(), then save");
                     })).bytes);
  }
  void Restore(const std::string& state) {
    RaiseIfError(HearingSignals([&](absl::Time until) -> std::optional<absl::Status> {
      if (!steps_->LetGoBy(until)) return std::nullopt;
      return steps_->iterator().Restore(State{state});
    }));
  }
  void Commit(const std::string& state) {
    CheckUsable();
    RaiseIfError(Waiting([&] { return steps_->iterator().Commit(State{state}); }));
  }
  void Stop(double timeout) {
    if (!in_creator_) return;
    RaiseIfError(Waiting([&] { return steps_->iterator().Stop(absl::Seconds(timeout)); }));
  }

 private:
  void CheckUsable() const {
    if (in_creator_) return;
    Raise(
        absl::FailedPreconditionError("this iterator belongs to the process that this one was "
                                      "forked from; create a new one here"));
  }

  // Calls `by(until)` repeatedly until it returns a value; it returns nullopt if it has not
  // finished at the time `until`. On the main thread the calls are short, and signal handlers run
  // between them. On other threads `until` is infinite.
  template <class By>
  typename std::invoke_result_t<By, absl::Time>::value_type HearingSignals(By by) {
    CheckUsable();
    std::invoke_result_t<By, absl::Time> made;
    while (true) {
      const absl::Time until =
          HearsSignals() ? absl::Now() + kLookForSignals : absl::InfiniteFuture();
      Waiting([&] {
        const std::unique_lock lock(mu_, absl::ToChronoTime(until));
        if (lock.owns_lock()) made = by(until);
      });
      if (made.has_value()) return *std::move(made);
      HearSignals();
    }
  }

  Steps* const steps_;
  const bool exclusive_;
  const ForkGuard in_creator_;
  std::timed_mutex mu_;  // locked without the GIL
};

// --- Datasets -----------------------------------------------------------------------

// A distributed dataset, with the information whether each of its elements has only one reader.
struct HeldDistributed {
  DistributedDataset dataset;
  bool exclusive;
};

void BindOptions(py::module_& module) {
  py::enum_<AutoShardPolicy>(module, "AutoShardPolicy",
                             "How the pipelines of several processes divide a dataset.")
      .value("OFF", AutoShardPolicy::kOff)
      .value("AUTO", AutoShardPolicy::kAuto)
      .value("FILE", AutoShardPolicy::kFile)
      .value("DATA", AutoShardPolicy::kData)
      .value("HINT", AutoShardPolicy::kHint);
  py::enum_<PartialBatches>(
      module, "PartialBatches",
      "What happens to a last batch that does not have a part for each replica.")
      .value("EMPTY", PartialBatches::kEmpty)
      .value("DROP", PartialBatches::kDrop)
      .value("PAD", PartialBatches::kPad)
      .value("REPEAT", PartialBatches::kRepeat)
      .value("ERROR", PartialBatches::kError);
  py::enum_<ReplicationMode>(module, "InputReplicationMode",
                             "The number of pipelines: one per process, or one per replica.")
      .value("PER_WORKER", ReplicationMode::kPerWorker)
      .value("PER_REPLICA", ReplicationMode::kPerReplica);
  py::class_<InputOptions>(module, "InputOptions")
      .def(py::init([](AutoShardPolicy auto_shard, PartialBatches partial_batches,
                       ReplicationMode replication_mode, std::optional<int64_t> steps,
                       int64_t buffer_size, bool fetch_to_device, int replicas_per_element,
                       std::optional<uint64_t> seed) {
        return InputOptions{.auto_shard = auto_shard,
                            .partial_batches = partial_batches,
                            .replication_mode = replication_mode,
                            .steps = steps,
                            .per_replica_buffer_size = buffer_size,
                            .fetch_to_device = fetch_to_device,
                            .replicas_per_element = replicas_per_element,
                            .seed = seed};
      }));
  py::class_<InputContext>(
      module, "InputContext",
      "The pipeline for which a function of `distribute_datasets_from_function` is called.")
      .def(py::init([](int pipelines, int id, int replicas) {
             return InputContext{.num_input_pipelines = pipelines,
                                 .input_pipeline_id = id,
                                 .num_replicas_in_sync = replicas};
           }),
           arg("num_input_pipelines") = 1, arg("input_pipeline_id") = 0,
           arg("num_replicas_in_sync") = 1)
      .def_readonly("num_input_pipelines", &InputContext::num_input_pipelines,
                    "The number of pipelines in all processes.")
      .def_readonly("input_pipeline_id", &InputContext::input_pipeline_id,
                    "The index of this pipeline, from 0.")
      .def_readonly("num_replicas_in_sync", &InputContext::num_replicas_in_sync,
                    "The number of replicas in all processes.")
      .def(
          "get_per_replica_batch_size",
          [](const InputContext& self, int64_t global_batch_size) {
            return ValueOrRaise(self.GetPerReplicaBatchSize(global_batch_size));
          },
          arg("global_batch_size"),
          "Returns the global batch size divided by the number of replicas. Raises ValueError if "
          "there is a remainder.")
      .def("__repr__", &InputContext::ToString);
}

HeldDistributed FromFunction(const ReplicaGroup& group, const py::function& function,
                             const InputOptions& options) {
  bool exclusive = options.replicas_per_element == 1;
  // Called during this call, on this thread.
  const auto with_gil = [&](const InputContext& context) {
    py::gil_scoped_acquire gil;
    auto dataset = function(context).cast<Dataset>();
    exclusive = exclusive && !ReadsWhatOthersRead(dataset);
    return dataset;
  };
  absl::StatusOr<DistributedDataset> dataset =
      Waiting([&] { return DistributeDatasetsFromFunction(group, with_gil, options); });
  return {ValueOrRaise(std::move(dataset)), exclusive};
}

void BindDistributed(py::module_& module) {
  py::class_<HeldSteps>(module, "DistributedIterator")
      .def("next", &HeldSteps::Next, arg("step") = py::none())
      .def("copy_stats", &HeldSteps::CopyStats)
      .def("save", &HeldSteps::Save)
      .def("restore", &HeldSteps::Restore)
      .def("commit", &HeldSteps::Commit)
      .def("stop", &HeldSteps::Stop, arg("timeout"));
  py::class_<HeldDistributed>(module, "DistributedDataset")
      .def_property_readonly("specs",
                             [](const HeldDistributed& self) {
                               py::list specs;
                               const PerReplicaSpec spec = self.dataset.element_spec();
                               for (size_t i = 0; i < spec.size(); ++i)
                                 specs.append(py::cast(spec[i]));
                               return specs;
                             })
      .def_property_readonly("cardinality",
                             [](const HeldDistributed& self) { return self.dataset.cardinality(); })
      .def_property_readonly("steps",
                             [](const HeldDistributed& self) { return self.dataset.steps(); })
      .def("explain", [](const HeldDistributed& self) { return self.dataset.Explain(); })
      .def("map",
           [](const HeldDistributed& self, const py::function& function) {
             return HeldDistributed{ValueOrRaise(self.dataset.Map([function](const Expr& x) {
                                      return function(x).cast<Expr>();
                                    })),
                                    self.exclusive};
           })
      .def("prefetch_to_device",
           [](const HeldDistributed& self, int depth) {
             return HeldDistributed{ValueOrRaise(self.dataset.PrefetchToDevice(depth)),
                                    self.exclusive};
           })
      .def("make_iterator", [](const HeldDistributed& self) {
        return std::make_unique<HeldSteps>(
            ValueOrRaise(Waiting([&] { return self.dataset.MakeIterator(); })), self.exclusive);
      });
  module.def("distribute_dataset", [](const ReplicaGroup& group, const Dataset& dataset,
                                      const InputOptions& options) {
    return HeldDistributed{
        ValueOrRaise(Waiting([&] { return DistributeDataset(group, dataset, options); })),
        !ReadsWhatOthersRead(dataset) && options.replicas_per_element == 1};
  });
  module.def("distribute_datasets_from_function", &FromFunction);
}

}  // namespace

void BindReplicas(py::module_& module) {
  BindOptions(module);
  BindGroups(module);
  BindDistributed(module);
}

}  // namespace penstock::python
