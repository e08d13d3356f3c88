// SPDX-License-Identifier: Apache-2.0
// The hosts on which the processes of a case run.
#pragma once

#include <string>
#include <vector>

namespace penstock::bench {

// Trainers and the dispatcher run here, workers there. All fields empty: everything runs here.
struct Hosts {
  std::string here, there;             // addresses at which the other host reaches each
  std::vector<std::string> run_there;  // words before this program's arguments there
  bool two() const { return !there.empty(); }
};

}  // namespace penstock::bench
