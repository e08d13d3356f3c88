// SPDX-License-Identifier: Apache-2.0
// Registered sources and transforms: those of examples/plugin, which is linked in, and some unusual
// ones.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/python/process_host.h"
#include "include/status_macros.h"
#include "penstock/check.h"
#include "penstock/plugin.h"
#include "tests/dataplane/dataset/suite.h"

extern "C" void penstock_register_plugin(absl::Status* outcome);

namespace penstock::suite {
namespace {

// Two leaves, one with any number of strings. Every seventh element and split 2 fail.
class OddReader final : public SourceReader {
 public:
  absl::Status Open(int64_t split) override {
    if (split == 2) return absl::DataLossError("split 2 is damaged");
    at_ = 0;
    split_ = split;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Next(ElementOutputs& out) override {
    if (at_ == 3 * split_) return false;  // split 0 is empty
    const int64_t n = at_++;
    if ((split_ + n) % 7 == 6) return absl::InvalidArgumentError(absl::StrCat(n, " is not liked"));
    ASSIGN_OR_RETURN(const absl::Span<int64_t> number, out.OutputAs<int64_t>(0, {}));
    number[0] = 100 * split_ + n;
    return out.OutputStrings(1, {n % 3}, std::vector<std::string>(n % 3, absl::StrCat("s", n)))
        .ok();
  }
  absl::StatusOr<std::string> Save() override { return std::string(1, static_cast<char>(at_)); }
  absl::Status Restore(std::string_view position) override {
    if (position.size() != 1) return absl::DataLossError("no position");
    at_ = position[0];
    return absl::OkStatus();
  }

 private:
  int64_t split_ = 0, at_ = 0;
};

absl::Status RegisterAll() {
  absl::Status outcome;
  penstock_register_plugin(&outcome);
  RETURN_IF_ERROR(outcome);
  return RegisterSource(
      "suite.odd", {.describe = [](const Params&) -> absl::StatusOr<SourceInfo> {
                      return SourceInfo{
                          .spec = Spec::Tuple({Scalar(kInt64), Dense(kString, {kUnknownDim})}),
                          .splits = 5};
                    },
                    .open = [](const Params&) -> absl::StatusOr<std::unique_ptr<SourceReader>> {
                      return std::make_unique<OddReader>();
                    }});
}

Dataset NumbersTo(int64_t count) {
  static const absl::Status registered = RegisterAll();
  PENSTOCK_CHECK(registered.ok());
  return FromSource("numbers", {{"count", count}});
}

// Generators of generated.py in this folder, run by a Python process.
Dataset GeneratedBy(std::string name) {
  static const bool begun = [] {
    PythonHost::SetOfProcess(python_host::ProcessHost::Create(
        {.command = {.interpreter = PYTHON, .path = {GENERATORS}}, .allowed = {}}));
    return true;
  }();
  PENSTOCK_CHECK(begun);
  return FromPythonGenerator(
      {.name = std::move(name),
       .pickle = "",
       .version = "",
       .call = R"({"kind": "generator", "input": ["t", []], "output": ["t", [0, 1]],)"
               R"( "dtypes": ["int64", "string"], "shapes": [[], [null]]})"},
      Spec::Tuple({Scalar(kInt64), Dense(kString, {kUnknownDim})}), /*deterministic=*/true);
}

}  // namespace

std::vector<Case> PluginCases() {
  return {
      {.name = "RegisteredSource",
       .kinds = {"RegisteredSource"},
       .make = [] { return NumbersTo(300); }},
      {.name = "RegisteredSourceOfNothing",
       .kinds = {"RegisteredSource"},
       .make = [] { return NumbersTo(0); }},
      {.name = "FromGenerator",
       .kinds = {"FromGenerator"},
       .make = [] { return GeneratedBy("generated:numbers"); }},
      {.name = "FromGeneratorOfNothing",
       .kinds = {"FromGenerator"},
       .make = [] { return GeneratedBy("generated:nothing"); }},
      {.name = "RegisteredSourceInsideABatch",
       .kinds = {"Batch"},
       .make = [] { return NumbersTo(70).Batch(1); }},
      {.name = "RegisteredSourceThatFailsNowAndThen",
       .kinds = {"RegisteredSource"},
       .make =
           [] {
             NumbersTo(0);
             return FromSource("suite.odd");
           }},
      {.name = "RegisteredSourceInABody",
       .kinds = {"FlatMap"},
       .make = [] { return NumbersTo(3).FlatMap([](Expr) { return NumbersTo(4); }); }},
      {.name = "RegisteredTransform",
       .kinds = {"RegisteredTransform"},
       .make =
           [] {
             return ApplyTransform(NumbersTo(300), "every", {{"step", 3}, {"first", 1}});
           },
       .divides = false},
      {.name = "RegisteredTransformThatKeepsAll",
       .kinds = {"RegisteredTransform"},
       .make =
           [] {
             return ApplyTransform(NumbersTo(30), "every", {{"step", 1}, {"first", 0}});
           }},
  };
}

}  // namespace penstock::suite
