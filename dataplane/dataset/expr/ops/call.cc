// SPDX-License-Identifier: Apache-2.0
// Functions registered by name, and the operation that calls one.
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/random.h"
#include "dataplane/dataset/expr/registered.h"
#include "dataplane/dataset/expr/run_outputs.h"
#include "include/status_macros.h"
#include "penstock/register.h"

namespace penstock {
namespace {

Registered<RegisteredMap>& Maps() {
  static auto* const maps = new Registered<RegisteredMap>("function");
  return *maps;
}

class Context final : public CallContext {
 public:
  Context(OpRun& run, absl::Span<const TensorSpec> outputs, int64_t number)
      : outputs_(run, outputs), key_(KeyOfOp(run.random(), number)) {
    for (size_t i = 0; i < run.input_count(); ++i) inputs_.push_back(run.input(i));
  }

  absl::Span<const Tensor> inputs() const override { return inputs_; }

  absl::StatusOr<absl::Span<std::byte>> Output(size_t i, absl::Span<const int64_t> dims) override {
    return outputs_.Output(i, dims);
  }

  absl::Status OutputStrings(size_t i, absl::Span<const int64_t> dims,
                             absl::Span<const std::string> values) override {
    return outputs_.OutputStrings(i, dims, values);
  }

  const OutputChecks& checks() const { return outputs_.checks(); }
  uint64_t Random(uint32_t draw) const override { return RandomBits(key_, draw); }

 private:
  RunOutputs outputs_;
  RandomKey key_;
  std::vector<Tensor> inputs_;
};

// The definition contains the function's output spec, so that a program that lacks the function can
// check the rest.
absl::StatusOr<std::vector<TensorSpec>> InferCall(const Attrs& attrs, InputSpecs) {
  const auto leaves = Get<Spec>(attrs, "output").leaves();
  RETURN_IF_ERROR(CheckRegisteredSpec(leaves));
  return std::vector<TensorSpec>(leaves.begin(), leaves.end());
}

absl::StatusOr<Kernel> MakeCall(const OpDef& def, InputSpecs) {
  const std::string& name = Get<std::string>(def.attrs, "function");
  ASSIGN_OR_RETURN(auto map, Maps().Find(name, Get<int64_t>(def.attrs, "version")));
  const int64_t number = Get<int64_t>(def.attrs, "random");
  return Kernel([map, name, number, outputs = def.outputs](OpRun& run) -> absl::Status {
    Context context(run, outputs, number);
    RETURN_IF_ERROR(Annotate(map->call(context), "in function '", name, "'"));
    return context.checks().AllGiven(absl::StrCat("function '", name, "'"));
  });
}

}  // namespace

std::vector<OpRow> CallOps() {
  return {{.name = "Call",
           .min_inputs = 0,
           .max_inputs = 1 << 16,
           .attrs = {{"function", kAttrIndex<std::string>},
                     {"version", kAttrIndex<int64_t>},
                     {"deterministic", kAttrIndex<bool>},
                     {"output", kAttrIndex<Spec>},
                     {"random", kAttrIndex<int64_t>}},
           .infer = InferCall,
           .make = MakeCall,
           .random = true}};
}

Expr Call(std::string_view function, const Expr& x) {
  if (!x.status().ok()) return x;
  const std::string name(function);
  const auto found = Maps().Find(name);
  if (!found.ok()) return Mistake(found.status());
  const RegisteredMap* const map = found->get();
  const auto output = map->output_spec(x.spec());
  if (!output.ok()) return Mistake(Annotate(output.status(), "spec of function '", name, "'"));
  std::vector<Expr> leaves;
  AppendLeaves(x, leaves);
  std::vector<Expr> outputs = Apply("Call",
                                    {{"function", name},
                                     {"version", int64_t{map->version}},
                                     {"deterministic", map->deterministic},
                                     {"output", *output}},
                                    std::move(leaves));
  if (outputs.size() == 1 && !outputs[0].status().ok()) return outputs[0];
  return NestOf(*output, std::move(outputs));
}

absl::Status RegisterMap(std::string name, RegisteredMap map) {
  return Maps().Add(std::move(name), std::move(map));
}

std::vector<std::string> RegisteredMaps() {
  return Maps().Names();
}

}  // namespace penstock
