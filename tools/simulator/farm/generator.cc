// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/farm/generator.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/scenario_words.h"

namespace penstock::simulator {
namespace {

// `{a|b}` is a or b. `[a]` is a or nothing; it may contain braces, but no brackets.
constexpr absl::string_view kStatements[] = {
    "workers {1|2|3|4|5} permits={1|2|3} [window={20000|200000}]",
    "trainers {1|2|3|4} ack={on_delivery|on_commit} "
    "step={1ms..5ms|1ms..20ms|10ms..60ms|20ms..150ms} save_every={3|7|50|200}",
    "dataset range {50|200|400|1000|3000} [map] [files={1|3|12}]",
    "dispatcher {heartbeat=500ms worker_timeout=3s|heartbeat=500ms worker_timeout=5s|"
    "heartbeat=1s worker_timeout=5s|heartbeat=1s worker_timeout=10s} "
    "client_timeout={5s|8s|20s|60s} snapshot_every={5|50|500} "
    "[max_links={1|2|3}] {||format=1}",
    "[namespace a {max_clients=1|max_clients=2|max_partitions=1|max_partitions=3|"
    "max_worker_percent=20|max_worker_percent=60|max_clients=3 max_partitions=2}]",
    "[namespace b {max_clients=2|max_partitions=2|max_worker_percent=40}]",
    "network delay={0.1ms..3ms|1ms..30ms} [slow={1%|2%|10%}:50ms..500ms]",
    "[disk sync={0.1ms..1ms|0.5ms..20ms|5ms..200ms}]",
    "[clocks skew={-1s..1s|-30m..1h|-1h..1000h} "
    "drift={0ppm..0ppm|-200ppm..200ppm|-500ppm..500ppm}]",
    "{||dispatchers 2|dispatchers 3}",
};

// The options of a statement `job`.
constexpr absl::string_view kJobs[] = {
    "[unnamed] read={any|fair} trainers={1|2|3} [step={1ms..5ms|10ms..60ms}] [repetitions={2|3}] "
    "[shuffle={2|50|1000}] [repeat={2|3}] {||permits=1|permits=3} "
    "{||outstanding=4|outstanding=16} {||namespace=a|namespace=b}",
    "mode={off|data|file_or_data|hint} elements={50|200|400} [repetitions={2|3}] "
    "{||outstanding=4|outstanding=16} {||namespace=a|namespace=b}",
    "mode=off elements={50|200} shuffle={2|50|1000} [repeat=2] {||permits=1|permits=3} "
    "{||namespace=a|namespace=b}",
    "read=rounds trainers={2|3|4}",
    "read=order trainers=1 [repetitions={2|3}]",
    "read=order trainers={2|3}",
    "read=cache mode=off ack=on_delivery trainers={1|2|3}",
};

// Further options of a statement `job`. A journal of the first format cannot contain them.
constexpr absl::string_view kShare = "{||weight=2|weight=5} {||priority=1|priority=2}";

constexpr absl::string_view kFaults[] = {
    "crash dispatcher back={100ms..3s|1s..8s|5s..30s}",
    "crash dispatcher power_loss back={100ms..3s|1s..8s}",
    "crash dispatcher 2 back={100ms..3s|1s..8s|5s..30s}",
    "crash worker back={500ms..10s|1s..40s|never}",
    "crash trainer back={100ms..20s|1s..40s|never}",
    "pause dispatcher {500ms..8s|1s..20s}",
    "pause dispatcher 2 {500ms..8s|1s..20s}",
    "pause worker {100ms..2s|1s..12s}",
    "pause trainer {100ms..2s|1s..12s|5s..30s}",
    "drain worker back={1s..10s|never}",
    "leave dispatcher back={100ms..3s|1s..8s}",
    "leave worker back={1s..10s|never}",
    "leave trainer back={1s..10s|never}",
    "join worker",
    "join trainer",
    "break trainer worker",
    "break trainer dispatcher",
    "break worker dispatcher",
    "cut trainer worker {1s..10s|1s..20s}",
    "cut trainer worker both {1s..10s|1s..20s}",
    "cut worker trainer {1s..10s|1s..20s}",
    "cut trainer dispatcher {1s..10s|1s..20s}",
    "cut trainer dispatcher both {1s..10s|1s..20s}",
    "cut dispatcher trainer {1s..10s|1s..20s}",
    "cut worker dispatcher {1s..10s|1s..20s}",
    "cut worker dispatcher both {1s..10s|1s..20s}",
    "cut dispatcher worker {1s..10s|1s..20s}",
    "jump clock dispatcher -1h..1h",
    "jump clock worker -1h..1h",
    "jump clock trainer -1h..1h",
    "cut dispatcher etcd {500ms..4s|1s..20s}",
    "cut dispatcher etcd both {500ms..4s|1s..20s}",
    "cut etcd dispatcher {500ms..4s|1s..20s}",
    "break dispatcher etcd",
    "crash etcd back={100ms..3s|1s..10s}",
    "pause etcd {100ms..2s|1s..12s}",
    "fill disk {100ms..1s|100ms..4s|1s..10s}",
    "finalise upgrade",
};

constexpr absl::string_view kOnce = "at {0s..1s|1s..5s|5s..20s} ";
constexpr absl::string_view kAgain = "every {50ms..1s|500ms..4s|2s..8s|5s..20s} ";
constexpr absl::string_view kCalm = "calm at {5s|10s|30s|60s}";

constexpr int64_t kMostJobs = 3;
constexpr int64_t kMostRules = 3;
constexpr int64_t kMostFaults = 8;  // of a rule
// More than a state takes on average until it is committed, in the worst drawn weather.
constexpr absl::Duration kSaveTime = absl::Milliseconds(1500);
// More than an element and the credit for it take on average, in the worst drawn weather.
constexpr absl::Duration kRoundTrip = absl::Milliseconds(300);
constexpr int64_t kMostCopies = 20;  // of the dataset, in mode OFF

// Draws a text from a template of the tables above.
std::string Expand(absl::string_view left, Dice& dice) {
  std::string text;
  while (!left.empty()) {
    const size_t begin = left.find_first_of("{[");
    absl::StrAppend(&text, left.substr(0, begin));
    if (begin == left.npos) break;
    const bool is_choice = left[begin] == '{';
    const size_t end = left.find(is_choice ? '}' : ']', begin);
    const absl::string_view inner = left.substr(begin + 1, end - begin - 1);
    if (is_choice) {
      const std::vector<absl::string_view> choices = absl::StrSplit(inner, '|');
      const auto last = static_cast<int64_t>(choices.size()) - 1;
      absl::StrAppend(&text, choices[static_cast<size_t>(dice.Between(0, last))]);
    } else if (dice.OneIn(2)) {
      absl::StrAppend(&text, Expand(inner, dice));
    }
    left.remove_prefix(end + 1);
  }
  return text;
}

// Adds a statement with single spaces; nothing if the template gave nothing.
void AddStatement(const std::string& drawn, std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(drawn, ' ', absl::SkipEmpty());
  if (!words.empty()) absl::StrAppend(&text, absl::StrJoin(words, " "), "\n");
}

std::string DrawRule(Dice& dice) {
  std::vector<std::string> faults;
  for (int64_t left = dice.Between(1, kMostFaults); left > 0; --left) {
    const auto last = static_cast<int64_t>(std::size(kFaults)) - 1;
    faults.push_back(Expand(kFaults[dice.Between(0, last)], dice));
  }
  return absl::StrCat(Expand(dice.OneIn(3) ? kOnce : kAgain, dice),
                      faults.size() == 1 ? "" : "one of: ", absl::StrJoin(faults, " | "));
}

std::string DrawJob(int64_t number, bool first_format, Dice& dice) {
  const auto last = static_cast<int64_t>(std::size(kJobs)) - 1;
  return absl::StrCat("job job", number, " ", Expand(kJobs[dice.Between(0, last)], dice), " ",
                      first_format ? "" : Expand(kShare, dice));
}

// Returns more time than the jobs need one after another, as the limits of a namespace and
// priorities may demand, if each of them has one trainer that begins twice.
absl::Duration TimeToFinish(const Scenario& scenario) {
  absl::Duration all;
  for (const JobPlan& job : JobsOf(scenario)) {
    const bool copies = job.mode == ShardingPolicy::kOff && job.reading != Reading::kCache;
    const int64_t elements =
        job.elements * job.repeat * job.repetitions * (copies ? kMostCopies : 1);
    const absl::Duration saving =
        job.ack == AckMode::kOnCommit ? kSaveTime / scenario.save_every : absl::ZeroDuration();
    const absl::Duration waiting =
        job.outstanding > 0 ? kRoundTrip / job.outstanding : absl::ZeroDuration();
    for (const TrainerGroup& group : job.groups) {
      const absl::Duration each = group.step.high + saving + waiting;
      all += 2 * elements * (job.named ? 1 : group.trainers) * each;
    }
  }
  return absl::Ceil(absl::Minutes(5) + all, absl::Seconds(1));
}

// Trainers that never come back may leave elements owed, if only states are committed.
std::string ExpectOf(const std::string& text) {
  const Scenario scenario = ParseScenario(text).value();
  int64_t owed = 0;
  for (const JobPlan& job : JobsOf(scenario)) {
    const bool commits = job.ack == AckMode::kOnCommit && !scenario.rules.empty();
    if (commits) owed += job.elements * job.repeat * job.repetitions;
  }
  return absl::StrCat("expect exact, ends, ",
                      owed == 0 ? "" : absl::StrCat("given_up<=", owed, ", "), "finished within ",
                      absl::FormatDuration(TimeToFinish(scenario)));
}

}  // namespace

std::string DrawScenario(uint64_t seed) {
  Dice dice(seed);
  std::string text = absl::StrCat("# Drawn from the seed ", seed, ".\n");
  for (absl::string_view statement : kStatements) AddStatement(Expand(statement, dice), text);
  const int64_t jobs = dice.OneIn(2) ? dice.Between(1, kMostJobs) : 0;
  const bool first_format = absl::StrContains(text, "format=1");
  for (int64_t i = 1; i <= jobs; ++i) AddStatement(DrawJob(i, first_format, dice), text);
  const int64_t rules = dice.Between(0, kMostRules);
  for (int64_t i = 0; i < rules; ++i) AddStatement(DrawRule(dice), text);
  if (rules > 0) AddStatement(Expand(kCalm, dice), text);
  AddStatement(ExpectOf(text), text);
  absl::StrAppend(&text, "seeds ", seed, "..", seed, "\n");
  return text;
}

std::vector<std::string> DrawnFaults() {
  std::set<std::string> names;
  for (absl::string_view fault : kFaults) names.insert(FaultName(fault));
  return {names.begin(), names.end()};
}

std::set<std::string> OptionStates(std::string_view text) {
  std::set<std::string> states;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    for (const absl::string_view word : words) {
      const absl::string_view name = word.substr(0, word.find('='));
      const bool is_option = name.size() < word.size() &&
                             std::all_of(name.begin(), name.end(),
                                         [](char c) { return absl::ascii_islower(c) || c == '_'; });
      if (is_option && name != "back") states.insert(absl::StrCat("option ", words[0], " ", name));
    }
  }
  return states;
}

std::vector<std::string> DrawnOptions() {
  std::string text;
  for (absl::string_view statement : kStatements) absl::StrAppend(&text, statement, "\n");
  for (absl::string_view job : kJobs) absl::StrAppend(&text, "job ", job, "\n");
  absl::StrAppend(&text, "job ", kShare);
  const std::string all =
      absl::StrReplaceAll(text, {{"{", " "}, {"}", " "}, {"[", " "}, {"]", " "}, {"|", " "}});
  const std::set<std::string> states = OptionStates(all);
  return {states.begin(), states.end()};
}

}  // namespace penstock::simulator
