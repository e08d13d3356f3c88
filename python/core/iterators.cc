// SPDX-License-Identifier: Apache-2.0
#include "python/core/iterators.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "dataplane/dataset/engine/interruptible.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/replica/device_reader.h"
#include "include/status_macros.h"
#include "penstock/explain.h"
#include "penstock/fingerprint.h"
#include "penstock/iterator.h"
#include "penstock/states_of_ranks.h"
#include "penstock/step_token.h"
#include "python/core/casters.h"
#include "python/core/errors.h"
#include "python/core/signals.h"
#include "python/core/tensors.h"
#include "python/core/without_gil.h"

namespace penstock::python {

namespace py = pybind11;

namespace {

bool HasTrainerId(const NodePtr& node) {
  if (node->attrs.contains("trainer_id")) return true;
  for (const NodePtr& input : node->inputs) {
    if (HasTrainerId(input)) return true;
  }
  return false;
}

absl::Time DeadlineIn(std::optional<double> seconds) {
  return seconds.has_value() ? absl::Now() + absl::Seconds(*seconds) : absl::InfiniteFuture();
}

// An iterator whose calls wait without the GIL.
class HeldIterator {
 public:
  HeldIterator(Dataset dataset, std::unique_ptr<InterruptibleIterator> iterator,
               std::unique_ptr<replica::DeviceReader> on_device)
      : dataset_(std::move(dataset)),
        iterator_(iterator.release()),
        on_device_(on_device.release()),
        exclusive_(!ReadsWhatOthersRead(dataset_)) {}
  ~HeldIterator() {
    if (!in_creator_) return;  // its threads are the parent's
    WithoutGil without_gil;
    delete iterator_;
    delete on_device_;
  }
  HeldIterator(const HeldIterator&) = delete;

  // Returns the leaves of the next element, or None at the end.
  py::object Next(std::optional<int64_t> step, std::optional<double> timeout) {
    std::optional<Element> element = Take(step, timeout);
    if (!element.has_value()) return py::none();
    if (on_device_ != nullptr) {
      absl::StatusOr<DeviceElement> on_device = CopyToDevice(*element);
      if (on_device.ok()) return LeavesOf(*std::move(on_device));
      // If the reader holds more elements than the device has places, it gets this one in host
      // memory.
      if (!absl::IsResourceExhausted(on_device.status())) Raise(on_device.status());
    }
    const bool writable = IsWritable(*element);
    return LeavesOf(*std::move(element), writable);
  }
  // Returns the same leaves as NumPy arrays and scalars; only for a spec of dense numbers.
  py::object NextNumpy() {
    std::optional<Element> element = Take(std::nullopt, std::nullopt);
    if (!element.has_value()) return py::none();
    const bool writable = IsWritable(*element);
    return ArraysOf(*std::move(element), writable);
  }

  py::bytes Save() {
    CheckUsable();
    absl::StatusOr<State> state;
    {
      WithoutGil without_gil;
      state = iterator_->Save();
    }
    return py::bytes(ValueOrRaise(std::move(state)).bytes);
  }

  void Restore(const std::string& state) {
    CheckUsable();
    absl::Status status;
    {
      WithoutGil without_gil;
      std::lock_guard lock(next_mu_);
      status = iterator_->Restore(State{state});
      if (on_device_ != nullptr) on_device_->Forget();
    }
    RaiseIfError(status);
    token_ = {};
    steps_ = 0;
  }

  void Commit(const std::string& state) {
    CheckUsable();
    absl::Status status;
    {
      WithoutGil without_gil;
      status = iterator_->Commit(State{state});
    }
    RaiseIfError(status);
  }

  void Stop(double timeout) {
    if (!in_creator_) return;
    absl::Status status;
    if (on_device_ != nullptr) on_device_->Stop();
    {
      WithoutGil without_gil;
      status = iterator_->Stop(absl::Seconds(timeout));
    }
    RaiseIfError(status);
  }

  // Returns (round, consumer, steps, hash) of the last element that was returned; see
  // penstock/step_token.h. If the read has no rounds, round and consumer are -1, and the hash is
  // that of the number of steps.
  py::tuple StepToken() const {
    CheckUsable();
    if (steps_ == 0) {
      Raise(absl::FailedPreconditionError(
          "no element has been read since the iterator was created or restored"));
    }
    const uint64_t hash =
        token_.round < 0 ? Fingerprint(static_cast<uint64_t>(steps_)) : token_.hash;
    return py::make_tuple(token_.round, token_.consumer, steps_, hash);
  }

  std::string Explain() const {
    CheckUsable();
    return penstock::Explain(dataset_, iterator_->Stats());
  }

 private:
  using NextResult = absl::StatusOr<std::optional<Element>>;

  absl::StatusOr<DeviceElement> CopyToDevice(const Element& element) {
    WithoutGil without_gil;
    return on_device_->CopyToDevice(element);
  }

