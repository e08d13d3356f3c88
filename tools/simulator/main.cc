// SPDX-License-Identifier: Apache-2.0
// penstock-simulate: `penstock simulate` runs it. Exit code 0: no seed failed; 1: a seed failed;
// 2: invalid command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "include/status_macros.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/simulator/environment.h"
#include "tools/simulator/farm/farm.h"
#include "tools/simulator/run.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {
namespace {

struct Arguments {
  std::vector<std::string> files;  // one, unless the farm runs
  std::optional<uint64_t> seed;
  std::string seeds;  // "A..B"; empty: those of the scenario
  std::string trace;
  bool replay_check = false;
  bool farm = false;
  FarmOptions farm_options;
  int minutes = 10;
  std::optional<uint64_t> first_seed;

  const std::string& file() const { return files.front(); }
};

struct Sums {
  int64_t seeds = 0;
  int64_t failed = 0;
  int64_t inconclusive = 0;
  int64_t elements = 0;
  int64_t given_up = 0;
  int64_t switches = 0;
  absl::Duration virtual_time;
};

absl::Status ChooseSeeds(const Arguments& given, Scenario& scenario) {
  if (given.seed.has_value()) scenario.first_seed = scenario.last_seed = *given.seed;
  if (given.seeds.empty()) return absl::OkStatus();
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(given.seeds, absl::MaxSplits("..", 1));
  if (absl::SimpleAtoi(ends.first, &scenario.first_seed) &&
      absl::SimpleAtoi(ends.second, &scenario.last_seed) &&
      scenario.first_seed <= scenario.last_seed) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("--seeds needs a range such as 1..200");
}

// Lets a long run print every ten seconds how many minutes of the cluster have passed.
void PrintProgress(const Scenario& scenario, uint64_t seed, Watch& watch) {
  watch.on_minute = [&scenario, seed, begin = absl::Now(),
                     last = absl::Now()](absl::Duration now) mutable {
    if (absl::Now() < last + absl::Seconds(10)) return;
    last = absl::Now();
    std::fprintf(stderr, "seed %s: %.0f min in %.0f s; the faults end at %.0f min\n",
                 absl::StrCat(seed).c_str(), absl::ToDoubleMinutes(now),
                 absl::ToDoubleSeconds(last - begin), absl::ToDoubleMinutes(scenario.calm));
  };
}

// Runs the seed. `file`: gets the trace; empty: no trace.
absl::StatusOr<Outcome> RunOnce(const Scenario& scenario, uint64_t seed, const std::string& file) {
  Watch watch;
  PrintProgress(scenario, seed, watch);
  if (file.empty()) return RunScenario(scenario, seed, watch);
  std::FILE* const out = std::fopen(file.c_str(), "w");
  if (out == nullptr) return absl::UnavailableError(absl::StrCat("cannot write ", file));
  const absl::Cleanup close = [out] { std::fclose(out); };
  Trace trace(out);
  watch.trace = &trace;
  return RunScenario(scenario, seed, watch);
}

// Runs one seed, twice if the replay is checked. A difference counts as a violation.
absl::StatusOr<Outcome> RunSeed(const Arguments& given, const Scenario& scenario, uint64_t seed) {
  ASSIGN_OR_RETURN(Outcome outcome, RunOnce(scenario, seed, given.trace));
  if (!given.replay_check) return outcome;
  const std::string second = given.trace.empty() ? "" : absl::StrCat(given.trace, ".2");
  ASSIGN_OR_RETURN(const Outcome again, RunOnce(scenario, seed, second));
  if (again.hash != outcome.hash) {
    outcome.violations.push_back(absl::StrFormat(
        "replay: the same seed gave the hashes %016x and %016x", outcome.hash, again.hash));
  }
  return outcome;
}

void Report(const Arguments& given, uint64_t seed, const Outcome& outcome) {
  if (outcome.violations.empty()) return;
  std::printf("seed %s: %s (replay: penstock simulate %s --seed %s)\n", absl::StrCat(seed).c_str(),
              outcome.violations.front().c_str(), given.file().c_str(), absl::StrCat(seed).c_str());
  if (!given.seed.has_value()) return;
  for (size_t i = 1; i < outcome.violations.size(); ++i) {
    std::printf("  %s\n", outcome.violations[i].c_str());
  }
}

// The seeds of two farms differ, unless the user wants the same ones.
absl::Status Farm(const Arguments& given, int& exit_code) {
  FarmOptions options = given.farm_options;
  options.files = given.files;
  options.time = absl::Minutes(given.minutes);
  options.first_seed =
      given.first_seed.value_or(static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())));
  std::printf("the first seed is %s\n", absl::StrCat(options.first_seed).c_str());
  ASSIGN_OR_RETURN(const int64_t failed, RunFarm(options));
  exit_code = failed == 0 ? 0 : 1;
  return absl::OkStatus();
}

