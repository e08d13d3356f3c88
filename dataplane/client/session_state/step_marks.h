// SPDX-License-Identifier: Apache-2.0
// The rows that a consumer of a coordinated read returned in some of its steps. The dispatcher
// compares the rows of different consumers. Consumers report at different times, so each consumer
// keeps, for every power of two, the two latest steps that the power divides. Then two consumers
// that are d steps apart both keep one of the last 2 d steps of the slower consumer.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "control/protocol/client_messages.h"

namespace penstock::client {

class StepMarks {
 public:
  // REQUIRES: steps are noted in order.
  void Note(int64_t step, const protocol::PartitionRow& row) {
    const int powers = std::countr_zero(static_cast<uint64_t>(step));
    for (int power = 0; power <= std::min(powers, kPowers - 1); ++power) {
      std::array<control::StepMark, 2>& latest = latest_[static_cast<size_t>(power)];
      latest[1] = latest[0];
      latest[0] = {step, row};
    }
  }

  // Returns each mark once, the latest first.
  std::vector<control::StepMark> Marks() const {
    std::vector<control::StepMark> marks;
    for (const auto& latest : latest_) {
      for (const control::StepMark& mark : latest) {
        if (mark.row.partition) marks.push_back(mark);
      }
    }
    std::sort(marks.begin(), marks.end(),
              [](const auto& a, const auto& b) { return a.step > b.step; });
    marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
    return marks;
  }

 private:
  static constexpr int kPowers = 24;  // consumers are always fewer than 2^kPowers steps apart
  std::array<std::array<control::StepMark, 2>, kPowers> latest_{};  // no partition: no mark
};

}  // namespace penstock::client
