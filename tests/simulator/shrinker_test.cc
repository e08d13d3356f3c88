// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/farm/shrinker.h"

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {
namespace {

constexpr char kLarge[] = R"(# A large scenario.
workers 5 permits=3
trainers 4 ack=on_commit step=1ms..5ms save_every=7
dataset range 1000 map
network delay=0.1ms..3ms slow=2%:50ms..500ms
at 2s crash dispatcher power_loss back=1s..8s
every 5s..20s one of: pause worker 1s..12s | crash trainer back=1s..40s | join worker
calm at 60s
expect exact, ends, finished within 3m
seeds 1..20
)";

// A text fails in a fake search if it has all of this.
struct Needs {
  std::string fault;
  int64_t workers = 1;
  int64_t elements = 1;
};

bool Fails(const std::string& text, const Needs& needs) {
  const Scenario scenario = ParseScenario(text).value();
  return absl::StrContains(text, needs.fault) && scenario.workers >= needs.workers &&
         scenario.elements >= needs.elements;
}

Failing Smallest(const Needs& needs, int most_tries = 1000) {
  const auto find = [&](const std::string& text) -> std::optional<Failing> {
    if (!Fails(text, needs)) return std::nullopt;
    return Failing{text, 9, "at 3s: lost: again"};
  };
  return Shrink({kLarge, 7, "at 2s: lost: an element"}, find, most_tries);
}

TEST(Shrinker, KeepsOnlyTheFaultThatIsNeeded) {
  const Failing smallest = Smallest({.fault = "crash trainer back=1s..40s"});
  EXPECT_EQ(smallest.text,
            "workers 1\n"
            "trainers 1\n"
            "dataset range 1\n"
            "every 5s..20s crash trainer back=1s..40s\n"
            "calm at 60s\n"
            "expect exact, ends, finished within 3m\n");
  EXPECT_EQ(smallest.seed, 9u);
  EXPECT_EQ(smallest.what, "at 3s: lost: again");
}

TEST(Shrinker, ReducesNumbersOnlyWhileItFails) {
  const Failing smallest = Smallest({.workers = 3, .elements = 300});
  const Scenario scenario = ParseScenario(smallest.text).value();
  EXPECT_TRUE(scenario.rules.empty());
  EXPECT_EQ(scenario.workers, 3);
  EXPECT_EQ(scenario.trainers, 1);
  EXPECT_GE(scenario.elements, 300);
  EXPECT_LT(scenario.elements, 500);
}

TEST(Shrinker, GivesBackTheScenarioIfNothingSmallerFails) {
  const auto never = [](const std::string&) { return std::optional<Failing>(); };
  const Failing smallest = Shrink({kLarge, 7, "at 2s: lost: an element"}, never, 1000);
  EXPECT_EQ(smallest.seed, 7u);
  EXPECT_EQ(ToFile(smallest), ToFile({kLarge, 7, "at 2s: lost: an element"}));
}

TEST(Shrinker, TriesABoundedNumberOfTexts) {
  int tries = 0;
  const auto counts = [&](const std::string& text) -> std::optional<Failing> {
    ++tries;
    return Failing{text, 7, "lost"};
  };
  Shrink({kLarge, 7, "lost"}, counts, 3);
  EXPECT_EQ(tries, 3);
}

TEST(Shrinker, AFileSaysWhatFailsAndHasTheSeed) {
  EXPECT_EQ(ToFile({"# old\nworkers  2 # two\n\nseeds 1..20\n", 42, "stuck:\nfor ever"}),
            "# stuck: for ever\nworkers 2\nseeds 42..42\n");
}

}  // namespace
}  // namespace penstock::simulator
