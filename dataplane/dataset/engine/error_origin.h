// SPDX-License-Identifier: Apache-2.0
// Classifies errors by their code: errors in the data, temporary errors, and errors of the machine.
#pragma once

#include "absl/status/status.h"

namespace penstock {

// True if reading the same data again returns the same error, wherever it is read.
inline bool LiesInTheData(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

// True if the same call may succeed a moment later.
inline bool IsOfTheMoment(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

}  // namespace penstock