  // If a signal handler raises, the next call returns the element for which this call waited.
  std::optional<Element> Take(std::optional<int64_t> step, std::optional<double> timeout) {
    CheckUsable();
    const absl::Time deadline = DeadlineIn(timeout);
    std::optional<NextResult> next;
    while (!(next = HearsSignals() ? NextBy(step, std::min(deadline, absl::Now() + kLookForSignals))
                                   : NextAtLeisure(step, deadline))) {
      HearSignals();
      if (absl::Now() >= deadline)
        Raise(absl::DeadlineExceededError("the next element is not ready yet"));
    }
    std::optional<Element> element = ValueOrRaise(*std::move(next));
    if (element.has_value()) {
      token_ = StepTokenOf(*element);
      ++steps_;
    }
    return element;
  }
  bool IsWritable(const Element& element) const { return exclusive_ && !element.IsShared(); }

  // nullopt if no element is available by `until`, as in InterruptibleIterator.
  std::optional<NextResult> NextBy(std::optional<int64_t> step, absl::Time until) {
    WithoutGil without_gil;
    std::unique_lock lock(next_mu_, absl::ToChronoTime(until));
    if (!lock.owns_lock()) return std::nullopt;  // another thread is waiting in Next()
    if (step.has_value()) {
      if (absl::Status next = iterator_->CheckStep(*step); !next.ok()) return next;
    }
    return iterator_->NextBy(until);
  }
  NextResult NextAtLeisure(std::optional<int64_t> step, absl::Time deadline) {
    WithoutGil without_gil;
    std::lock_guard lock(next_mu_);
    if (step.has_value()) RETURN_IF_ERROR(iterator_->CheckStep(*step));
    return iterator_->Next(deadline);
  }

  void CheckUsable() const {
    StayAwayIfLeaving();
    if (in_creator_) return;
    Raise(
        absl::FailedPreconditionError("this iterator belongs to the process that this one was "
                                      "forked from; create a new one here"));
  }

  const Dataset dataset_;
  InterruptibleIterator* const iterator_;
  replica::DeviceReader* const on_device_;  // nullptr: elements stay in host memory
  const bool exclusive_;
  const ForkGuard in_creator_;
  penstock::StepToken token_;  // both guarded by the GIL
  int64_t steps_ = 0;          // since the iterator was made or restored
  std::timed_mutex next_mu_;   // for concurrent calls of Next(); locked without the GIL
};

}  // namespace

bool ReadsWhatOthersRead(const Dataset& dataset) {
  return HasTrainerId(NodeOf(dataset));
}

py::object MakeIterator(const Dataset& dataset, std::optional<uint64_t> seed,
                        std::optional<int64_t> epoch, std::optional<int> gpu) {
  StayAwayIfLeaving();
  std::unique_ptr<replica::DeviceReader> on_device;
  absl::StatusOr<std::unique_ptr<InterruptibleIterator>> iterator;
  const auto make = [&]() -> absl::Status {
    if (gpu.has_value()) {
      ASSIGN_OR_RETURN(on_device, replica::DeviceReader::Make(*gpu));
    }
    ASSIGN_OR_RETURN(iterator,
                     MakeInterruptible(on_device == nullptr ? dataset : on_device->Reading(dataset),
                                       {.seed = seed}, epoch,
                                       on_device == nullptr ? nullptr : &on_device->pool()));
    return absl::OkStatus();
  };
  absl::Status made;
  {
    WithoutGil without_gil;
    made = make();
  }
  RaiseIfError(made);
  return py::cast(
      std::make_unique<HeldIterator>(dataset, *std::move(iterator), std::move(on_device)));
}

void BindIterators(py::module_& module) {
  py::class_<HeldIterator>(module, "Iterator")
      .def("next", &HeldIterator::Next, py::arg("step") = py::none(),
           py::arg("timeout") = py::none())
      .def("next_numpy", &HeldIterator::NextNumpy)
      .def("save", &HeldIterator::Save)
      .def("restore", &HeldIterator::Restore)
      .def("commit", &HeldIterator::Commit)
      .def("stop", &HeldIterator::Stop, py::arg("timeout"))
      .def("step_token", &HeldIterator::StepToken)
      .def("explain", &HeldIterator::Explain);
  module.def("count_gpus", [] {
    WithoutGil without_gil;
    return LinkedDeviceBackend().Count().value_or(0);
  });
  module.def(
      "merge_rank_states",
      [](const std::vector<std::string>& states, std::string run_id, std::vector<std::string> allow,
         int64_t skip_steps) {
        std::vector<State> all;
        for (const std::string& bytes : states) all.push_back(State{bytes});
        return py::bytes(MergeRankStates(all, {.run_id = std::move(run_id),
                                               .allow = std::move(allow),
                                               .skip_steps = skip_steps})
                             .bytes);
      },
      py::arg("states"), py::arg("run_id") = "", py::arg("allow") = std::vector<std::string>(),
      py::arg("skip_steps") = 0,
      "Returns the states that all ranks saved at one step as one state. Each rank of the new "
      "launch restores it; their number may differ. `run_id`: id of that launch. `allow`: nodes "
      "that "
      "may differ, as \"Map#3\". `skip_steps`: number of elements that each rank skips. Restoring "
      "raises InvalidArgumentError if the states do not belong together.");
}

}  // namespace penstock::python
