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

// Logs events that name the peer that a caller waits for: first after 2 s, then with pauses that
// double. One thread at a time.
class WaitLines {
 public:
  // `of`: fields of each event that name the waiting caller.
  WaitLines(std::shared_ptr<EventLog> events,
            std::vector<std::pair<std::string, std::string>> of = {})
      : events_(std::move(events)), of_(std::move(of)) {}

  // Notes that the present wait has lasted for `waited` and continues. Call it repeatedly. `whom`
  // is called when an event may be due; an empty text suppresses the event.
  void Waits(absl::Duration waited, absl::FunctionRef<std::string()> whom);

 private:
  static constexpr absl::Duration kFirst = absl::Seconds(2);
  // Short enough that a person who watches the log soon sees one.
  static constexpr absl::Duration kLongest = absl::Minutes(2);

  const std::shared_ptr<EventLog> events_;
  const std::vector<std::pair<std::string, std::string>> of_;
  std::string whom_;               // of the last event
  absl::Duration said_;            // how long the present wait had lasted then
  absl::Duration pause_ = kFirst;  // before the next event of the same wait
};

}  // namespace penstock
