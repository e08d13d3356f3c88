// SPDX-License-Identifier: Apache-2.0
// Functions registered by name, and the operation that calls one.
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/expr/node.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/random.h"
#include "penstock/register.h"
#include "penstock/status.h"

namespace penstock {
namespace {

struct Registry {
  std::mutex mu;
  std::map<std::string, std::shared_ptr<const RegisteredMap>> maps;  // guarded by mu
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

std::shared_ptr<const RegisteredMap> FindMap(const std::string& name) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mu);
  const auto found = registry.maps.find(name);
  return found == registry.maps.end() ? nullptr : found->second;
}

// NotFound names the function and its version.
absl::StatusOr<std::shared_ptr<const RegisteredMap>> FindVersion(const std::string& name,
                                                                 int64_t version) {
  auto map = FindMap(name);
  if (map == nullptr) {
    return absl::NotFoundError(absl::StrCat("function '", name, "' version ", version,
                                            " is not registered in this program; link what has its "
                                            "PENSTOCK_REGISTER_MAP (registered: ",
                                            absl::StrJoin(RegisteredMaps(), ", "), ")"));
  }
  if (map->version != version) {
    return absl::NotFoundError(
        absl::StrCat("function '", name, "' version ", version,
                     " is not registered in this program, which has version ", map->version));
  }
  return map;
}

class Context final : public CallContext {
 public:
  Context(OpRun& run, absl::Span<const TensorSpec> outputs, int64_t number)
      : run_(run), outputs_(outputs), key_(KeyOfOp(run.random(), number)) {
    for (size_t i = 0; i < run.input_count(); ++i) inputs_.push_back(run.input(i));
  }

  absl::Span<const Tensor> inputs() const override { return inputs_; }

  absl::StatusOr<absl::Span<std::byte>> Output(size_t i, absl::Span<const int64_t> dims) override {
    RETURN_IF_ERROR(CheckOutput(i, dims));
    if (outputs_[i].dtype == kString)
      return absl::InvalidArgumentError(
          absl::StrCat("output ", i, " is of strings: OutputStrings"));
    return run_.Place(i, dims);
  }

  absl::Status OutputStrings(size_t i, absl::Span<const int64_t> dims,
                             absl::Span<const std::string> values) override {
    RETURN_IF_ERROR(CheckOutput(i, dims));
    if (outputs_[i].dtype != kString)
      return absl::InvalidArgumentError(absl::StrCat("output ", i, " is not of strings: Output"));
    ASSIGN_OR_RETURN(const int64_t count, CountOf(dims, kUInt64));
    if (static_cast<size_t>(count) != values.size())
      return absl::InvalidArgumentError(
          absl::StrCat("output ", i, " has ", values.size(), " strings for ", count, " places"));
    return run_.Strings(i, dims, [&](int64_t n) -> std::string_view { return values[n]; });
  }

  uint64_t Random(uint32_t draw) const override { return RandomBits(key_, draw); }

 private:
  absl::Status CheckOutput(size_t i, absl::Span<const int64_t> dims) const {
    if (i >= outputs_.size())
      return absl::InvalidArgumentError(
          absl::StrCat("output ", i, " of a function with ", outputs_.size()));
    if (run_.Written(i))
      return absl::InvalidArgumentError(absl::StrCat("output ", i, " is given twice"));
    if (!outputs_[i].shape.Admits(dims))
      return absl::InvalidArgumentError(absl::StrCat("output ", i, " has dims [",
                                                     absl::StrJoin(dims, ","), "]; its spec is ",
                                                     outputs_[i].ToString()));
    return absl::OkStatus();
  }

  OpRun& run_;
  absl::Span<const TensorSpec> outputs_;
  RandomKey key_;
  std::vector<Tensor> inputs_;
};

// What the function makes stands in the definition, so that a program that
// lacks it can check the rest.
absl::StatusOr<std::vector<TensorSpec>> Infer(const Attrs& attrs, InputSpecs) {
  const auto leaves = Get<Spec>(attrs, "output").leaves();
  for (const TensorSpec& leaf : leaves)
    if (leaf.kind != TensorSpec::Kind::kDense || leaf.optional || !IsKnown(leaf.dtype))
      return absl::InvalidArgumentError("a registered function makes dense tensors only");
  return std::vector<TensorSpec>(leaves.begin(), leaves.end());
}

absl::StatusOr<Kernel> Make(const OpDef& def, InputSpecs) {
  const std::string& name = Get<std::string>(def.attrs, "function");
  ASSIGN_OR_RETURN(auto map, FindVersion(name, Get<int64_t>(def.attrs, "version")));
  const int64_t number = Get<int64_t>(def.attrs, "random");
  return Kernel([map, name, number, outputs = def.outputs](OpRun& run) -> absl::Status {
    Context context(run, outputs, number);
    RETURN_IF_ERROR(Annotate(map->call(context), "in function '", name, "'"));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!run.Written(i))
        return absl::InternalError(
            absl::StrCat("function '", name, "' did not give its output ", i));
    return absl::OkStatus();
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
           .infer = Infer,
           .make = Make,
           .random = true}};
}

Expr Call(std::string_view function, const Expr& x) {
  if (!x.status().ok()) return x;
  const std::string name(function);
  const auto map = FindMap(name);
  if (map == nullptr) return Mistake(FindVersion(name, 1).status());
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
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mu);
  const auto found = registry.maps.find(name);
  if (found == registry.maps.end()) {
    registry.maps[name] = std::make_shared<const RegisteredMap>(std::move(map));
    return absl::OkStatus();
  }
  if (found->second->version == map.version) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("function '", name, "' is registered as version ",
                                               found->second->version, ", not ", map.version));
}

std::vector<std::string> RegisteredMaps() {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mu);
  std::vector<std::string> names;
  for (const auto& [name, map] : registry.maps) names.push_back(name);
  return names;
}

}  // namespace penstock
