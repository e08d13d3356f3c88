// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/farm/trial.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "include/status_macros.h"
#include "tools/simulator/run.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {
namespace {

// The lines of a result that a child sends. Each is a word, a space and a value.
constexpr char kViolation[] = "violation";
constexpr char kVirtualTime[] = "virtual_ns";
constexpr char kSeen[] = "seen";  // "<count> <state>"

absl::StatusOr<Outcome> Run(const Trial& trial) {
  ASSIGN_OR_RETURN(const Scenario scenario, ParseScenario(trial.text));
  ASSIGN_OR_RETURN(Outcome outcome, RunScenario(scenario, trial.seed));
  if (!trial.twice) return outcome;
  ASSIGN_OR_RETURN(const Outcome again, RunScenario(scenario, trial.seed));
  if (again.hash != outcome.hash) {
    outcome.violations.push_back(absl::StrFormat(
        "replay: the same seed gave the hashes %016x and %016x", outcome.hash, again.hash));
  }
  return outcome;
}

// In the child.
std::string SentResult(const Trial& trial) {
  const absl::StatusOr<Outcome> outcome = Run(trial);
  const auto violation = [](absl::string_view what) {
    return absl::StrCat(kViolation, " ", absl::StrReplaceAll(what, {{"\n", " "}}), "\n");
  };
  if (!outcome.ok()) return violation(absl::StrCat("no run: ", outcome.status().message()));
  std::string text;
  if (!outcome->violations.empty()) absl::StrAppend(&text, violation(outcome->violations.front()));
  absl::StrAppend(&text, kVirtualTime, " ", absl::ToInt64Nanoseconds(outcome->virtual_time), "\n");
  for (const auto& [state, count] : outcome->coverage.counts()) {
    absl::StrAppend(&text, kSeen, " ", count, " ", state, "\n");
  }
  return text;
}

void ReadLine(absl::string_view line, TrialResult& result) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
  int64_t number = 0;
  if (parts.first == kViolation) {
    result.violation = parts.second;
  } else if (parts.first == kVirtualTime && absl::SimpleAtoi(parts.second, &number)) {
    result.virtual_time = absl::Nanoseconds(number);
  } else if (parts.first == kSeen) {
    const std::pair<std::string, std::string> seen =
        absl::StrSplit(parts.second, absl::MaxSplits(' ', 1));
    if (absl::SimpleAtoi(seen.first, &number)) result.coverage.Saw(seen.second, number);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> StartTrial(const Trial& trial, absl::Duration limit) {
  return Child::Start([&trial] { return SentResult(trial); }, limit);
}

TrialResult ResultOf(const ChildEnd& end) {
  TrialResult result;
  if (!end.text.has_value()) {
    result.violation = end.failure;
    return result;
  }
  for (absl::string_view line : absl::StrSplit(*end.text, '\n')) ReadLine(line, result);
  return result;
}

TrialResult RunTrial(const Trial& trial, absl::Duration limit) {
  return ResultOf(RunInChild([&trial] { return SentResult(trial); }, limit));
}

std::string CheckOf(std::string_view violation) {
  absl::string_view left(violation.data(), violation.size());
  const size_t time = absl::StartsWith(left, "at ") ? left.find(": ") : left.npos;
  if (time != left.npos) left.remove_prefix(time + 2);
  std::string check(left.substr(0, left.find(':')));
  check.erase(std::remove_if(check.begin(), check.end(), absl::ascii_isdigit), check.end());
  return check;
}

}  // namespace penstock::simulator
