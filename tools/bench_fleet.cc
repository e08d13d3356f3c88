// SPDX-License-Identifier: Apache-2.0
// `penstock bench fleet`, and the processes that it starts.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/fleet/load.h"
#include "bench/fleet/run_fleet.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/record.h"
#include "tools/commands.h"

namespace penstock::tools {
namespace {

struct FleetArguments {
  bench::FleetOptions options;
  std::string json;  // a file; empty: none
};

absl::Status RunFleet(const FleetArguments& given) {
  bench::WatchForInterrupts();
  std::ofstream json;
  if (!given.json.empty()) json.open(given.json);
  if (!json) return absl::UnavailableError(absl::StrCat("cannot write ", given.json));
  const bench::Machine machine = bench::ThisMachine();
  std::printf("%s\n", bench::Describe(machine).c_str());
  json << bench::MachineRecord(machine);
  std::vector<bench::FleetSize> sizes;
  for (const int workers : given.options.sizes) {
    sizes.push_back(bench::MeasureFleet(given.options, workers));
    std::printf("%s", bench::TableOf(sizes.back()).c_str());
    std::fflush(stdout);
    json << bench::RecordOf(sizes.back()) << std::flush;
    if (!sizes.back().status.ok()) break;  // a larger fleet would stop too
  }
  std::printf("%s", bench::GrowthOf(sizes).c_str());
  return bench::CheckInterrupted();
}

void AddFleetFlags(CLI::App& command, bench::FleetOptions& options) {
  const auto positive = CLI::Range(0.001, 86400.0);
  command
      .add_option("--sizes", options.sizes, "Numbers of workers to measure, one after the other.")
      ->delimiter(',')
      ->check(CLI::Range(10, 50'000))
      ->capture_default_str();
  command.add_option("--window", options.window_s, "Seconds of the steady state.")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--limit", options.limit_s,
                  "Seconds within which each phase must come to rest. A size that does not is the "
                  "last one.")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--events", options.events,
                  "Number of losses, joins, moves and clients' joins; at most a fifth of the "
                  "workers.")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command.add_option("--heartbeat", options.heartbeat_s, "Seconds between two heartbeats.")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--report", options.report_s, "Seconds between two reports of a client.")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--bookmark", options.bookmark_s, "Seconds between two bookmarks of a worker.")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--peers-per-process", options.peers_per_process,
                  "The most workers and clients of a load process.")
      ->check(CLI::Range(1, 9'000))
      ->capture_default_str();
}

}  // namespace

void AddBenchFleet(CLI::App& bench, Chosen& chosen) {
  auto given = std::make_shared<FleetArguments>();
  CLI::App* command = bench.add_subcommand(
      "fleet", "Measure what a dispatcher costs, by the number of its workers and clients.");
  command->footer(
      "A dispatcher with a journal serves workers and a tenth as many clients over gRPC, each "
      "with\n"
      "a connection of its own. They have no data. It is killed and started again, left alone for "
      "a\n"
      "while, and then workers are lost, join and drain. The bars are for 10,000 workers on a\n"
      "machine on which the load leaves the dispatcher a core.\n\n"
      "  penstock bench fleet --sizes 100,300,1000 --json fleet.jsonl");
  AddFleetFlags(*command, given->options);
  command->add_option("--json", given->json, "File for one line of JSON for each size.");
  command->callback([given, &chosen] { chosen.run = [given] { return RunFleet(*given); }; });
}

void AddBenchFleetLoad(CLI::App& app, Chosen& chosen) {
  struct Told {
    bench::LoadOptions options;
    double bookmark_s = 10, report_s = 1;
  };
  auto told = std::make_shared<Told>();
  CLI::App* load = app.add_subcommand("bench-fleet-load", "Runs light workers and clients.");
  load->group("");
  load->add_option("service", told->options.service)->required();
  load->add_option("--permits", told->options.permits);
  load->add_option("--bookmark-s", told->bookmark_s);
  load->add_option("--report-s", told->report_s);
  load->add_option("--worker-starts-per-s", told->options.worker_starts_per_s);
  load->add_option("--client-starts-per-s", told->options.client_starts_per_s);
  load->callback([told, &chosen] {
    told->options.between_bookmarks = absl::Seconds(told->bookmark_s);
    told->options.between_reports = absl::Seconds(told->report_s);
    chosen.run = [told] { return bench::RunLoad(told->options); };
  });
}

}  // namespace penstock::tools
