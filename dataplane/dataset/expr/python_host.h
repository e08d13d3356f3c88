// SPDX-License-Identifier: Apache-2.0
// Python functions and generators as a dataset stores them, and the interface that runs them. The
// engine itself contains no Python: dataplane/python starts processes that run it.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/attr.h"
#include "penstock/dataset.h"
#include "penstock/export.h"
#include "penstock/expr.h"
#include "penstock/plugin.h"
#include "penstock/register.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

#pragma GCC visibility push(default)
namespace penstock {

struct PythonFunction {
  std::string name;     // "package.module:function"; only the module if `pickle` is set
  std::string pickle;   // cloudpickle's bytes; empty: the function is imported by name
  std::string version;  // replaces `pickle` in fingerprints, unless it is empty
  // How leaves become arguments and results become leaves: JSON for the process that runs the
  // function (python/penstock/functions.py writes it, dataplane/python/child.py reads it).
  std::string call;
  uint64_t key = 0;  // hash of the members above, set by PythonFunctionOf()
};

// Converts a function to attributes of an operation or a node, and back.
void AddTo(Attrs& attrs, PythonFunction function);
PythonFunction PythonFunctionOf(const Attrs& attrs);

// Returns a description, for messages, of how the function reaches the process that runs it:
// "Python 'augment:crop' by import path".
std::string WayOf(const PythonFunction& function);

// Runs Python functions. Any thread, several at once.
class PENSTOCK_EXPORT PythonHost {
 public:
  virtual ~PythonHost() = default;

  // PermissionDenied if Python functions, or this one, may not run.
  virtual absl::Status Admit(const PythonFunction& function) const = 0;
  // Calls the function on the leaves of one element, all dense. An error raised by the function is
  // returned with its traceback as Unknown, or as InvalidArgument if it is a ValueError or
  // TypeError. Returns Cancelled after Stop().
  virtual absl::Status Call(const std::shared_ptr<const PythonFunction>& function,
                            absl::Span<const Tensor> inputs, absl::Span<const TensorSpec> outputs,
                            ElementOutputs& out) = 0;
  // Opens the generator that the function makes, as a source of one split.
  virtual absl::StatusOr<std::unique_ptr<SourceReader>> Open(
      std::shared_ptr<const PythonFunction> function, Spec spec) = 0;
  // The number of calls that run at a time, at least 1. Further calls wait.
  virtual int CallsAtOnce() const = 0;
  // Returns a host for one run of a dataset. Once a stop is requested, waiting calls end with
  // Cancelled at once, and running calls soon. nullptr: the run uses this host.
  virtual std::shared_ptr<PythonHost> Until(const std::stop_token&) { return nullptr; }
  // Ends the calls under way and refuses further ones. Idempotent, bounded.
  virtual void Stop() = 0;

  // Returns a host that refuses all functions with PermissionDenied(reason).
  static std::shared_ptr<PythonHost> Refusing(std::string reason);
  // Returns the host that this process set with SetOfProcess(), for datasets that it reads itself.
  // If no host was set, or if it was set before a fork, returns a host that refuses all functions.
  static std::shared_ptr<PythonHost> OfProcess();
  static void SetOfProcess(std::shared_ptr<PythonHost> host);
};

// Applies the function to `x`. The function's results have the spec `output`, whose leaves are all
// dense. `deterministic` is as for RegisteredMap.
Expr CallPython(PythonFunction function, const Spec& output, bool deterministic, const Expr& x);

// Makes a source of the generator's elements, in one split. Otherwise the same as
// RegisteredSource().
Dataset FromPythonGenerator(PythonFunction generator, const Spec& spec, bool deterministic);

}  // namespace penstock
#pragma GCC visibility pop
