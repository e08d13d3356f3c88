// SPDX-License-Identifier: Apache-2.0
// The operation that calls a Python function.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/dataset/expr/run_outputs.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// The definition contains the function's output spec, as for registered functions.
absl::StatusOr<std::vector<TensorSpec>> InferPython(const Attrs& attrs, InputSpecs) {
  const auto leaves = Get<Spec>(attrs, "output").leaves();
  RETURN_IF_ERROR(CheckRegisteredSpec(leaves));
  return std::vector<TensorSpec>(leaves.begin(), leaves.end());
}

absl::StatusOr<Kernel> MakePython(const OpDef& def, const OpMeans& means) {
  const std::shared_ptr<PythonHost> host =
      means.python == nullptr ? PythonHost::OfProcess() : means.python;
  const auto function = std::make_shared<const PythonFunction>(PythonFunctionOf(def.attrs));
  RETURN_IF_ERROR(Annotate(host->Admit(*function), "function '", function->name, "'"));
  return Kernel([host, function, outputs = def.outputs](OpRun& run) -> absl::Status {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < run.input_count(); ++i) inputs.push_back(run.input(i));
    RunOutputs out(run, outputs);
    RETURN_IF_ERROR(host->Call(function, inputs, outputs, out));
    return out.checks().AllGiven(absl::StrCat("function '", function->name, "'"));
  });
}

}  // namespace

std::vector<OpRow> PythonOps() {
  return {{.name = kPythonCall,
           .min_inputs = 0,
           .max_inputs = 1 << 16,
           .attrs = {{"name", kAttrIndex<std::string>},
                     {"pickle", kAttrIndex<std::string>},
                     {"version", kAttrIndex<std::string>},
                     {"call", kAttrIndex<std::string>},
                     {"deterministic", kAttrIndex<bool>},
                     {"output", kAttrIndex<Spec>},
                     {"random", kAttrIndex<int64_t>}},
           .infer = InferPython,
           .make_with = MakePython,
           .random = true}};  // the function may draw: never shared or moved
}

Expr CallPython(PythonFunction function, const Spec& output, bool deterministic, const Expr& x) {
  if (!x.status().ok()) return x;
  Attrs attrs = {{"deterministic", deterministic}, {"output", output}};
  AddTo(attrs, std::move(function));
  std::vector<Expr> leaves;
  AppendLeaves(x, leaves);
  std::vector<Expr> outputs = Apply(kPythonCall, std::move(attrs), std::move(leaves));
  if (outputs.size() == 1 && !outputs[0].status().ok()) return outputs[0];
  return NestOf(output, std::move(outputs));
}

}  // namespace penstock
