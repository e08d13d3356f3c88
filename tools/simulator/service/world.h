// SPDX-License-Identifier: Apache-2.0
// What all processes of a simulated run share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "penstock/ids.h"
#include "tools/simulator/check/coverage.h"
#include "tools/simulator/check/history.h"
#include "tools/simulator/check/renewal.h"
#include "tools/simulator/check/shadow.h"
#include "tools/simulator/engine/process.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/service/dataset.h"
#include "tools/simulator/world/network.h"
#include "tools/simulator/world/storage.h"
#include "tools/simulator/world/traffic.h"

namespace penstock::simulator {

inline constexpr int kWorkerPort = 5001;

// The dispatchers are "dispatcher", "dispatcher2" and so on.
inline std::string DispatcherHost(int number) {
  return number == 1 ? "dispatcher" : absl::StrCat("dispatcher", number);
}
inline std::string DispatcherAddress(const std::string& host) {
  return absl::StrCat(host, ":5000");
}
// Returns "sim://dispatcher:5000,dispatcher2:5000".
inline std::string ServiceOf(const Scenario& scenario) {
  std::string service = absl::StrCat("sim://", DispatcherAddress(DispatcherHost(1)));
  for (int i = 2; i <= scenario.dispatchers; ++i) {
    absl::StrAppend(&service, ",", DispatcherAddress(DispatcherHost(i)));
  }
  return service;
}

// Used on one thread. Outlives all processes of the run.
struct World final : TrafficObserver {
  World(Scheduler& its_scheduler, Network& its_network, const Scenario& its_scenario,
        uint64_t its_seed)
      : scheduler(its_scheduler),
        network(its_network),
        scenario(its_scenario),
        jobs(JobsOf(its_scenario)),
        service(ServiceOf(its_scenario)),
        seed(its_seed),
        start(its_scheduler.now()),
        storage(its_scheduler),
        director(its_scheduler.NewProcess("director", "director")) {
    network.observer = this;
    for (const JobPlan& job : jobs) StoreFiles(job, storage);
  }

  absl::Duration now() const { return scheduler.now() - start; }  // since the start of the run
  // Notes that a promise does not hold.
  void Violates(absl::string_view what) {
    violations.push_back(absl::StrCat("at ", absl::FormatDuration(now()), ": ", what));
  }
  // The process of the calling fiber says hello as this client. All processes of a history must be
  // one client.
  void OnHello(ClientId client) {
    const std::shared_ptr<Process> process = scheduler.current_process();
    const auto reader = readers.find(process->number());
    if (!process->alive() || reader == readers.end()) return;
    History& history = *reader->second;
    if (!history.client.has_value()) {
      history.client = client;
      history.connected = shadow.sequence();
    } else if (history.client != client) {
      Violates(absl::StrCat(history.name, " was ", ToString(*history.client), ", and continues as ",
                            ToString(client)));
    }
  }
  // --- What passes through the ports of dispatchers ---
  void OnMessage(const google::protobuf::Message& message) override {
    coverage.OnMessage(message);
    if (!RenewsLease(message)) return;
    const std::shared_ptr<Process> process = scheduler.current_process();
    if (!process->alive() || shadow.IsWriter(dispatchers.at(process->number()))) return;
    Violates(absl::StrCat(process->name(), " was replaced, and answers a worker's heartbeat"));
  }
  void OnCall(std::string_view method) override { coverage.OnCall(method); }
  void OnRefused(std::string_view method, const absl::Status& status) override {
    coverage.OnRefused(method, status);
  }
  // Adds a line to the trace.
  void Note(std::string_view kind, std::string_view text) {
    scheduler.trace().Add(scheduler.now(), kind, 0, 0, text);
  }

  Scheduler& scheduler;
  Network& network;
  const Scenario& scenario;
  const std::vector<JobPlan> jobs;
  const std::string service;  // what processes call to reach the dispatchers
  const uint64_t seed;
  const absl::Time start;
  Storage storage;                          // has the files of the datasets
  const std::shared_ptr<Process> director;  // starts the others, and does the faults
  Coverage coverage;
  Shadow shadow;
  Histories histories;
  std::map<uint64_t, History*> readers;  // by the number of the process that continues the history
  std::map<uint64_t, uint64_t> dispatchers;  // by process: the number of the life in `shadow`
  std::vector<std::string> violations;
  bool disk_was_full = false;  // the dispatcher's or etcd's, at some time
  int64_t worker_faults = 0;   // for which the dispatcher may take a worker for dead
  // The dispatcher ended a job because workers died under one partition, and there were as many
  // faults of workers.
  bool ended_by_deaths = false;
};

}  // namespace penstock::simulator
