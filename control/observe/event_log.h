// SPDX-License-Identifier: Apache-2.0
// A log of events, one line each, for people and their tools:
//
//   2026-11-21T17:33:31.123456Z lost worker=1f3a… reason="port refuses" partitions=3
//
// An event is logged once, where it is handled.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace penstock {

struct Event {
  std::string name;  // "joined", "lost", "moved", "committed", "cut", …
  std::vector<std::pair<std::string, std::string>> fields;

  // Returns the value of the field `key`; empty if there is no such field.
  std::string field(std::string_view key) const;
};

// Returns `name key=value …`. Values with spaces or quotes are quoted.
std::string ToString(const Event& event);

// Writes events. Any thread may call any method.
class EventLog {
 public:
  virtual ~EventLog() = default;
  virtual void Write(Event event) = 0;
};

// Writes one line per event, beginning with the time; writes nothing if PENSTOCK_EVENTS is "off".
std::shared_ptr<EventLog> StderrEventLog();
std::shared_ptr<EventLog> SilentEventLog();

// Keeps events, for tests that read them or wait for one.
class CapturedEvents : public EventLog {
 public:
  static std::shared_ptr<CapturedEvents> Make();
  virtual std::vector<Event> All() const = 0;
  // Returns the first event with this name. If there is none yet, waits for it for at most `bound`,
  // and then returns an empty event.
  virtual Event WaitFor(std::string_view name, absl::Duration bound) const = 0;
};

}  // namespace penstock
