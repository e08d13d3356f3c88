// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/scenario.h"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "control/state/format.h"
#include "include/status_macros.h"
#include "tools/simulator/scenario_jobs.h"
#include "tools/simulator/scenario_words.h"

namespace penstock::simulator {
namespace {

using protocol::Broken;

// "2%:50ms..500ms"
absl::Status ParseSlow(const std::string& text, Weather& weather) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  double percent = 0;
  if (parts.size() != 2 || !absl::EndsWith(parts[0], "%") ||
      !absl::SimpleAtod(absl::StripSuffix(parts[0], "%"), &percent) || percent < 0 ||
      percent > 100) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a chance and times, such as 2%:50ms..500ms"));
  }
  weather.slow = percent / 100;
  return To(weather.slow_delay, ParseSpan)(parts[1]);
}

absl::StatusOr<Broken> ParseBroken(const std::string& text) {
  static const std::map<std::string, Broken>& rules = *new std::map<std::string, Broken>{
      {"assign_without_fence", Broken::kAssignWithoutFence},
      {"skip_without_received", Broken::kSkipWithoutReceived},
      {"no_raise_on_death", Broken::kNoRaiseOnDeath},
      {"close_on_received_by_dead", Broken::kCloseOnReceivedByDead},
      {"close_on_received", Broken::kCloseOnReceived},
      {"no_raise_on_restart", Broken::kNoRaiseOnRestart},
      {"closed_is_finished", Broken::kClosedIsFinished},
      {"newer_state_after_death", Broken::kNewerStateAfterDeath},
      {"newest_bookmark", Broken::kNewestBookmark},
      {"retire_below_delivered", Broken::kRetireBelowDelivered},
      {"assign_again_at_start", Broken::kAssignAgainAtStart},
      {"serve_before_answer", Broken::kServeBeforeAnswer},
      {"ask_only_served", Broken::kAskOnlyServed},
      {"move_only_served", Broken::kMoveOnlyServed},
      {"complete_is_answer", Broken::kCompleteIsAnswer},
      {"complete_forgets", Broken::kCompleteForgets},
      {"agree_on_some", Broken::kAgreeOnSome}};
  const auto found = rules.find(text);
  if (found == rules.end()) return NotOneOf(text, Names(rules));
  return found->second;
}

absl::StatusOr<uint32_t> ParseFormat(const std::string& text) {
  uint32_t format = 0;
  if (absl::SimpleAtoi(text, &format) && format >= control::kFirstFormat &&
      format <= control::kNewestFormat)
    return format;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a format of the journal from ", control::kFirstFormat,
                   " to ", control::kNewestFormat));
}

absl::Status ParseDataset(Words& words, Scenario& scenario) {
  RETURN_IF_ERROR(words.Expect("range"));
  ASSIGN_OR_RETURN(scenario.elements, ParseCount(words.Take()));
  scenario.map = words.TakeIf("map");
  return SetOptions(words, {{"files", ToCount(scenario.files)},
                            {"shuffle", ToCount(scenario.shuffle)},
                            {"repeat", ToCount(scenario.repeat)}});
}

absl::Status ParseCalm(Words& words, Scenario& scenario) {
  RETURN_IF_ERROR(words.Expect("at"));
  ASSIGN_OR_RETURN(scenario.calm, ParseTime(words.Take()));
  return absl::OkStatus();
}

// "given_up<=20," may follow the words "exact, ends,", which only remind the reader of the checks.
absl::Status ParseExpect(Words& words, Scenario& scenario) {
  words.TakeIf("exact,");
  words.TakeIf("ends,");
  constexpr absl::string_view kGivenUp = "given_up<=";
  if (!words.empty() && absl::StartsWith(words.first(), kGivenUp)) {
    const std::string word = words.Take();
    const absl::string_view count = absl::StripPrefix(absl::StripSuffix(word, ","), kGivenUp);
    ASSIGN_OR_RETURN(scenario.given_up, ParseCount(std::string(count)));
  }
  RETURN_IF_ERROR(words.Expect("finished"));
  RETURN_IF_ERROR(words.Expect("within"));
  ASSIGN_OR_RETURN(scenario.finished_within, ParseTime(words.Take()));
  return absl::OkStatus();
}

absl::Status ParseSeeds(Words& words, Scenario& scenario) {
  const std::string text = words.Take();
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits("..", 1));
  if (!absl::SimpleAtoi(parts.first, &scenario.first_seed) ||
      !absl::SimpleAtoi(parts.second, &scenario.last_seed) ||
      scenario.first_seed > scenario.last_seed) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a range of seeds, such as 1..200"));
  }
  return absl::OkStatus();
}

absl::Status ParseWorkers(Words& words, Scenario& scenario) {
  RETURN_IF_ERROR(ToCount(scenario.workers)(words.Take()));
  return SetOptions(
      words, {{"permits", ToCount(scenario.permits)}, {"window", ToCount(scenario.window_bytes)}});
}

absl::Status ParseTrainers(Words& words, Scenario& scenario) {
  RETURN_IF_ERROR(ToCount(scenario.trainers)(words.Take()));
  return SetOptions(words, {{"ack", To(scenario.ack, ParseAckMode)},
                            {"step", To(scenario.step, ParseSpan)},
                            {"save_every", ToCount(scenario.save_every)}});
}

