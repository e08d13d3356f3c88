// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "control/observe/event_log.h"

namespace penstock {

// Says on the event log whom somebody waits for: first after 2 s, then with pauses that double.
// One thread at a time.
class WaitLines {
 public:
  // `of`: fields of each line, which say who waits.
  WaitLines(std::shared_ptr<EventLog> events,
            std::vector<std::pair<std::string, std::string>> of = {})
      : events_(std::move(events)), of_(std::move(of)) {}

  // The present wait has lasted for `waited`, and goes on. `whom` is asked when a line is due; an
  // empty answer is none. To be called again and again.
  void Waits(absl::Duration waited, absl::FunctionRef<std::string()> whom);

 private:
  static constexpr absl::Duration kFirst = absl::Seconds(2);
  // By then somebody who looks will see one soon.
  static constexpr absl::Duration kLongest = absl::Minutes(2);

  const std::shared_ptr<EventLog> events_;
  const std::vector<std::pair<std::string, std::string>> of_;
  std::string whom_;               // of the last line
  absl::Duration said_;            // how long the present wait had lasted then
  absl::Duration pause_ = kFirst;  // before the next line for the same
};

}  // namespace penstock
