// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/fleet_service.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kAnswerBound = absl::Minutes(2);  // of a load or a starting dispatcher
constexpr rlim_t kOtherDescriptors = 200;
// New ones of all loads. The first clients read all workers: each makes the dispatcher tell
// thousands of workers of one more reader.
constexpr double kWorkerStartsPerS = 1000;
constexpr double kClientStartsPerS = 50;
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);

// Returns the address in "dispatcher ready at HOST:PORT".
absl::StatusOr<std::string> AddressIn(const std::string& line) {
  static constexpr char kReady[] = " ready at ";
  const size_t at = line.find(kReady);
  if (at == std::string::npos) {
    return absl::InternalError(absl::StrCat("the dispatcher said: ", line));
  }
  const size_t begin = at + sizeof kReady - 1;
  return line.substr(begin, line.find_first_of(", ", begin) - begin);
}

void Add(const std::vector<int64_t>& counts, std::vector<int64_t>& sums) {
  sums.resize(std::max(sums.size(), counts.size()));
  for (size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
}

absl::StatusOr<Json> Parse(const std::string& line) {
  Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return absl::InternalError(absl::StrCat("a load said: ", line));
  if (answer.contains("error")) return absl::InternalError(answer["error"].dump());
  return answer;
}

// The processes that this one starts have the same limit of descriptors, and the dispatcher needs
// one for each peer.
absl::Status CheckDescriptors(int peers) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::ErrnoToStatus(errno, "getrlimit");
  const auto needed = static_cast<rlim_t>(peers) + kOtherDescriptors;
  if (limit.rlim_cur >= needed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a process may have ", limit.rlim_cur, " descriptors; ", peers,
                   " workers and clients need ", needed, " (ulimit -Hn)"));
}

std::string TextOf(const FleetService::State& state) {
  return absl::StrCat(state.workers, " workers and ", state.clients, " clients are welcome, ",
                      state.placed, " partitions are placed");
}

}  // namespace

absl::StatusOr<std::unique_ptr<FleetService>> FleetService::Start(const FleetOptions& options,
                                                                  int peers) {
  const int loads = (peers + options.peers_per_process - 1) / options.peers_per_process;
  RETURN_IF_ERROR(CheckDescriptors(peers));
  ASSIGN_OR_RETURN(Scratch scratch, Scratch::Make());
  std::unique_ptr<FleetService> service(new FleetService(options, std::move(scratch)));
  RETURN_IF_ERROR(service->StartDispatcher());
  ASSIGN_OR_RETURN(service->stub_, control::DispatcherStub::Make(service->address_));
  for (int i = 0; i < loads; ++i) RETURN_IF_ERROR(service->StartLoad(i, loads));
  return service;
}

absl::Status FleetService::StartDispatcher() {
  const std::string port = address_.empty() ? "0" : address_.substr(address_.rfind(':') + 1);
  const auto heartbeat_ms = static_cast<int64_t>(options_.heartbeat_s * 1e3);
  ASSIGN_OR_RETURN(
      dispatcher_,
      Process::Start({"", "dispatcher", "--host", "127.0.0.1", "--port", port, "--work-dir",
                      absl::StrCat(scratch_.path(), "/journal"), "--fault-tolerant-mode",
                      "--heartbeat-interval-ms", absl::StrCat(heartbeat_ms)},
                     Process::Ends::kBySignal, absl::StrCat(scratch_.path(), "/dispatcher.log")));
  ASSIGN_OR_RETURN(const std::string line, dispatcher_->ReadLine(kAnswerBound));
  ASSIGN_OR_RETURN(address_, AddressIn(line));
  ++term_;
  return absl::OkStatus();
}

absl::Status FleetService::RestartDispatcher() {
  ::kill(dispatcher_->pid(), SIGKILL);
  dispatcher_.reset();  // waits for its end
  return StartDispatcher();
}

absl::Status FleetService::StartLoad(int number, int loads) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<Process> load,
      Process::Start({"", "bench-fleet-load", address_, "--permits", absl::StrCat(options_.permits),
                      "--bookmark-s", absl::StrCat(options_.bookmark_s), "--report-s",
                      absl::StrCat(options_.report_s), "--worker-starts-per-s",
                      absl::StrCat(kWorkerStartsPerS / loads), "--client-starts-per-s",
                      absl::StrCat(kClientStartsPerS / loads)},
                     Process::Ends::kWithInput,
                     absl::StrCat(scratch_.path(), "/load", number, ".log")));
  loads_.push_back(std::move(load));
  return absl::OkStatus();
}

