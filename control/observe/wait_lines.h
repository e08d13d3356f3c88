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

// Logs events that name the peer for which a caller waits: the first event after 2 s, the next ones
// after pauses that double. Used by one thread at a time.
class WaitLines {
 public:
  // `of`: fields that name the waiting caller, for each event.
  WaitLines(std::shared_ptr<EventLog> events,
            std::vector<std::pair<std::string, std::string>> of = {})
      : events_(std::move(events)), of_(std::move(of)) {}

  // Notes that the present wait has lasted for `waited` and continues. Call it repeatedly during a
  // wait. `whom` returns the name of the peer; it is called when an event may be due. If it returns
  // an empty text, no event is logged.
  void Waits(absl::Duration waited, absl::FunctionRef<std::string()> whom);

 private:
  static constexpr absl::Duration kFirst = absl::Seconds(2);
  // The longest pause: short enough that a person who watches the log soon sees an event.
  static constexpr absl::Duration kLongest = absl::Minutes(2);

  const std::shared_ptr<EventLog> events_;
  const std::vector<std::pair<std::string, std::string>> of_;
  std::string whom_;               // of the last event
  absl::Duration said_;            // the length of the present wait at that event
  absl::Duration pause_ = kFirst;  // before the next event of the same wait
};

}  // namespace penstock
