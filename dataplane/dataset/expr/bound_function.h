// SPDX-License-Identifier: Apache-2.0
// Binding of functions for a running dataset.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/expr/op_registry.h"

namespace penstock {

// The same as BoundFunction::Bind(), but the operations use `means` instead of the process's
// defaults.
absl::StatusOr<std::shared_ptr<const BoundFunction>> BindWith(
    std::shared_ptr<const FunctionDef> def, OpMeans means);

}  // namespace penstock
