// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/interrupt.h"
#include "bench/limits/limits.h"
#include "bench/machine.h"
#include "bench/neighbours.h"
#include "bench/page.h"
#include "bench/run.h"
#include "bench/trainers/trainer.h"
#include "include/status_macros.h"
#include "tools/bench_output.h"
#include "tools/commands.h"

namespace penstock::tools {
namespace {

struct BenchArguments {
  bench::Options options;
  BenchFlags flags;
  int64_t source_mib = bench::kColdBytes >> 20;
};

// The arguments of the process that writes for a socket limit.
struct Producer {
  std::string host, congestion;
  int port = 0;
  bench::Load load;
};

absl::Status RunBench(BenchArguments given) {
  bench::WatchForInterrupts();
  given.options.source_bytes = given.source_mib << 20;
  given.options.protocols = given.flags.protocols;
  given.options.sizes = given.flags.sizes;
  given.options.pairs = given.flags.pairs;
  given.options.window_s = given.flags.window_s;
  if (!given.flags.hosts.empty()) {
    if (given.flags.hosts.size() != 2 || given.flags.hosts[0].empty() ||
        given.flags.hosts[1].empty()) {
      return absl::InvalidArgumentError(
          "--hosts needs the addresses of this host and of the workers' host, separated by a "
          "comma");
    }
    ASSIGN_OR_RETURN(given.options.hosts, PairOf(given.flags, given.flags.hosts[1]));
  }
  ASSIGN_OR_RETURN(const std::vector<bench::Setup> cases, bench::PlanCases(given.options));
  ASSIGN_OR_RETURN(BenchOutput output, BenchOutput::Open(given.flags));
  output.Add(bench::ThisMachine());
  std::string refused;  // workload and protocol that did not start, so that only one row says why
  for (const bench::Setup& setup : cases) {
    const std::string subject = absl::StrCat(setup.workload, " ", setup.protocol);
    if (subject == refused) continue;
    if (bench::Interrupted()) break;
    for (bench::Row& row : bench::RunCase(given.options, setup)) {
      if (row.system == "penstock" && !row.status.ok() && row.pairs.empty()) refused = subject;
      output.Add(std::move(row));
    }
  }
  RETURN_IF_ERROR(output.Finish());
  return bench::CheckInterrupted();
}

struct PageArguments {
  std::string records, page, gpu_figures;
};

absl::Status MakePage(const PageArguments& given) {
  std::ifstream file(given.records);
  const std::string records((std::istreambuf_iterator<char>(file)), {});
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", given.records));
  ASSIGN_OR_RETURN(const bench::PageMaker maker, bench::PageMaker::Find(given.gpu_figures));
  ASSIGN_OR_RETURN(const std::string html, maker.Make(records));
  std::ofstream page(given.page);
  if (page << html << std::flush) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", given.page));
}

void AddBenchPage(CLI::App& bench, Chosen& chosen) {
  auto given = std::make_shared<PageArguments>();
  CLI::App* command = bench.add_subcommand(
      "page",
      "Make the page of --html from the records of --json. This may be done on any machine.");
  command->add_option("records", given->records, "File that --json wrote.")->required();
  command->add_option("page", given->page, "File for the page.")->required();
  command->add_option("--gpu-figures", given->gpu_figures,
                      "File with the output of gpu_bench, to show on the page.");
  command->callback([given, &chosen] { chosen.run = [given] { return MakePage(*given); }; });
}

std::string Questions() {
  std::string lines = "Workloads:\n";
  for (const bench::Workload* workload : bench::Workloads()) {
    const std::string name(workload->name());
    absl::StrAppend(&lines, "  ", name, std::string(12 - name.size(), ' '),
                    std::string(workload->question()), "\n");
  }
  return lines;
}

}  // namespace

void AddBench(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure the whole path in separate processes, each figure compared with a limit.");
  command->footer(absl::StrCat(
      Questions(),
      "\nA ratio is the median over pairs: a window of ours and a window of the limit. Pairs in\n"
      "which other processes used more than 0.12 of a core are dropped if there are cleaner ones.\n"
      "CPU is in seconds for each GB at the reader. p50 and p99 are times inside Next().\n\n"
      "  penstock bench T1 --protocol shm,tcp --size 1048576\n"
      "  penstock bench T1 --protocol shm --neighbours 2\n"
      "  penstock bench --json bench.jsonl --html bench.html\n"
      "  penstock bench page bench.jsonl bench.html\n"
      "  srun -N2 penstock bench cluster"));
  command->add_option("workload", given->options.workloads,
                      "Workloads to run; the default is all.");
  AddBenchFlags(*command, given->flags);
  command->add_option("--source-mib", given->source_mib, "Size of the cold source in MiB.")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--neighbours", given->options.neighbours,
                   "Number of busy processes. Each round then also measures ours next to them, "
                   "and compares it with ours alone.")
      ->check(CLI::Range(0, 1024));
  command
      ->add_option("--peers", given->options.peers,
                   "Other systems to measure in turn with ours: tfdata, tfdata-tuned, torch, "
                   "webdataset, grain, ray, or ours from Python (penstock-python).")
      ->delimiter(',');
  command
      ->add_option("--peer-launcher", given->options.peer_launcher,
                   "Program that starts the named peer (bench/peers/README.md).")
      ->capture_default_str();
  AddBenchCluster(*command, chosen);
  AddBenchFleet(*command, chosen);
  AddBenchPage(*command, chosen);
  command->callback([command, given, &chosen] {
    if (!command->get_subcommands().empty()) return;
    chosen.run = [given] { return RunBench(*given); };
  });

  auto socket = std::make_shared<Producer>();
  CLI::App* producer = app.add_subcommand("bench-socket", "Writes to a socket limit.")->group("");
  producer->add_option("host", socket->host)->required();
  producer->add_option("port", socket->port)->required();
  producer->add_option("element_bytes", socket->load.element_bytes)->required();
  producer->add_option("source_bytes", socket->load.source_bytes)->required();
  producer->add_option("congestion", socket->congestion);
  producer->callback([socket, &chosen] {
    chosen.run = [socket] {
      return bench::ProduceForSocket(socket->host, socket->port, socket->load, socket->congestion);
    };
  });

  CLI::App* neighbour = app.add_subcommand("bench-neighbour", "Keeps a processor busy.")->group("");
  neighbour->callback([&chosen] {
    chosen.run = [] {
      bench::RunNeighbour();
      return absl::OkStatus();
    };
  });

  AddBenchRanks(app, chosen);
  AddBenchFleetLoad(app, chosen);
  CLI::App* trainer = app.add_subcommand("bench-trainer", "A trainer of the bench.")->group("");
  trainer->callback([&chosen] {
    chosen.run = [&chosen] {
      chosen.exit_code = bench::RunTrainer();
      return absl::OkStatus();
    };
  });
}

}  // namespace penstock::tools
