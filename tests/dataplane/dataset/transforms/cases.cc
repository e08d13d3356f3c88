// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "tests/dataplane/dataset/suite.h"

namespace penstock::suite {

std::vector<Case> TransformCases() { return {}; }

}  // namespace penstock::suite
