// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/map_step.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// One in this many calls is timed, because reading the clock costs as much as a short call.
constexpr int64_t kTimed = 8;
bool CallsPython(const FunctionDef& function) {
  return absl::c_any_of(function.ops, [](const OpDef& op) { return op.op == kPythonCall; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<MapStep>> MapStep::Create(const BuildSite& site) {
  const auto& function = site.attr<std::shared_ptr<const FunctionDef>>("function");
  // More calls do not shorten the wait for a Python process.
  std::optional<int> most;
  if (CallsPython(*function)) most = site.python()->CallsAtOnce();
  auto step = std::unique_ptr<MapStep>(new MapStep(site, most));
  ASSIGN_OR_RETURN(step->function_, site.Bind(function));
  return step;
}

absl::Status MapStep::Run(absl::Span<const Tensor> input, int64_t number, ResultSink& sink) {
  RandomKey random = random_;
  random.element = static_cast<uint64_t>(number);
  if (number % kTimed != 0) {
    ProfileScope scope(profile_, 0);
    return Call(input, random, sink);
  }
  ProfileScope scope(profile_, kTimed);
  return parallelism_.Timed([&] { return Call(input, random, sink); });
}

absl::Status MapStep::Call(absl::Span<const Tensor> input, const RandomKey& random,
                           ResultSink& sink) const {
  const absl::Status run = OfElement(
      CatchExhausted("its function", [&] { return function_->Run(input, random, sink); }));
  return run.ok() ? run : Annotate(run, "in ", name_, ", element ", random.element);
}

}  // namespace penstock
