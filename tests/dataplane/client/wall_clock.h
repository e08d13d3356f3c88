// SPDX-License-Identifier: Apache-2.0
// The wall clock of this process, set wrong for a while, as a time service may set the machine's.
#pragma once

#include "absl/time/time.h"

namespace penstock::client {

class WallClockStep {
 public:
  explicit WallClockStep(absl::Duration by);
  ~WallClockStep();
};

}  // namespace penstock::client
