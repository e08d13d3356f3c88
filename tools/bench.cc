// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/html.h"
#include "bench/limits.h"
#include "bench/machine.h"
#include "bench/record.h"
#include "bench/report.h"
#include "bench/run.h"
#include "bench/trainer.h"
#include "penstock/status.h"
#include "tools/commands.h"
#include "tools/table.h"

namespace penstock::tools {
namespace {

struct Given {
  bench::Options options;
  std::string json, html;  // files, "-" for standard output; empty: none
  int64_t source_mib = bench::kColdBytes >> 20;
  std::vector<std::string> hosts;  // none, or this one and that of the workers
  std::string remote_shell = "ssh", remote_program;
};

// What the process behind a socket limit is told.
struct Producer {
  std::string host, congestion;
  int port = 0;
  bench::Load load;
};

// A file for writing, standard output for "-", none for "".
class Output {
 public:
  static absl::StatusOr<std::unique_ptr<Output>> Open(const std::string& name) {
    std::FILE* file = nullptr;
    if (name == "-") {
      file = stdout;
    } else if (!name.empty()) {
      file = std::fopen(name.c_str(), "w");
      if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", name));
    }
    return std::unique_ptr<Output>(new Output(file));
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  }
  void Write(const std::string& text) {
    if (file_ == nullptr) return;
    std::fputs(text.c_str(), file_);
    std::fflush(file_);  // what was measured is kept whatever comes
  }

 private:
  explicit Output(std::FILE* file) : file_(file) {}
  std::FILE* file_;
};

absl::StatusOr<bench::Hosts> HostsOf(const Given& given) {
  if (given.hosts.empty()) return bench::Hosts();
  if (given.hosts.size() != 2 || given.hosts[0].empty() || given.hosts[1].empty()) {
    return absl::InvalidArgumentError(
        "--hosts takes the address of this host and that of the workers' host, with a comma");
  }
  bench::Hosts hosts{.here = given.hosts[0], .there = given.hosts[1]};
  hosts.run_there = absl::StrSplit(given.remote_shell, ' ', absl::SkipEmpty());
  if (hosts.run_there.empty()) return absl::InvalidArgumentError("--remote-shell is empty");
  hosts.run_there.push_back(hosts.there);
  std::error_code error;
  hosts.run_there.push_back(given.remote_program.empty()
                                ? std::filesystem::read_symlink("/proc/self/exe", error).string()
                                : given.remote_program);
  return hosts;
}

absl::Status Run(Given given) {
  given.options.source_bytes = given.source_mib << 20;
  PENSTOCK_ASSIGN_OR_RETURN(given.options.hosts, HostsOf(given));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<bench::Setup> cases, bench::PlanCases(given.options));
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<Output> json, Output::Open(given.json));
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<Output> html, Output::Open(given.html));
  std::FILE* const people = given.json == "-" || given.html == "-" ? stderr : stdout;

  const bench::Machine machine = bench::ThisMachine();
  std::fprintf(stderr, "%s\n", bench::Describe(machine).c_str());
  json->Write(bench::MachineRecord(machine));
  std::vector<bench::Row> rows;
  std::string refused;  // the workload and protocol that did not start: one row says why
  for (const bench::Setup& setup : cases) {
    const std::string subject = absl::StrCat(setup.workload, " ", setup.protocol);
    if (subject == refused) continue;
    for (bench::Row& row : bench::RunCase(given.options, setup)) {
      if (row.system == "penstock" && !row.status.ok() && row.pairs.empty()) refused = subject;
      std::fprintf(stderr, "%s\n", bench::ReportLine(row).c_str());
      json->Write(bench::RecordsOf(row));
      rows.push_back(std::move(row));
    }
  }
  const bench::Report report = bench::ReportOn(rows);
  std::fprintf(people, "\n%s", FormatTable(report.head, report.lines, bench::kWordColumns).c_str());
  html->Write(bench::HtmlPage(machine, rows));
  for (const bench::Row& row : rows) {  // what cannot run is a row; what reads wrong is a fault
    if (absl::IsDataLoss(row.status)) return row.status;
  }
  return absl::OkStatus();
}

std::string Questions() {
  std::string lines = "Workloads:\n";
  for (const bench::Workload* workload : bench::Workloads()) {
    const std::string name(workload->name());
    absl::StrAppend(&lines, "  ", name, std::string(8 - name.size(), ' '),
                    std::string(workload->question()), "\n");
  }
  return lines;
}

}  // namespace

void AddBench(CLI::App& app, Chosen& chosen) {
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure the whole path in separate processes, each figure beside its limit.");
  command->footer(absl::StrCat(
      Questions(),
      "\nRatios are medians over pairs of a window of ours and one of the limit; pairs in which\n"
      "others used more than 0.12 of a core are left out where there are cleaner ones. CPU is in\n"
      "seconds for each GB at the reader, p50 and p99 are of the time inside Next().\n\n"
      "  penstock bench T1 --protocol shm,tcp --size 1048576\n"
      "  penstock bench --json bench.jsonl --html bench.html"));
  command->add_option("workload", given->options.workloads, "which to run; all if none is given");
  command->add_option("--protocol", given->options.protocols, "of the transfer; all by default")
      ->delimiter(',');
  command->add_option("--size", given->options.sizes, "bytes of one element; the workload's own")
      ->delimiter(',');
  command->add_option("--pairs", given->options.pairs, "windows of ours and of the limit, in turn")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--window", given->options.window_s, "seconds of a window")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  command->add_option("--json", given->json, "write a JSON object a line here; -: standard output");
  command->add_option("--html", given->html, "write a page with plots here");
  command
      ->add_option("--hosts", given->hosts,
                   "HERE,THERE: run the workers on another host; addresses that reach each other")
      ->delimiter(',');
  command
      ->add_option("--remote-shell", given->remote_shell,
                   "runs a command on a host: words before the host and the command")
      ->capture_default_str();
  command->add_option("--remote-program", given->remote_program,
                      "this program's path on the other host; the same by default");
  command->add_option("--source-mib", given->source_mib, "of the cold source")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option(
          "--peers", given->options.peers,
          "other systems that take turns with ours (tfdata, tfdata-tuned, torch, grain, ray)")
      ->delimiter(',');
  command
      ->add_option("--peer-launcher", given->options.peer_launcher,
                   "program that becomes the peer it is told (bench/peers/README.md)")
      ->capture_default_str();
  command->callback([given, &chosen] { chosen.run = [given] { return Run(*given); }; });

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

  CLI::App* trainer = app.add_subcommand("bench-trainer", "A trainer of the bench.")->group("");
  trainer->callback([&chosen] {
    chosen.run = [&chosen] {
      chosen.exit_code = bench::RunTrainer();
      return absl::OkStatus();
    };
  });
}

}  // namespace penstock::tools
