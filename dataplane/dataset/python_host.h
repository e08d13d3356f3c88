// SPDX-License-Identifier: Apache-2.0
// Functions and generators written in Python, as a dataset holds them, and who runs
// them. The engine itself has no Python: dataplane/python has processes that do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/env/files.h"
#include "dataplane/dataset/attr.h"
#include "penstock/dataset.h"
#include "penstock/expr.h"
#include "penstock/plugin.h"
#include "penstock/register.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

struct PythonFunction {
  std::string name;     // "package.module:function"; the module's alone where `pickle` is given
  std::string pickle;   // cloudpickle's bytes; empty: the function is imported by its name
  std::string version;  // stands for `pickle` in fingerprints, unless it is empty
  // How leaves become arguments, and results leaves: JSON, for the process that runs it
  // (python/penstock/functions.py writes it, dataplane/python/child.py reads it).
  std::string call;
  uint64_t key = 0;  // of the above, in PythonFunctionOf()'s: equal for equal functions
};

// Attributes of an operation or a node, and back.
void AddTo(Attrs& attrs, PythonFunction function);
PythonFunction PythonFunctionOf(const Attrs& attrs);

// How it gets to who runs it, for people: "Python 'augment:crop' by import path".
std::string WayOf(const PythonFunction& function);

// Runs them. Any thread, several at once.
class PythonHost {
 public:
  virtual ~PythonHost() = default;

  // PermissionDenied where such functions, or this one, are not to be run.
  virtual absl::Status Admit(const PythonFunction& function) const = 0;
  // Calls it on the leaves of one element, dense ones. The function's own error is
  // Unknown, or InvalidArgument for a ValueError or TypeError, with its traceback.
  // Cancelled after Stop().
  virtual absl::Status Call(const std::shared_ptr<const PythonFunction>& function,
                            absl::Span<const Tensor> inputs, absl::Span<const TensorSpec> outputs,
                            ElementOutputs& out) = 0;
  // The generator that it makes, as a source of one split.
  virtual absl::StatusOr<std::unique_ptr<SourceReader>> Open(
      std::shared_ptr<const PythonFunction> function, Spec spec) = 0;
  // How many calls run at a time; others wait. At least 1.
  virtual int CallsAtOnce() const = 0;
  // The same, for one run of a dataset: its calls, and those that wait for their turn, end with
  // Cancelled soon after `cancelled` was set, which outlives them. nullptr: this one does.
  virtual std::shared_ptr<PythonHost> Until(CancelFlag) { return nullptr; }
  // Ends the calls under way, and refuses others. Idempotent, bounded.
  virtual void Stop() = 0;

  // Refuses all with PermissionDenied(reason).
  static std::shared_ptr<PythonHost> Refusing(std::string reason);
  // Who runs those of the datasets that this process reads itself: what was set in it, not in
  // one that it was forked from; else one that refuses.
  static std::shared_ptr<PythonHost> OfProcess();
  static void SetOfProcess(std::shared_ptr<PythonHost> host);
};

// The function applied to `x`; its results are `output`, dense leaves. `deterministic`
// as RegisteredMap's.
Expr CallPython(PythonFunction function, const Spec& output, bool deterministic, const Expr& x);

// What the generator gives, in one split. As RegisteredSource's otherwise.
Dataset FromPythonGenerator(PythonFunction generator, const Spec& spec, bool deterministic);

}  // namespace penstock
