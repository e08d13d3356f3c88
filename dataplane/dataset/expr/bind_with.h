// SPDX-License-Identifier: Apache-2.0
// A function of a running dataset.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/function.h"

namespace penstock {

// BoundFunction::Bind() of a function whose operations use `means`, in place of the process's.
absl::StatusOr<std::shared_ptr<const BoundFunction>> BindWith(
    std::shared_ptr<const FunctionDef> def, OpMeans means);

}  // namespace penstock
