// SPDX-License-Identifier: Apache-2.0
// Pairs of different UCX releases that passed the conformance suite against each other, in both
// directions. README.md describes how to test a pair.
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
