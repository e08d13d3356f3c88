// SPDX-License-Identifier: Apache-2.0
// Sets this process's wall clock wrong for a while, as a time service may do with the machine's.
#pragma once

#include "absl/time/time.h"

namespace penstock::client {

class WallClockStep {
 public:
  explicit WallClockStep(absl::Duration by);
  ~WallClockStep();
};

}  // namespace penstock::client
