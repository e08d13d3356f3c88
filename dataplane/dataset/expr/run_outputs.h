// SPDX-License-Identifier: Apache-2.0
// Takes an operation's results from code outside the engine (registered, or Python).
#pragma once

#include <string>
#include <string_view>

#include "dataplane/dataset/expr/op_run.h"
#include "dataplane/dataset/expr/output_checks.h"
#include "include/status_macros.h"
#include "penstock/register.h"

namespace penstock {

// The outputs of one call.
class RunOutputs final : public ElementOutputs {
 public:
  RunOutputs(OpRun& run, absl::Span<const TensorSpec> outputs) : run_(run), checks_(outputs) {}

  absl::StatusOr<absl::Span<std::byte>> Output(size_t i, absl::Span<const int64_t> dims) override {
    RETURN_IF_ERROR(checks_.Give(i, dims, /*strings=*/false));
    return run_.Place(i, dims);
  }

  absl::Status OutputStrings(size_t i, absl::Span<const int64_t> dims,
                             absl::Span<const std::string> values) override {
    RETURN_IF_ERROR(checks_.GiveStrings(i, dims, values.size()));
    return run_.Strings(i, dims, [&](int64_t n) -> std::string_view { return values[n]; });
  }

  const OutputChecks& checks() const { return checks_; }

 private:
  OpRun& run_;
  OutputChecks checks_;
};

}  // namespace penstock
