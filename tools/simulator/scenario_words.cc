// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/scenario_words.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "include/status_macros.h"

namespace penstock::simulator {

Words::Words(absl::string_view line) {
  for (absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
    words_.emplace_back(word);
  }
}

std::string Words::Take() {
  if (empty()) return "";
  std::string word = std::move(words_.front());
  words_.pop_front();
  return word;
}

bool Words::TakeIf(absl::string_view word) {
  if (empty() || first() != word) return false;
  words_.pop_front();
  return true;
}

absl::Status Words::Expect(absl::string_view word) {
  if (TakeIf(word)) return absl::OkStatus();
  return NotOneOf(empty() ? "" : first(), {std::string(word)});
}

std::string Words::Left() const {
  return absl::StrJoin(words_, " ");
}

absl::Status NotOneOf(absl::string_view word, const std::vector<std::string>& names) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is not one of: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<int64_t> ParseCount(const std::string& text) {
  int64_t count = 0;
  if (absl::SimpleAtoi(text, &count) && count > 0 && count <= std::numeric_limits<int>::max()) {
    return count;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a number of 1 or more"));
}

absl::StatusOr<absl::Duration> ParseTime(const std::string& text) {
  absl::Duration time;
  if (absl::ParseDuration(text, &time) && time != absl::InfiniteDuration() &&
      time != -absl::InfiniteDuration()) {
    return time;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a time, such as 2ms, 1.5s or 1h"));
}

absl::StatusOr<Span> ParseSpan(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
  Span span;
  ASSIGN_OR_RETURN(span.low, ParseTime(ends.front()));
  ASSIGN_OR_RETURN(span.high, ParseTime(ends.back()));
  if (span.low <= span.high) return span;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' ends before it begins"));
}

std::string FaultName(absl::string_view fault) {
  std::vector<absl::string_view> named;
  for (absl::string_view word : absl::StrSplit(fault, ' ', absl::SkipEmpty())) {
    const bool is_name = std::all_of(word.begin(), word.end(),
                                     [](char c) { return absl::ascii_isalpha(c) || c == '_'; });
    if (is_name) named.push_back(word);
  }
  return absl::StrJoin(named, " ");
}

absl::StatusOr<AckMode> ParseAckMode(const std::string& text) {
  if (text == "on_delivery") return AckMode::kOnDelivery;
  if (text == "on_commit") return AckMode::kOnCommit;
  return NotOneOf(text, {"on_delivery", "on_commit"});
}

absl::Status SetOptions(Words& words, const Options& options) {
  while (!words.empty()) {
    const std::string word = words.Take();
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto found = options.find(parts.first);
    if (found == options.end()) return NotOneOf(word, Names(options));
    RETURN_IF_ERROR(found->second(parts.second));
  }
  return absl::OkStatus();
}

// --- Faults ------------------------------------------------------------------------

namespace {

absl::StatusOr<Target> ParseTarget(Words& words) {
  static const std::map<std::string, RoleKind>& roles =
      *new std::map<std::string, RoleKind>{{"dispatcher", RoleKind::kDispatcher},
                                           {"etcd", RoleKind::kEtcd},
                                           {"worker", RoleKind::kWorker},
                                           {"trainer", RoleKind::kTrainer}};
  const std::string word = words.Take();
  const auto found = roles.find(word);
  if (found == roles.end()) return NotOneOf(word, Names(roles));
  Target target{found->second, std::nullopt};
  int number = 0;
  if (target.kind != RoleKind::kEtcd && !words.empty() &&
      absl::SimpleAtoi(words.first(), &number) && number > 0) {
    target.number = number;
    words.Take();
  }
  return target;
}

// Parses "back=1s..5s" or "back=never", if it follows.
absl::Status ParseBack(Words& words, Fault& fault) {
  if (words.empty() || words.first().rfind("back=", 0) != 0) return absl::OkStatus();
  const std::string text = words.Take().substr(5);
  if (text == "never") return absl::OkStatus();
  ASSIGN_OR_RETURN(fault.back, ParseSpan(text));
  return absl::OkStatus();
}

absl::Status ParseLast(Words& words, Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kCrash:
      fault.power_loss = words.TakeIf("power_loss");
      return ParseBack(words, fault);
    case Fault::Kind::kDrain:
    case Fault::Kind::kLeave:
      return ParseBack(words, fault);
    case Fault::Kind::kCut:
      fault.both_ways = words.TakeIf("both");
      [[fallthrough]];
    case Fault::Kind::kPause:
    case Fault::Kind::kJumpClock:
    case Fault::Kind::kFillDisk: {
      ASSIGN_OR_RETURN(fault.time, ParseSpan(words.Take()));
      return absl::OkStatus();
    }
    case Fault::Kind::kBreak:
    case Fault::Kind::kJoin:
    case Fault::Kind::kFinalise:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status CheckTarget(const Fault& fault, const std::string& name) {
  const RoleKind kind = fault.target.kind;
  const bool drains = fault.kind == Fault::Kind::kDrain;
  const bool joins = fault.kind == Fault::Kind::kJoin;
  if (drains && kind != RoleKind::kWorker) {
    return absl::InvalidArgumentError("'drain' is for workers");
  }
  if (joins && kind != RoleKind::kWorker && kind != RoleKind::kTrainer) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is for workers and trainers"));
  }
  if (fault.power_loss && kind != RoleKind::kDispatcher) {
    return absl::InvalidArgumentError("'power_loss' is for the dispatcher, which has a disk");
  }
  return absl::OkStatus();
}

absl::StatusOr<Fault> ParseFault(Words& words) {
  static const std::map<std::string, Fault::Kind>& kinds = *new std::map<std::string, Fault::Kind>{
      {"crash", Fault::Kind::kCrash},   {"pause", Fault::Kind::kPause},
      {"cut", Fault::Kind::kCut},       {"break", Fault::Kind::kBreak},
      {"drain", Fault::Kind::kDrain},   {"leave", Fault::Kind::kLeave},
      {"join", Fault::Kind::kJoin},     {"jump", Fault::Kind::kJumpClock},
      {"fill", Fault::Kind::kFillDisk}, {"finalise", Fault::Kind::kFinalise}};
  const std::string word = words.Take();
  const auto found = kinds.find(word);
  if (found == kinds.end()) return NotOneOf(word, Names(kinds));
  Fault fault{.kind = found->second};
  if (fault.kind == Fault::Kind::kJumpClock) RETURN_IF_ERROR(words.Expect("clock"));
  if (fault.kind == Fault::Kind::kFillDisk) {
    RETURN_IF_ERROR(words.Expect("disk"));
  } else if (fault.kind == Fault::Kind::kFinalise) {
    RETURN_IF_ERROR(words.Expect("upgrade"));
  } else {
    ASSIGN_OR_RETURN(fault.target, ParseTarget(words));
  }
  if (fault.kind == Fault::Kind::kCut || fault.kind == Fault::Kind::kBreak) {
    ASSIGN_OR_RETURN(fault.other, ParseTarget(words));
  }
  RETURN_IF_ERROR(ParseLast(words, fault));
  RETURN_IF_ERROR(CheckTarget(fault, word));
  return fault;
}

}  // namespace

absl::Status AddRule(Words& words, bool repeats, std::vector<FaultRule>& rules) {
  FaultRule rule{.repeats = repeats};
  ASSIGN_OR_RETURN(rule.when, ParseSpan(words.Take()));
  if (rule.when.low < (repeats ? absl::Milliseconds(1) : absl::ZeroDuration())) {
    return absl::InvalidArgumentError("the time of a fault must be positive");
  }
  if (words.TakeIf("one")) RETURN_IF_ERROR(words.Expect("of:"));
  do {
    const std::string text = words.Left();
    ASSIGN_OR_RETURN(Fault fault, ParseFault(words));
    fault.name = FaultName(absl::string_view(text).substr(0, text.find('|')));
    rule.faults.push_back(std::move(fault));
  } while (words.TakeIf("|"));
  rules.push_back(std::move(rule));
  return absl::OkStatus();
}

}  // namespace penstock::simulator
