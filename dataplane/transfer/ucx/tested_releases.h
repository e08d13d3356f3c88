// SPDX-License-Identifier: Apache-2.0
// Pairs of UCX releases that are not equal and were seen to pass the conformance
// suite against each other, both ways. README.md says how to test one.
#pragma once

#include <array>
#include <string_view>

#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

struct TestedPair {
  std::string_view one;  // the first two numbers
  std::string_view other;
  Lanes lanes;
};

inline constexpr std::array<TestedPair, 0> kTestedReleases = {};

}  // namespace penstock::transfer::ucx