absl::Status ParseDispatcher(Words& words, Scenario& scenario) {
  return SetOptions(words, {{"heartbeat", To(scenario.heartbeat, ParseTime)},
                            {"client_timeout", To(scenario.client_timeout, ParseTime)},
                            {"worker_timeout", To(scenario.worker_timeout, ParseTime)},
                            {"snapshot_every", ToCount(scenario.snapshot_records)},
                            {"max_links", ToCount(scenario.max_links)},
                            {"max_partitions", ToCount(scenario.max_partitions)},
                            {"format", To(scenario.format, ParseFormat)}});
}

absl::Status ParseNamespace(Words& words, Scenario& scenario) {
  const std::string name = words.Take();
  if (name.empty() || name.find('=') != name.npos) {
    return absl::InvalidArgumentError("a namespace needs a name");
  }
  NamespaceLimits& limits = scenario.namespaces[name];
  return SetOptions(words, {{"max_clients", ToCount(limits.clients)},
                            {"max_partitions", ToCount(limits.partitions)},
                            {"max_worker_percent", ToCount(limits.worker_percent)}});
}

absl::Status ParseNetwork(Words& words, Scenario& scenario) {
  Weather& weather = scenario.weather;
  return SetOptions(words,
                    {{"delay", To(weather.delay, ParseSpan)},
                     {"slow", [&](const std::string& text) { return ParseSlow(text, weather); }}});
}

// "-200ppm..200ppm"
absl::StatusOr<Drift> ParseDrift(const std::string& text) {
  constexpr int64_t kMostPpm = 100'000;
  const auto parse = [](absl::string_view end, int64_t& ppm) {
    return absl::ConsumeSuffix(&end, "ppm") && absl::SimpleAtoi(end, &ppm) &&
           std::abs(ppm) <= kMostPpm;
  };
  const std::vector<std::string> ends = absl::StrSplit(text, absl::MaxSplits("..", 1));
  Drift drift;
  if (parse(ends.front(), drift.low_ppm) && parse(ends.back(), drift.high_ppm) &&
      drift.low_ppm <= drift.high_ppm) {
    return drift;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text,
                                                 "' is not a range such as -200ppm..200ppm, of at "
                                                 "most ",
                                                 kMostPpm, "ppm"));
}

// Boot times are never negative, and a right clock is at an hour when a run begins.
absl::Status ParseClocks(Words& words, Scenario& scenario) {
  RETURN_IF_ERROR(SetOptions(words, {{"skew", To(scenario.clock_skew, ParseSpan)},
                                     {"drift", To(scenario.clock_drift, ParseDrift)}}));
  if (scenario.clock_skew.low >= -absl::Hours(1)) return absl::OkStatus();
  return absl::InvalidArgumentError("a clock's skew must be -1h or more");
}

absl::Status ParseStatement(Words& words, Scenario& scenario) {
  using Parse = std::function<absl::Status(Words&, Scenario&)>;
  static const std::map<std::string, Parse>& statements = *new std::map<std::string, Parse>{
      {"dispatchers", [](Words& w, Scenario& s) { return ToCount(s.dispatchers)(w.Take()); }},
      {"workers", ParseWorkers},
      {"trainers", ParseTrainers},
      {"dataset", ParseDataset},
      {"job", AddJob},
      {"dispatcher", ParseDispatcher},
      {"namespace", ParseNamespace},
      {"network", ParseNetwork},
      {"disk",
       [](Words& w, Scenario& s) {
         return SetOptions(w, {{"sync", To(s.disk_sync, ParseSpan)}});
       }},
      {"clocks", ParseClocks},
      {"broken", [](Words& w, Scenario& s) { return To(s.broken, ParseBroken)(w.Take()); }},
      {"at", [](Words& w, Scenario& s) { return AddRule(w, /*repeats=*/false, s.rules); }},
      {"every", [](Words& w, Scenario& s) { return AddRule(w, /*repeats=*/true, s.rules); }},
      {"calm", ParseCalm},
      {"expect", ParseExpect},
      {"seeds", ParseSeeds}};
  const std::string name = words.Take();
  const auto found = statements.find(name);
  if (found == statements.end()) return NotOneOf(name, Names(statements));
  RETURN_IF_ERROR(found->second(words, scenario));
  if (words.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", words.Take(), "' is more than the statement takes"));
}

}  // namespace

int JobPlan::trainers() const {
  int count = 0;
  for (const TrainerGroup& group : groups) count += group.trainers;
  return count;
}

std::vector<JobPlan> JobsOf(const Scenario& scenario) {
  if (!scenario.jobs.empty()) return scenario.jobs;
  JobPlan job{{scenario}};
  job.ack = scenario.ack;
  job.groups = {{scenario.trainers, scenario.step}};
  return {job};
}

absl::StatusOr<Scenario> ParseScenario(std::string_view text) {
  Scenario scenario;
  int number = 0;
  const std::vector<std::string> lines =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '\n');
  for (const std::string& line : lines) {
    ++number;
    Words words(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    const absl::Status status = ParseStatement(words, scenario);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    }
  }
  RETURN_IF_ERROR(ValidateJobs(scenario));
  if (!scenario.rules.empty() && scenario.calm == absl::ZeroDuration()) {
    return absl::InvalidArgumentError("faults need a line 'calm at TIME', at which they end");
  }
  return scenario;
}

absl::StatusOr<Scenario> ReadScenario(const std::string& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  absl::StatusOr<Scenario> scenario = ParseScenario(text);
  if (scenario.ok()) return scenario;
  return absl::InvalidArgumentError(absl::StrCat(path, ", ", scenario.status().message()));
}

}  // namespace penstock::simulator
