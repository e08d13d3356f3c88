// SPDX-License-Identifier: Apache-2.0
// Checks that each element is in exactly one history, by its value and by its permanent key, and
// that trainers and durable records agree.
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
  // Elements that are owed to a next reader that does not exist: under ack=on_commit, a trainer got
  // them, was not able to commit them, and lost them after the iteration had been closed, when no
  // other trainer read any more.
  int64_t given_up = 0;
};

struct ExpectedElements {
  int64_t count = 0;
  std::function<int64_t(int64_t)> value;  // of element 0, 1, …
  int64_t given_up = 0;                   // at most
  int64_t copies = 1;                     // of each element
};

// REQUIRES: the job has ended: each history has ended or is gone.
//
// The elements of a trainer that read to the end are those in its history, and they are exactly
// those that its reader has committed durably. The elements of a trainer that died or left are
// those that its reader has committed: elements that it got, and under ack=on_commit exactly one of
// its stored states. At no time does a trainer get an element that another reader owns.
Findings CheckExactlyOnce(const Histories& histories, const CommittedIterations& iterations,
                          const ExpectedElements& expected);

}  // namespace penstock::simulator
