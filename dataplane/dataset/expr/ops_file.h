// SPDX-License-Identifier: Apache-2.0
// Functions that read files of the running dataset, whose waits end with it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/function.h"

namespace penstock {

inline constexpr char kReadFile[] = "ReadFile";

// What kReadFile runs: opens its input's name in `files`.
Kernel ReadFileFrom(std::shared_ptr<Files> files);

// BoundFunction::Bind() of a function that opens files in `files`, and not in
// DefaultFiles().
absl::StatusOr<std::shared_ptr<const BoundFunction>> BindWithFiles(
    std::shared_ptr<const FunctionDef> def, std::shared_ptr<Files> files);

}  // namespace penstock
