// SPDX-License-Identifier: Apache-2.0
#include "python/core/lost_consumers.h"

#include <optional>

#include "penstock/lost_consumers.h"
#include "python/core/casters.h"
#include "python/core/without_gil.h"

namespace penstock::python {

namespace py = pybind11;

namespace {

// Returns (job, consumer, state, heard, why), or None after the watch was stopped.
py::object Next(LostConsumerWatch& watch) {
  std::optional<LostConsumer> change;
  {
    WithoutGil without_gil;
    change = watch.Next();
  }
  if (!change.has_value()) return py::none();
  return py::make_tuple(change->job, change->consumer,
                        std::string(LostConsumerStateName(change->state)),
                        absl::ToDoubleSeconds(change->heard - absl::UnixEpoch()), change->why);
}

}  // namespace

void BindLostConsumers(py::module_& module) {
  py::class_<LostConsumerWatch>(module, "LostConsumerWatch")
      .def(py::init<>())
      .def("next", &Next)
      .def("stop", &LostConsumerWatch::Stop);
}

}  // namespace penstock::python
