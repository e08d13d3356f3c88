// SPDX-License-Identifier: Apache-2.0
// Statuses as Python exceptions: one class of penstock.errors per code.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::python {

// Throws the exception of that code, through pybind11. REQUIRES: the GIL is held, !status.ok().
[[noreturn]] void Raise(const absl::Status& status);

inline void RaiseIfError(const absl::Status& status) {
  if (!status.ok()) Raise(status);
}

template <class T>
T ValueOrRaise(absl::StatusOr<T> value) {
  RaiseIfError(value.status());
  return *std::move(value);
}

}  // namespace penstock::python
