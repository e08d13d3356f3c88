// SPDX-License-Identifier: Apache-2.0
// Parts of the parser of scenarios: words, times and faults.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "include/status_macros.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {

// The words of a line that are still to be parsed.
class Words {
 public:
  explicit Words(absl::string_view line);

  bool empty() const { return words_.empty(); }
  const std::string& first() const { return words_.front(); }  // REQUIRES: !empty()
  std::string Take();                                          // empty: there is no further word
  bool TakeIf(absl::string_view word);
  absl::Status Expect(absl::string_view word);
  std::string Left() const;  // the words, with spaces between them

 private:
  std::deque<std::string> words_;
};

// Returns "'<word>' is not one of <names>".
absl::Status NotOneOf(absl::string_view word, const std::vector<std::string>& names);

template <class Map>
std::vector<std::string> Names(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

absl::StatusOr<int64_t> ParseCount(const std::string& text);        // 1 or more
absl::StatusOr<absl::Duration> ParseTime(const std::string& text);  // "1.5s", "2ms", "1h"
absl::StatusOr<Span> ParseSpan(const std::string& text);            // "1s..5s" or "2s"
absl::StatusOr<AckMode> ParseAckMode(const std::string& text);      // "on_commit"

// --- Options: words such as "permits=2" ---------------------------------------------

// Sets one value of the scenario from its text.
using SetFromText = std::function<absl::Status(const std::string& text)>;
using Options = std::map<std::string, SetFromText>;

template <class T, class Parse>
SetFromText To(T& value, Parse parse) {
  return [&value, parse](const std::string& text) -> absl::Status {
    ASSIGN_OR_RETURN(value, parse(text));
    return absl::OkStatus();
  };
}

template <class Integer>
SetFromText ToCount(Integer& value) {
  return To(value, [](const std::string& text) -> absl::StatusOr<Integer> {
    ASSIGN_OR_RETURN(const int64_t count, ParseCount(text));
    return static_cast<Integer>(count);
  });
}

// Parses the rest of a line, whose words are options.
absl::Status SetOptions(Words& words, const Options& options);

// --- Faults ------------------------------------------------------------------------

// Returns the words of a fault without its numbers, times and options: "crash dispatcher
// power_loss".
std::string FaultName(absl::string_view fault);

// Parses "TIME FAULT | FAULT …", the rest of a statement `at` or `every`.
absl::Status AddRule(Words& words, bool repeats, std::vector<FaultRule>& rules);

}  // namespace penstock::simulator
