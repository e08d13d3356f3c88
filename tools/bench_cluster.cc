// SPDX-License-Identifier: Apache-2.0
// `penstock bench cluster`, and the commands that it starts on other hosts.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/cluster/level.h"
#include "bench/cluster/pairs.h"
#include "bench/cluster/run_levels.h"
#include "bench/cluster/survey.h"
#include "bench/cluster/tool.h"
#include "bench/interrupt.h"
#include "bench/report.h"
#include "bench/scratch.h"
#include "dataplane/transfer/transport.h"
#include "include/status_macros.h"
#include "tools/bench_output.h"
#include "tools/commands.h"
#include "tools/hand_over.h"

namespace penstock::tools {
namespace {

const std::vector<int64_t> kSizes = {4096, 65'536, 1 << 20, 16 << 20};

// For --quick, and for pairs of hosts.
constexpr int kQuickRounds = 2;
constexpr double kQuickWindow = 0.3;  // seconds
constexpr int64_t kQuickSize = 1 << 20;

// The program that connects the ranks, and runs commands on other hosts for them.
Program Launcher(const char* task) {
  return {.file = "../share/penstock/bench_cluster/launch.py", .first = {task}};
}

struct BenchClusterArguments {
  BenchFlags flags;
  int rank = -1, ranks = -1;  // negative: not given
  std::string leader;
  std::string others;               // what the launcher found, as JSON
  std::vector<std::string> levels;  // systems or protocols; empty: all
  std::string rdma_device;
  double wait_s = 60;
  bool quick = false, all_pairs = false;
};

// Another host that takes part.
struct Other {
  bench::Hosts hosts;
  std::string agent;  // "HOST:PORT" of its rank's agent; empty: reached over the remote shell
};

// The other hosts, and the reasons why some requested ones are missing.
struct Others {
  std::vector<Other> pairs;
  std::vector<std::string> missing;
  bool launched = false;  // whether the processes were launched as ranks
};

absl::StatusOr<Others> ReadOthers(const std::string& text) {
  try {  // the library reports other JSON only by an exception
    const nlohmann::json said = nlohmann::json::parse(text);
    Others others{.missing = said.at("missing"), .launched = said.at("ranks") > 1};
    for (const nlohmann::json& one : said.at("others")) {
      const std::string agent = one.at("agent");
      others.pairs.push_back({.hosts = {.here = one.at("here"),
                                        .there = one.at("there"),
                                        .run_there = {"", "bench-there", agent}},
                              .agent = agent});
      // Its rank ends when no process has the connection any more.
      ::fcntl(one.at("connection").get<int>(), F_SETFD, FD_CLOEXEC);
    }
    return others;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("--others is for launch.py: ", error.what()));
  }
}

absl::StatusOr<Others> FindOthers(const BenchClusterArguments& given) {
  if (!given.others.empty()) return ReadOthers(given.others);
  Others others;
  if (given.flags.hosts.empty()) return others;
  if (given.flags.hosts.size() < 2) {
    return absl::InvalidArgumentError("--hosts needs this host's address and at least one other");
  }
  for (size_t i = 1; i < given.flags.hosts.size(); ++i) {
    ASSIGN_OR_RETURN(others.pairs.emplace_back().hosts, PairOf(given.flags, given.flags.hosts[i]));
  }
  if (given.all_pairs) bench::MakeKey();
  return others;
}

// Returns the levels that --level names, or all.
std::vector<bench::Level> Wanted(const BenchClusterArguments& given,
                                 std::vector<bench::Level> levels) {
  if (given.levels.empty()) {
    if (given.quick) std::erase_if(levels, [](const bench::Level& level) { return !level.quick; });
    return levels;
  }
  const auto asked = [&](const std::string& name) {
    return std::find(given.levels.begin(), given.levels.end(), name) != given.levels.end();
  };
  std::erase_if(levels, [&](const bench::Level& level) {
    return !asked(level.system) && !(level.system == "penstock" && asked(level.protocol));
  });
  return levels;
}

std::vector<bench::Row> RowsOfLevels(const BenchClusterArguments& given, const char* workload,
                                     const bench::Hosts& hosts, std::vector<bench::Level> levels) {
  const bench::LevelOptions options{.workload = workload,
                                    .hosts = hosts,
                                    .sizes = given.flags.sizes.empty() ? kSizes : given.flags.sizes,
                                    .rounds = given.flags.pairs,
                                    .window_s = given.flags.window_s};
  return bench::RunLevels(options, Wanted(given, std::move(levels)));
}

void MeasureLevels(const BenchClusterArguments& given, const char* workload,
                   const bench::Hosts& hosts, std::vector<bench::Level> levels,
                   BenchOutput& output) {
  for (bench::Row& row : RowsOfLevels(given, workload, hosts, std::move(levels))) {
    output.Add(std::move(row));
  }
}

std::vector<std::string> ProtocolsOf(const BenchClusterArguments& given) {
  return given.flags.protocols.empty() ? transfer::TransportNames() : given.flags.protocols;
}

bench::Row LeftOut(const char* workload, const bench::Hosts& hosts, absl::Status why) {
  bench::Row row;
  row.setup.workload = workload;
  row.setup.hosts = hosts;
  row.system = "all";
  row.status = std::move(why);
  return row;
}

// Returns the arguments of bench-pair on another host.
std::vector<std::string> PairFlags(const BenchClusterArguments& given) {
  const int64_t bytes = given.flags.sizes.empty() ? kQuickSize : given.flags.sizes.front();
  std::vector<std::string> words = {"--size",   absl::StrCat(bytes),
                                    "--pairs",  absl::StrCat(kQuickRounds),
                                    "--window", absl::StrCat(kQuickWindow)};
  for (const auto& [flag, values] :
       {std::pair("--protocol", &given.flags.protocols), {"--level", &given.levels}}) {
    if (!values->empty()) words.insert(words.end(), {flag, absl::StrJoin(*values, ",")});
  }
  if (!given.rdma_device.empty()) words.insert(words.end(), {"--rdma-device", given.rdma_device});
  return words;
}

// Measures from each host to each other host, including this one, one pair at a time.
void MeasurePairs(const BenchClusterArguments& given, const std::vector<Other>& reached,
                  const std::string& scratch, BenchOutput& output) {
  std::vector<std::string> hosts = {reached[0].hosts.here};
  std::vector<absl::StatusOr<bench::Agent>> agents;
  const std::string log = absl::StrCat(scratch, "/agent-");
  agents.push_back(bench::StartAgent({""}, hosts[0], absl::StrCat(log, 0)));
  for (const Other& other : reached) {
    hosts.push_back(other.hosts.there);
    if (other.agent.empty()) {
      agents.push_back(
          bench::StartAgent(other.hosts.run_there, hosts.back(), absl::StrCat(log, agents.size())));
    } else {
      agents.push_back(bench::Agent{.host = hosts.back(), .address = other.agent});
    }
  }
  const auto measure = [&](size_t reader,
                           size_t sender) -> absl::StatusOr<std::vector<bench::Row>> {
    for (const size_t end : {reader, sender}) RETURN_IF_ERROR(agents[end].status());
    return bench::MeasurePair(*agents[reader], *agents[sender], PairFlags(given),
                              absl::StrCat(scratch, "/pair-", reader, "-", sender));
  };
  for (size_t reader = 0; reader < hosts.size(); ++reader) {
    for (size_t sender = 0; sender < hosts.size(); ++sender) {
      if (sender == reader || bench::Interrupted()) continue;
      absl::StatusOr<std::vector<bench::Row>> rows = measure(reader, sender);
      if (!rows.ok()) {
        rows = std::vector{LeftOut(bench::kPairWorkload,
                                   {.here = hosts[reader], .there = hosts[sender]}, rows.status())};
      }
      for (bench::Row& row : *rows) output.Add(std::move(row));
    }
  }
}

// `penstock bench-pair`: writes the rows of `hosts`; `here` is this host.
absl::Status RunPair(const BenchClusterArguments& given, const bench::Hosts& hosts) {
  bench::WatchForInterrupts();
  ASSIGN_OR_RETURN(const bench::Scratch scratch, bench::Scratch::Make());
  ASSIGN_OR_RETURN(const bench::Survey there,
                   bench::SurveyThere(hosts, given.rdma_device, scratch.path()));
  const bench::Survey here = bench::SurveyHere(hosts.here, given.rdma_device);
  const std::vector<bench::Row> rows =
      RowsOfLevels(given, bench::kPairWorkload, hosts,
                   bench::LinkLevels(hosts, here, there, ProtocolsOf(given)));
  const nlohmann::json told = bench::ToJson(rows);
  std::printf("%s\n", told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  return bench::CheckInterrupted();
}

absl::Status Lead(const BenchClusterArguments& given) {
  ASSIGN_OR_RETURN(const Others others, FindOthers(given));
  ASSIGN_OR_RETURN(BenchOutput output, BenchOutput::Open(given.flags));
  ASSIGN_OR_RETURN(const bench::Scratch scratch, bench::Scratch::Make());
  const std::vector<std::string> protocols = ProtocolsOf(given);
  std::vector<absl::StatusOr<bench::Survey>> surveys;  // of the other hosts
  std::map<std::string, bench::Survey> of_here;        // by address of a link
  const auto survey_here = [&](const std::string& address) -> const bench::Survey& {
    const auto found = of_here.find(address);
    if (found != of_here.end()) return found->second;
    const bench::Survey& here =
        of_here.emplace(address, bench::SurveyHere(address, given.rdma_device)).first->second;
    output.Add(here.machine, bench::Called(here, address));
    return here;
  };
  const bench::Survey& here = survey_here(others.pairs.empty() ? "" : others.pairs[0].hosts.here);
  for (const Other& other : others.pairs) {
    const bench::Hosts& hosts = other.hosts;
    survey_here(hosts.here);
    surveys.push_back(bench::SurveyThere(hosts, given.rdma_device, scratch.path()));
    if (!surveys.back().ok()) continue;
    const bench::Survey& there = *surveys.back();
    output.Add(there.machine, bench::Called(there, hosts.there));
  }
  MeasureLevels(given, bench::kHostWorkload, {}, bench::HostLevels(here, protocols), output);
  std::vector<bench::Hosts> reached;
  std::vector<Other> ends;  // hosts for pairs: those reached
  for (size_t i = 0; i < others.pairs.size(); ++i) {
    const bench::Hosts& hosts = others.pairs[i].hosts;
    if (!surveys[i].ok()) {
      output.Add(LeftOut(bench::kLinkWorkload, hosts, surveys[i].status()));
      continue;
    }
    reached.push_back(hosts);
    ends.push_back(others.pairs[i]);
    MeasureLevels(given, bench::kLinkWorkload, hosts,
                  bench::LinkLevels(hosts, survey_here(hosts.here), *surveys[i], protocols),
                  output);
  }
  if (reached.size() > 1) {
    const bench::Hosts all{.here = reached[0].here,
                           .there = absl::StrCat(reached.size(), " hosts")};
    MeasureLevels(given, bench::kManyToOneWorkload, all, bench::ManyToOneLevels(reached, protocols),
                  output);
  }
  if (given.all_pairs && !ends.empty()) MeasurePairs(given, ends, scratch.path(), output);
  for (const std::string& why : others.missing) {
    output.Add(LeftOut(bench::kLinkWorkload, {}, absl::UnavailableError(why)));
  }
  if (others.pairs.empty() && others.missing.empty()) {
    output.Add(LeftOut(bench::kLinkWorkload, {},
                       absl::NotFoundError(
                           others.launched ? "all ranks are on one host"
                                           : "no other host: give --hosts, or start a rank on each "
                                             "of two nodes with srun")));
  }
  RETURN_IF_ERROR(output.Finish());
  return bench::CheckInterrupted();
}

// Returns the command line of this process, without the program.
std::vector<std::string> OwnArguments() {
  std::ifstream file("/proc/self/cmdline");
  const std::string line((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> words = absl::StrSplit(line, '\0');
  words.pop_back();  // the empty word after the last terminator
  words.erase(words.begin());
  return words;
}

absl::Status RunCluster(const BenchClusterArguments& given) {
  for (const std::string& protocol : given.flags.protocols) {
    RETURN_IF_ERROR(transfer::FindTransport(protocol).status());
  }
  // With --hosts, this process starts everything.
  const auto differs = [](const char* name, const char* alone) {
    const char* const value = std::getenv(name);
    return value != nullptr && std::strcmp(value, alone) != 0;
  };
  const bool launched = given.rank >= 0 || given.ranks >= 0 || differs("SLURM_PROCID", "0") ||
                        differs("SLURM_NTASKS", "1");
  if (launched && given.flags.hosts.empty() && given.others.empty()) {
    return RunProgram("bench", Launcher("ranks"), OwnArguments());
  }
  bench::WatchForInterrupts();
  return Lead(given);
}

}  // namespace

namespace {

void AddLevelFlags(CLI::App& command, BenchClusterArguments& given) {
  command
      .add_option(
          "--level", given.levels,
          "Systems (socket, ib_read_bw, …) and Penstock protocols to measure; the default is all.")
      ->delimiter(',');
  command.add_option(
      "--rdma-device", given.rdma_device,
      "RDMA device, as ibv_devinfo names it, on all hosts; the default is the first active one.");
}

}  // namespace

void AddBenchCluster(CLI::App& bench, Chosen& chosen) {
  auto given = std::make_shared<BenchClusterArguments>();
  given->flags.pairs = 5;
  CLI::App* command = bench.add_subcommand(
      "cluster",
      "Measure each level that moves bytes between hosts, from the wire to Penstock's protocols.");
  command->footer(
      "Each level runs if the machines have what it needs. Otherwise a row names what is missing.\n"
      "Under srun rank 0 reads; the first rank of each other node sends to it, one at a time.\n\n"
      "  srun -N2 --ntasks-per-node=1 --exclusive --cpu-bind=none penstock bench cluster --html "
      "link.html\n"
      "  penstock bench cluster --hosts trainer1,worker1,worker2 --quick\n"
      "  penstock bench cluster --rank 1 --ranks 2 --leader trainer1:7000    # and rank 0 there");
  AddBenchFlags(*command, given->flags);
  AddLevelFlags(*command, *given);
  command->add_flag(
      "--quick", given->quick,
      "Check all links in a few seconds per host: few levels, one size, short windows.");
  command->add_flag(
      "--all-pairs", given->all_pairs,
      "Finally let every host read from every other host, one pair at a time, as with --quick. "
      "A "
      "pair takes about 7 s, more with RDMA: 4 hosts take 1.5 minutes or more, 16 half an hour.");
  command->add_option("--rank", given->rank, "Rank of this process; the default is Slurm's.");
  command->add_option("--ranks", given->ranks, "Number of ranks; the default is Slurm's.");
  command->add_option(
      "--leader", given->leader,
      "HOST:PORT at which the ranks meet; the default is the first node of the step "
      "and a port derived from the job's number.");
  command->add_option("--wait", given->wait_s, "Seconds within which all ranks must arrive.")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command->add_option("--others", given->others)->group("");
  command->callback([command, given, &chosen] {
    if (given->quick) {
      if (command->count("--pairs") == 0) given->flags.pairs = kQuickRounds;
      if (command->count("--window") == 0) given->flags.window_s = kQuickWindow;
      if (given->flags.sizes.empty()) given->flags.sizes = {kQuickSize};
    }
    chosen.run = [given] { return RunCluster(*given); };
  });
}

void AddBenchRanks(CLI::App& app, Chosen& chosen) {
  struct Told {
    std::string address, rdma_device;
  };
  auto told = std::make_shared<Told>();

  AddProgram(app, chosen, "bench-there", "Runs this program on another host.", Launcher("there"))
      ->group("");
  AddProgram(app, chosen, "bench-agent", "Runs this program for other hosts.", Launcher("agent"))
      ->group("");

  CLI::App* tool = app.add_subcommand("bench-tool", "Runs a tool for the bench.")->group("");
  tool->prefix_command();
  tool->callback([tool, &chosen] {
    chosen.run = [tool]() -> absl::Status {
      const std::vector<std::string> words = tool->remaining();
      double seconds = 0;
      if (words.size() < 2 || !absl::SimpleAtod(words[0], &seconds)) {
        return absl::InvalidArgumentError("bench-tool SECONDS [NAME=VALUE…] PROGRAM ARGUMENTS…");
      }
      return bench::RunTool({words.begin() + 1, words.end()}, absl::Seconds(seconds));
    };
  });

  CLI::App* with =
      app.add_subcommand("bench-with", "Sets variables, then runs this program.")->group("");
  with->prefix_command();
  with->callback(
      [with, &chosen] { chosen.run = [with] { return bench::RunWith(with->remaining()); }; });

  auto pair = std::make_shared<BenchClusterArguments>();
  auto ends = std::make_shared<bench::Hosts>();
  auto sender = std::make_shared<std::string>();  // address of its agent
  CLI::App* measure = app.add_subcommand("bench-pair", "Reads from another host.")->group("");
  measure->add_option("here", ends->here)->required();
  measure->add_option("there", ends->there)->required();
  measure->add_option("agent", *sender)->required();
  AddCaseFlags(*measure, pair->flags);
  AddLevelFlags(*measure, *pair);
  measure->callback([pair, ends, sender, &chosen] {
    pair->quick = true;
    ends->run_there = {"", "bench-there", *sender};
    chosen.run = [pair, ends] { return RunPair(*pair, *ends); };
  });

  CLI::App* survey = app.add_subcommand("bench-survey", "Describes this host.")->group("");
  survey->add_option("address", told->address);
  survey->add_option("rdma_device", told->rdma_device);
  survey->callback([told, &chosen] {
    chosen.run = [told] {
      const bench::Survey here = bench::SurveyHere(told->address, told->rdma_device);
      std::printf("%s\n", bench::ToJson(here).dump().c_str());
      return absl::OkStatus();
    };
  });
}

}  // namespace penstock::tools
