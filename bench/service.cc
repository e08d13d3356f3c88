// SPDX-License-Identifier: Apache-2.0
#include "bench/service.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/process.h"
#include "bench/wire.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

// Far longer than any start or window takes on a busy machine.
constexpr absl::Duration kServiceBound = absl::Minutes(2);

// Returns "HOST:PORT" from "dispatcher ready at HOST:PORT, metrics at …".
absl::StatusOr<std::string> ReadyAt(Process& server) {
  ASSIGN_OR_RETURN(const std::string line, server.ReadLine(kServiceBound));
  constexpr absl::string_view kReady = " ready at ";
  const size_t at = line.find(kReady.data(), 0, kReady.size());
  if (at == std::string::npos) {
    return absl::InternalError(absl::StrCat("a server said: ", line));
  }
  const size_t start = at + kReady.size();
  return line.substr(start, line.find_first_of(", ", start) - start);
}

// Adds the words that set the variables, before the arguments of this program.
void AddVariables(const std::vector<std::string>& variables, std::vector<std::string>& words) {
  if (variables.empty()) return;
  words.push_back("bench-with");
  words.insert(words.end(), variables.begin(), variables.end());
}

class Service final : public Side {
 public:
  Service(Setup setup, std::string name) : setup_(std::move(setup)), name_(std::move(name)) {}
  ~Service() override {  // readers end first: for them, the end of a server is an error
    trainers_.clear();
    workers_.clear();
  }

  absl::Status Start() {
    if (setup_.protocol != "local") RETURN_IF_ERROR(StartServers());
    for (int i = 0; i < setup_.consumers; ++i) {
      std::vector<std::string> words = {""};
      AddVariables(setup_.trainer_variables, words);
      words.push_back("bench-trainer");
      ASSIGN_OR_RETURN(std::unique_ptr<Process> trainer,
                       Process::Start(words, Process::Ends::kWithInput,
                                      absl::StrCat(setup_.scratch, "/trainer.log")));
      roles_["consumer"].push_back(trainer->pid());
      setup_.consumer = i;
      RETURN_IF_ERROR(trainer->Write(ToJson(setup_).dump()));
      trainers_.push_back(std::move(trainer));
    }
    for (auto& trainer : trainers_) {
      ASSIGN_OR_RETURN(const nlohmann::json answer, Answer(*trainer));
      lanes_.merge(answer.value("lanes", std::set<std::string>()));
    }
    return absl::OkStatus();
  }

  std::string name() const override { return name_; }
  const Roles& roles() const override { return roles_; }
  std::set<std::string> lanes() const override { return lanes_; }

  absl::StatusOr<Done> Read(double seconds) override {
    const std::string order = nlohmann::json{{"seconds", seconds}}.dump();
    for (auto& trainer : trainers_) RETURN_IF_ERROR(trainer->Write(order));
    Done sum;
    for (auto& trainer : trainers_) {
      ASSIGN_OR_RETURN(const nlohmann::json answer, Answer(*trainer));
      ASSIGN_OR_RETURN(const Done done, DoneOf(answer));
      Add(done, sum);
    }
    ASSIGN_OR_RETURN(const Workload* workload, FindWorkload(setup_.workload));
    if (workload->cached()) {
      sum.elements /= setup_.consumers;
      sum.bytes /= setup_.consumers;
    }
    return sum;
  }

 private:
  // With two hosts, each server binds to its host's address and announces it.
  absl::Status StartServers() {
    std::vector<std::string> words = {"", "dispatcher", "--port", "0"};
    if (setup_.hosts.two()) words.insert(words.end(), {"--host", setup_.hosts.here});
    ASSIGN_OR_RETURN(dispatcher_, Process::Start(words, Process::Ends::kBySignal,
                                                 absl::StrCat(setup_.scratch, "/dispatcher.log")));
    roles_["dispatcher"] = {dispatcher_->pid()};
    ASSIGN_OR_RETURN(const std::string address, ReadyAt(*dispatcher_));
    setup_.service = absl::StrCat("grpc://", address);
    for (int i = 0; i < setup_.workers; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<Process> worker,
                       Process::Start(WorkerWords(), Process::Ends::kBySignal,
                                      absl::StrCat(setup_.scratch, "/worker", i, ".log")));
      if (!setup_.hosts.two()) roles_["worker"].push_back(worker->pid());
      workers_.push_back(std::move(worker));
    }
    for (auto& worker : workers_) RETURN_IF_ERROR(ReadyAt(*worker).status());
    return absl::OkStatus();
  }

  std::vector<std::string> WorkerWords() const {
    std::vector<std::string> words = {""};
    if (setup_.hosts.two()) words = setup_.hosts.run_there;
    AddVariables(setup_.worker_variables, words);
    words.insert(words.end(), {"worker", "--port", "0", "--dispatcher-address", setup_.service});
    // A worker outlives its remote shell, so it must end by itself when the dispatcher has ended.
    if (setup_.hosts.two()) {
      words.insert(words.end(), {"--host", setup_.hosts.there, "--dispatcher-timeout-ms", "10000"});
    }
    return words;
  }

  static absl::StatusOr<nlohmann::json> Answer(Process& trainer) {
    ASSIGN_OR_RETURN(const std::string line, trainer.ReadLine(kServiceBound));
    return ParseAnswer(line);
  }

  // Returns the sum over all clients. The slowest call counts for all.
  void Add(const Done& done, Done& sum) const {
    sum.seconds = std::max(sum.seconds, done.seconds);
    sum.elements += done.elements;
    sum.bytes += done.bytes;
    sum.p50_us = std::max(sum.p50_us, done.p50_us);
    sum.p99_us = std::max(sum.p99_us, done.p99_us);
    sum.max_us = std::max(sum.max_us, done.max_us);
    if (done.in_step.has_value()) sum.in_step = done.in_step;  // one trainer measures for all
    sum.shared += done.shared;
    sum.copied += done.copied;
    if (setup_.consumers > 1) {
      sum.shares.push_back(std::llround(done.elements));
    } else {
      sum.shares = done.shares;
    }
  }

  Setup setup_;
  const std::string name_;
  Roles roles_;
  std::set<std::string> lanes_;
  std::unique_ptr<Process> dispatcher_;
  std::vector<std::unique_ptr<Process>> workers_, trainers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Side>> StartService(const Setup& setup, std::string name) {
  auto service = std::make_unique<Service>(setup, std::move(name));
  RETURN_IF_ERROR(service->Start());
  return service;
}

}  // namespace penstock::bench
