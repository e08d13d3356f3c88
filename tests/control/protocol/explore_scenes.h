// SPDX-License-Identifier: Apache-2.0
// Scenes with names, for the tests that explore them. Instances of Exploring, in any file of this
// folder, run the test of explore_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "tests/control/protocol/explore.h"

namespace penstock::protocol {

// More than any scene of a tier has; 16 bytes each.
inline constexpr int64_t kMostStates = 60'000'000;

struct Named {
  const char* name;
  Scene scene;
};

inline void PrintTo(const Named& named, std::ostream* out) {
  *out << named.name;
}
inline std::string NameOf(const testing::TestParamInfo<Named>& info) {
  return info.param.name;
}

class Exploring : public testing::TestWithParam<Named> {};

}  // namespace penstock::protocol
