// SPDX-License-Identifier: Apache-2.0
// Where the processes of a case run.
#pragma once

#include <string>
#include <vector>

namespace penstock::bench {

// Trainers and the dispatcher run here, workers there. All empty: all run here.
struct Hosts {
  std::string here, there;             // addresses at which the other reaches it
  std::vector<std::string> run_there;  // words before the arguments of this program's run there
  bool two() const { return !there.empty(); }
};

}  // namespace penstock::bench