absl::Status Simulate(const Arguments& given, int& exit_code) {
  ForgetEnvironment();
  if (given.farm) return Farm(given, exit_code);
  if (given.files.size() != 1) return absl::InvalidArgumentError("give one scenario");
  ASSIGN_OR_RETURN(Scenario scenario, ReadScenario(given.file()));
  RETURN_IF_ERROR(ChooseSeeds(given, scenario));
  if (!given.trace.empty() && scenario.first_seed != scenario.last_seed) {
    return absl::InvalidArgumentError("--trace is for one seed; add --seed N");
  }
  const absl::Time begin = absl::Now();
  Sums sums;
  for (uint64_t seed = scenario.first_seed; seed <= scenario.last_seed; ++seed) {
    ASSIGN_OR_RETURN(const Outcome outcome, RunSeed(given, scenario, seed));
    Report(given, seed, outcome);
    ++sums.seeds;
    sums.failed += outcome.violations.empty() ? 0 : 1;
    sums.inconclusive += outcome.inconclusive ? 1 : 0;
    sums.elements += outcome.elements;
    sums.given_up += outcome.given_up;
    sums.switches += outcome.switches;
    sums.virtual_time += outcome.virtual_time;
    if (given.seed.has_value())
      std::printf("hash %s\n", absl::StrFormat("%016x", outcome.hash).c_str());
  }
  std::printf("%s\n",
              absl::StrFormat("%d seeds, %d failed, %d inconclusive: %d elements, %d given up, "
                              "%.2f virtual hours, %.1f s, %d switches",
                              sums.seeds, sums.failed, sums.inconclusive, sums.elements,
                              sums.given_up, absl::ToDoubleHours(sums.virtual_time),
                              absl::ToDoubleSeconds(absl::Now() - begin), sums.switches)
                  .c_str());
  exit_code = sums.failed == 0 ? 0 : 1;
  return absl::OkStatus();
}

void AddFarm(CLI::App& command, Arguments& given) {
  CLI::Option* const farm = command.add_flag(
      "--farm", given.farm,
      "Run drawn scenarios, and the given ones, under new seeds. Each run is a process.");
  for (const char* other : {"--seed", "--seeds", "--trace", "--replay-check"}) {
    farm->excludes(command.get_option(other));
  }
  command.add_option("--minutes", given.minutes, "How long runs begin.")
      ->check(CLI::PositiveNumber)
      ->needs(farm);
  command.add_option("--jobs", given.farm_options.jobs, "Runs at a time.")
      ->check(CLI::PositiveNumber)
      ->needs(farm);
  command.add_option("--out", given.farm_options.out, "Folder for scenarios that fail.")
      ->needs(farm);
  command.add_option("--first-seed", given.first_seed, "Seed of the first run.")->needs(farm);
}

void AddSimulation(CLI::App& app, tools::Chosen& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "simulate",
      "Run the whole service on one thread with a simulated time, network and disk, with faults "
      "drawn from a seed, and check every element (docs/simulator.md).");
  command->footer(
      "  penstock simulate tests/simulator/corpus/workers.scenario --seeds 1..1000\n"
      "  penstock simulate tests/simulator/corpus/workers.scenario --seed 17 --trace 17.txt");
  command->add_option("file", given->files, "The scenario; for --farm, any number of them.");
  CLI::Option* const seed = command->add_option("--seed", given->seed, "Run only this seed.");
  command->add_option("--seeds", given->seeds, "Run the seeds A..B, not those of the scenario.")
      ->excludes(seed);
  command->add_option("--trace", given->trace, "File for all that happens in the run, as text.");
  command->add_flag(
      "--replay-check", given->replay_check,
      "Run each seed twice, and compare what happens. The trace of the second run has the "
      "name FILE.2.");
  AddFarm(*command, *given);
  command->callback([given, &chosen] {
    chosen.run = [given, &chosen] { return Simulate(*given, chosen.exit_code); };
  });
}

}  // namespace
}  // namespace penstock::simulator

int main(int argc, char** argv) {
  using namespace penstock::tools;  // NOLINT: this is a program of that namespace
  PrepareProcess();
  CLI::App app("The program of `penstock simulate`.", "penstock");
  app.require_subcommand(1);
  Chosen chosen;
  penstock::simulator::AddSimulation(app, chosen);
  return RunCommandLine(app, chosen, argc, argv);
}