absl::StatusOr<std::string> FleetService::Ask(Process& load, const std::string& command) {
  RETURN_IF_ERROR(load.Write(command));
  return load.ReadLine(kAnswerBound);
}

// The number n belongs to the load (n - 1) % loads. Each load gets its part of the numbers.
absl::Status FleetService::AskEach(const std::string& command, int first, int count,
                                   const std::string& rest) {
  const int loads = static_cast<int>(loads_.size());
  for (int i = 0; i < std::min(loads, count); ++i) {
    const int number = first + i, its = (count - i + loads - 1) / loads;
    ASSIGN_OR_RETURN(const std::string line,
                     Ask(*loads_[static_cast<size_t>((number - 1) % loads)],
                         absl::StrCat(command, " ", number, " ", its, " ", loads, rest)));
    RETURN_IF_ERROR(Parse(line).status());
  }
  return absl::OkStatus();
}

absl::Status FleetService::StartWorkers(int first, int count) {
  return AskEach("workers", first, count, "");
}

absl::Status FleetService::StartClients(int first, int count, const control::JobAnswer& job) {
  return AskEach(
      "clients", first, count,
      absl::StrCat(" ", job.job.value(), " ", job.name, " ", absl::BytesToHexString(job.token)));
}

absl::Status FleetService::Order(const std::string& command, int worker) {
  Process& load = *loads_[static_cast<size_t>(worker - 1) % loads_.size()];
  ASSIGN_OR_RETURN(const std::string line, Ask(load, absl::StrCat(command, " ", worker)));
  return Parse(line).status();
}

absl::StatusOr<FleetService::State> FleetService::Look() {
  State sum;
  for (const auto& load : loads_) RETURN_IF_ERROR(load->Write(absl::StrCat("state ", term_)));
  for (const auto& load : loads_) {
    ASSIGN_OR_RETURN(const std::string line, load->ReadLine(kAnswerBound));
    ASSIGN_OR_RETURN(const Json its, Parse(line));
    sum.workers += its["workers"].get<int64_t>();
    sum.clients += its["clients"].get<int64_t>();
    sum.placed += its["placed"].get<int64_t>();
    sum.drained += its["drained"].get<int64_t>();
    sum.refused += its["refused"].get<int64_t>();
    if (const std::string why = its["why"].get<std::string>(); !why.empty()) sum.why = why;
  }
  return sum;
}

absl::Status FleetService::Await(const Condition& condition) {
  const absl::Time end = absl::Now() + absl::Seconds(options_.limit_s);
  while (true) {
    ASSIGN_OR_RETURN(const State state, Look());
    if (condition(state)) return absl::OkStatus();
    if (state.refused > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(state.refused, " workers and clients were refused: ", state.why));
    }
    if (absl::Now() > end) {
      return absl::DeadlineExceededError(
          absl::StrCat("after ", options_.limit_s, " s ", TextOf(state)));
    }
    absl::SleepFor(kBetweenLooks);
  }
}

absl::StatusOr<FleetService::Taken> FleetService::Take() {
  Taken sum;
  for (const auto& load : loads_) {
    ASSIGN_OR_RETURN(const std::string line, Ask(*load, "take"));
    ASSIGN_OR_RETURN(const Json its, Parse(line));
    Add(its["worker_beats"].get<std::vector<int64_t>>(), sum.worker_beats);
    Add(its["client_beats"].get<std::vector<int64_t>>(), sum.client_beats);
    sum.client_bytes += its["client_bytes"].get<int64_t>();
  }
  return sum;
}

double FleetService::dispatcher_cpu_s() const {
  clockid_t clock;
  timespec used{};
  if (::clock_getcpuclockid(dispatcher_->pid(), &clock) != 0) return 0;
  ::clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

int64_t FleetService::dispatcher_peak_bytes() const {
  std::ifstream file(absl::StrCat("/proc/", dispatcher_->pid(), "/status"));
  for (std::string word; file >> word;) {
    int64_t kib = 0;
    if (word == "VmHWM:" && file >> kib) return kib << 10;
  }
  return 0;
}

int64_t FleetService::Deaths() const {
  // Each line is a time, the name of an event and its fields (control/observe/event_log.h).
  std::ifstream file(absl::StrCat(scratch_.path(), "/dispatcher.log"));
  int64_t deaths = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string event = line.substr(space + 1, line.find(' ', space + 1) - space - 1);
    if (event == "lost" || event == "client_dead") ++deaths;
  }
  return deaths;
}

}  // namespace penstock::bench
