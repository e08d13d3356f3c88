// SPDX-License-Identifier: Apache-2.0
#include "python/core/functions.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/python/process_host.h"
#include "python/core/casters.h"
#include "python/core/errors.h"
#include "python/core/expressions.h"
#include "python/core/without_gil.h"

namespace penstock::python {

namespace py = pybind11;

namespace {

PythonFunction FunctionFrom(std::string name, std::string pickle, std::string version,
                            std::string call) {
  return {.name = std::move(name),
          .pickle = std::move(pickle),
          .version = std::move(version),
          .call = std::move(call)};
}

// The last settings of the processes of this program.
struct Asked {
  std::string interpreter;
  std::vector<std::string> path;
  int processes = 0;
  friend bool operator==(const Asked&, const Asked&) = default;
};

// Running iterators keep the processes with which they began.
void UsePython(std::string interpreter, std::vector<std::string> path, int processes) {
  static auto* const last = new Asked;  // both guarded by the GIL
  static auto* const in_creator = new ForkGuard;
  Asked asked{std::move(interpreter), std::move(path), processes};
  if (*in_creator && asked == *last) return;
  *last = asked;
  *in_creator = ForkGuard();
  WithoutGil without_gil;  // may end the earlier processes
  PythonHost::SetOfProcess(python_host::ProcessHost::Create(
      {.processes = asked.processes,
       .command = {.interpreter = std::move(asked.interpreter), .path = std::move(asked.path)},
       .allowed = {}}));
}

}  // namespace

void BindFunctions(py::module_& module) {
  module.def(
      "call_python", [](std::string name, const py::bytes& pickle, std::string version,
                        std::string call, const Spec& output, bool deterministic, const Expr& x) {
        Expr result =
            CallPython(FunctionFrom(std::move(name), pickle, std::move(version), std::move(call)),
                       output, deterministic, x);
        RaiseIfError(result.status());
        return result;
      });
  module.def("from_generator", [](std::string name, const py::bytes& pickle, std::string version,
                                  std::string call, const Spec& spec, bool deterministic) {
    Dataset dataset = FromPythonGenerator(
        FunctionFrom(std::move(name), pickle, std::move(version), std::move(call)), spec,
        deterministic);
    RaiseIfError(dataset.status());
    return dataset;
  });
  module.def("use_python", &UsePython);
  module.def("stop_python", [] {
    WithoutGil without_gil;
    PythonHost::OfProcess()->Stop();
  });
}

}  // namespace penstock::python
