// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/load.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "bench/fleet/doors.h"
#include "bench/fleet/streamed_peer.h"
#include "control/proto/messages_proto.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

using Json = nlohmann::json;

// The numbers first, first + step, …
struct Numbers {
  uint64_t first = 0, count = 0, step = 1;
};

int64_t BytesOf(const control::ClientDown& message) {
  control::wire::ClientDown wire;
  control::ToWire(message, &wire);
  return static_cast<int64_t>(wire.ByteSizeLong());
}

// One thread calls it.
class LoadProcess {
 public:
  static absl::StatusOr<std::unique_ptr<LoadProcess>> Start(const LoadOptions& options) {
    ASSIGN_OR_RETURN(auto heartbeat_timers, Timers::Start());
    ASSIGN_OR_RETURN(auto open_timers, Timers::Start());
    ASSIGN_OR_RETURN(auto doors, Doors::Start());
    return std::unique_ptr<LoadProcess>(new LoadProcess(options, std::move(heartbeat_timers),
                                                        std::move(open_timers), std::move(doors)));
  }

  absl::StatusOr<Json> Do(const std::string& line) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "workers") return StartWorkers(words);
    if (name == "clients") return StartClients(words);
    if (name == "state") return State(words);
    if (name == "take") return Take();
    uint64_t number = 0;
    words >> number;
    const auto worker = workers_.find(number);
    if (worker == workers_.end()) return Unknown(line);
    if (name == "lose") {
      doors_->Close(number);
      worker->second->End();
    } else if (name == "drain") {
      worker->second->Send(control::Drain{});
    } else {
      return Unknown(line);
    }
    return Json::object();
  }

 private:
  LoadProcess(const LoadOptions& options, std::unique_ptr<Timers> heartbeat_timers,
              std::unique_ptr<Timers> open_timers, std::unique_ptr<Doors> doors)
      : options_(options),
        heartbeat_timers_(std::move(heartbeat_timers)),
        open_timers_(std::move(open_timers)),
        doors_(std::move(doors)) {
    of_workers_.heartbeat_timers = of_clients_.heartbeat_timers = heartbeat_timers_.get();
    of_workers_.open_timers = of_clients_.open_timers = open_timers_.get();
    of_workers_.heartbeats = &worker_beats_;
    of_workers_.first_backoff = absl::Milliseconds(100);  // as in dataplane/worker/agent.cc
    of_workers_.between_progress = options.between_bookmarks;
    of_clients_.heartbeats = &client_beats_;
    of_clients_.between_progress = options.between_reports;
    of_clients_.received = [this](const control::ClientDown& message) {
      client_bytes_ += BytesOf(message);
    };
  }
  static absl::Status Unknown(const std::string& line) {
    return absl::InvalidArgumentError(absl::StrCat("a load was told: ", line));
  }
  static bool Read(std::istream& words, Numbers& numbers) {
    return static_cast<bool>(words >> numbers.first >> numbers.count >> numbers.step);
  }
  // Spreads the starts over time, as a cluster's scheduler does.
  static absl::Time StartOf(uint64_t place, double starts_per_s) {
    return BootTime() + absl::Seconds(static_cast<double>(place) / starts_per_s);
  }

  absl::StatusOr<Json> StartWorkers(std::istream& words) {
    Numbers numbers;
    if (!Read(words, numbers)) return Unknown("workers");
    for (uint64_t i = 0; i < numbers.count; ++i) {
      const uint64_t number = numbers.first + i * numbers.step;
      ASSIGN_OR_RETURN(std::string address, doors_->Open(number));
      ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(options_.service));
      workers_[number] = std::make_unique<StreamedWorker>(
          LightWorker(number, options_.permits, std::move(address)), std::move(stub),
          [](control::DispatcherStub& its, control::WorkerSessionEvents* events) {
            return its.OpenWorkerSession(events);
          },
          of_workers_, StartOf(i, options_.worker_starts_per_s));
    }
    return Json::object();
  }
  absl::StatusOr<Json> StartClients(std::istream& words) {
    Numbers numbers;
    uint64_t job_id = 0;
    control::JobAnswer job;
    std::string token;
    if (!Read(words, numbers) || !(words >> job_id >> job.name >> token)) return Unknown("clients");
    job.job = JobId(job_id);
    job.token = absl::HexStringToBytes(token);
    for (uint64_t i = 0; i < numbers.count; ++i) {
      const uint64_t number = numbers.first + i * numbers.step;
      ASSIGN_OR_RETURN(auto stub, control::DispatcherStub::Make(options_.service));
      clients_[number] = std::make_unique<StreamedClient>(
          LightClient(number, job), std::move(stub),
          [](control::DispatcherStub& its, control::ClientSessionEvents* events) {
            return its.OpenClientSession(events);
          },
          of_clients_, StartOf(i, options_.client_starts_per_s));
    }
    return Json::object();
  }

  absl::StatusOr<Json> State(std::istream& words) const {
    uint64_t term = 0;
    if (!(words >> term)) return Unknown("state");
    int64_t workers = 0, clients = 0, placed = 0, drained = 0, refused = 0;
    std::string why;
    const auto count = [&](const auto& light, int64_t& present) {
      if (!light.refused().ok()) why = light.refused().ToString();
      if (!light.refused().ok()) ++refused;
      const bool is_present = light.welcome() && light.term() >= term;
      if (is_present) ++present;
      return is_present;
    };
    for (const auto& [number, worker] : workers_) {
      worker->Get([&](const LightWorker& light) {
        if (count(light, workers)) placed += light.partitions();
        if (light.drained()) ++drained;
      });
    }
    for (const auto& [number, client] : clients_)
      client->Get([&](const LightClient& light) { count(light, clients); });
    return Json{{"workers", workers}, {"clients", clients}, {"placed", placed},
                {"drained", drained}, {"refused", refused}, {"why", why}};
  }
  Json Take() {
    return {{"worker_beats", worker_beats_.Take()},
            {"client_beats", client_beats_.Take()},
            {"client_bytes", client_bytes_.exchange(0)}};
  }

  const LoadOptions options_;
  Latencies worker_beats_, client_beats_;
  std::atomic<int64_t> client_bytes_ = 0;
  PeerOptions<control::WorkerDown> of_workers_;
  PeerOptions<control::ClientDown> of_clients_;
  std::unique_ptr<Timers> heartbeat_timers_, open_timers_;
  std::unique_ptr<Doors> doors_;
  std::map<uint64_t, std::unique_ptr<StreamedWorker>> workers_;  // by number
  std::map<uint64_t, std::unique_ptr<StreamedClient>> clients_;
};

}  // namespace

absl::Status RunLoad(const LoadOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LoadProcess> load, LoadProcess::Start(options));
  std::string line;
  while (std::getline(std::cin, line)) {
    const absl::StatusOr<Json> answer = load->Do(line);
    const Json said = answer.ok() ? *answer : Json{{"error", answer.status().ToString()}};
    std::printf("%s\n", said.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace penstock::bench
