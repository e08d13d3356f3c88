// SPDX-License-Identifier: Apache-2.0
// Checks that each element is in exactly one history, by its value and by its permanent key.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/simulator/check/history.h"
#include "tools/simulator/check/shadow.h"

namespace penstock::simulator {

struct Findings {
  std::vector<std::string> violations;  // the first few, as sentences
  int64_t elements = 0;                 // that are in exactly one history
  // Elements of trainers that died or left after the end had been told, without committing them,
  // and never came back. Nobody was left to get them again.
  int64_t given_up = 0;
};

struct ExpectedElements {
  int64_t count = 0;
  std::function<int64_t(int64_t)> value;  // of element 0, 1, …
};

// REQUIRES: the job has ended: each history has ended or is gone.
//
// The elements of a trainer that read to the end are those in its history. The elements of a
// trainer that died or left are those that its reader has committed durably.
Findings CheckExactlyOnce(const Histories& histories, const Shadow& shadow,
                          const ExpectedElements& expected);

}  // namespace penstock::simulator
