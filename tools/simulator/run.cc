// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/sync/clock.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"
#include "tools/simulator/check/jobs.h"
#include "tools/simulator/check/progress.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/service/cluster.h"
#include "tools/simulator/service/dataset.h"
#include "tools/simulator/service/faults.h"
#include "tools/simulator/service/world.h"
#include "tools/simulator/world/network.h"
#include "tools/simulator/world/stub.h"
#include "tools/simulator/world/transport.h"

namespace penstock::simulator {
namespace {

// Each has some ten fibers, and Linux limits how many stacks have guard pages (scheduler.h).
constexpr int kMostProcessesWithGuardPages = 1000;
constexpr absl::Duration kReadPoll = absl::Milliseconds(100);
// More than a cluster takes to end after its time is over.
constexpr absl::Duration kTimeToEnd = absl::Minutes(30);

int NumProcesses(const Scenario& scenario) {
  int processes = scenario.workers;
  for (const JobPlan& job : JobsOf(scenario)) processes += job.trainers();
  return processes;
}

struct Run {
  Run(const Scenario& scenario, uint64_t seed, Trace& trace)
      : scheduler(
            {.seed = seed, .guard_pages = NumProcesses(scenario) <= kMostProcessesWithGuardPages},
            trace),
        network(scheduler),
        transport(scheduler, network),
        scheme(network, [this](ClientId client) { world.OnHello(client); }),
        world(scheduler, network, scenario, seed) {
    network.weather = scenario.weather;
  }

  Scheduler scheduler;
  Network network;
  SimTransport transport;
  SimScheme scheme;
  World world;
  std::optional<Cluster> cluster;  // made by Direct()
  std::optional<Faults> faults;
  bool finished = false;          // all trainers have reached the end of their jobs
  bool ended = false;             // no process is left
  std::vector<std::string> left;  // the fibers that were left when all should have ended
  Outcome outcome;
};

// The main fiber of the director. Afterwards, its process is killed, so that events that it has
// planned do not begin.
void Direct(Run& run) {
  World& world = run.world;
  Cluster& cluster = run.cluster.emplace(world);
  cluster.Start();
  run.faults.emplace(world, cluster).Begin();
  Sleep(world.scenario.calm);
  cluster.Mend();
  const absl::Time deadline = BootTime() + world.scenario.finished_within;
  while (cluster.AnyReads() && !world.ended_by_deaths && BootTime() < deadline) Sleep(kReadPoll);
  run.outcome.virtual_time = world.now();
  run.outcome.inconclusive = world.ended_by_deaths;
  run.finished = !cluster.AnyReads() && !world.ended_by_deaths;
  if (run.finished || world.ended_by_deaths) {
    run.ended = cluster.Stop();
    if (!run.ended) NoteStuck(world, "processes that were told to end still run");
  } else {
    NoteStuck(world, absl::StrCat("not all trainers reached the end within ",
                                  absl::FormatDuration(world.scenario.finished_within)));
  }
  if (!run.ended) run.ended = cluster.CrashAll();
  if (!run.ended) run.left = run.scheduler.Waiting();
  world.director->Kill();
}

absl::Status RunUntil(absl::Time end, const Watch& watch, Run& run) {
  absl::Time next = run.world.start;
  while (next < end) {
    next = std::min(next + absl::Minutes(1), end);
    RETURN_IF_ERROR(run.scheduler.Run(next));
    if (run.scheduler.now() < next) break;  // no event is left
    if (watch.on_minute != nullptr) watch.on_minute(run.world.now());
  }
  return absl::OkStatus();
}

void Check(Run& run) {
  const Scenario& scenario = run.world.scenario;
  const Findings findings = CheckJobs({run.world.jobs, run.world.histories, run.world.shadow,
                                       [&](int64_t index) { return ElementValue(scenario, index); },
                                       /*calm=*/scenario.rules.empty(), scenario.given_up});
  run.outcome.elements = findings.elements;
  run.outcome.given_up = findings.given_up;
  for (const std::string& violation : findings.violations) {
    run.world.violations.push_back(violation);
  }
}

}  // namespace

absl::StatusOr<Outcome> RunScenario(const Scenario& scenario, uint64_t seed, const Watch& watch) {
  Trace none;
  Trace& used = watch.trace == nullptr ? none : *watch.trace;
  auto run = std::make_unique<Run>(scenario, seed, used);
  run->world.shadow.Watch([&world = run->world, &watch](const std::string& record) {
    world.coverage.OnRecord(record);
    if (watch.on_record != nullptr) watch.on_record(record);
  });
  run->scheduler.StartIn(run->world.director, "main", [&run] { Direct(*run); });
  const absl::Duration bound = scenario.calm + scenario.finished_within + kTimeToEnd;
  absl::Status status = RunUntil(run->world.start + bound, watch, *run);
  if (status.ok() && !run->ended) {
    if (run->left.empty()) run->left = run->scheduler.Waiting();
    status = absl::InternalError(
        absl::StrCat("processes that were killed do not end: ", absl::StrJoin(run->left, "; ")));
  }
  if (!status.ok()) {
    run.release();  // NOLINT: fibers with their own stacks still refer to it
    SetSimulation(nullptr);
    return status;
  }
  if (run->finished) Check(*run);
  Outcome outcome = std::move(run->outcome);
  outcome.violations = run->world.violations;
  outcome.switches = run->scheduler.switches();
  outcome.coverage = run->world.coverage;
  if (outcome.inconclusive) outcome.coverage.Saw("run inconclusive");
  run.reset();
  outcome.hash = used.hash();
  return outcome;
}

}  // namespace penstock::simulator
