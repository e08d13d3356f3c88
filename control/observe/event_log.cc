// SPDX-License-Identifier: Apache-2.0
#include "control/observe/event_log.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"

namespace penstock {

std::string Event::field(std::string_view key) const {
  for (const auto& [name, value] : fields) {
    if (name == key) return value;
  }
  return {};
}

namespace {

// Texts of peers may hold any bytes. No byte of them may begin a new line or a terminal's command.
bool NeedsQuotes(const std::string& value) {
  return value.empty() || std::any_of(value.begin(), value.end(), [](char c) {
           return !absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == '"' || c == '=';
         });
}

// Puts `value` in double quotes, in which a single quote needs no escape.
std::string Quoted(const std::string& value) {
  return absl::StrCat("\"", absl::StrReplaceAll(absl::CEscape(value), {{"\\'", "'"}}), "\"");
}

}  // namespace

std::string ToString(const Event& event) {
  std::string line = event.name;
  for (const auto& [key, value] : event.fields) {
    absl::StrAppend(&line, " ", key, "=", NeedsQuotes(value) ? Quoted(value) : value);
  }
  return line;
}

namespace {

class ToStderr final : public EventLog {
 public:
  void Write(Event event) override {
    const std::string line =
        absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", WallTime(), absl::UTCTimeZone()), " ",
                     ToString(event), "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);  // one call: lines stay whole
  }
};

class Silent final : public EventLog {
 public:
  void Write(Event /*event*/) override {}
};

class Captured final : public CapturedEvents {
 public:
  void Write(Event event) override {
    MutexLock lock(mu_);
    events_.push_back(std::move(event));
    changed_.NotifyAll();
  }
  std::vector<Event> All() const override {
    MutexLock lock(mu_);
    return events_;
  }
  Event WaitFor(std::string_view name, absl::Duration bound) const override {
    MutexLock lock(mu_);
    const Event* found = nullptr;
    changed_.WaitFor(lock, bound, [&]() REQUIRES(mu_) {
      for (const Event& event : events_) {
        if (event.name == name) {
          found = &event;
          return true;
        }
      }
      return false;
    });
    return found == nullptr ? Event{} : *found;
  }

 private:
  mutable Mutex mu_;
  mutable Condition changed_;
  std::vector<Event> events_ GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<EventLog> StderrEventLog() {
  static auto* const log = [] {
    const char* events = std::getenv("PENSTOCK_EVENTS");
    const bool off = events != nullptr && std::string_view(events) == "off";
    return new std::shared_ptr<EventLog>(off ? SilentEventLog() : std::make_shared<ToStderr>());
  }();
  return *log;
}

std::shared_ptr<EventLog> SilentEventLog() {
  return std::make_shared<Silent>();
}

std::shared_ptr<CapturedEvents> CapturedEvents::Make() {
  return std::make_shared<Captured>();
}

}  // namespace penstock
