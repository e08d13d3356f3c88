// SPDX-License-Identifier: Apache-2.0
// A dispatcher's process and the processes of its load (load.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/process.h"
#include "bench/scratch.h"
#include "control/protocol/requests.h"
#include "control/stub/dispatcher_stub.h"

namespace penstock::bench {

struct FleetOptions {
  std::vector<int> sizes = {100, 300, 1000, 3000, 10'000};  // workers
  int workers_per_client = 10;
  int peers_per_process = 3000;  // of a load; each has two descriptors
  int permits = 4;               // of a worker; as many partitions are placed on it
  int events = 100;              // of each kind, in one go; at most a fifth of the workers
  double window_s = 10;          // of the steady state; at least three heartbeats
  double limit_s = 300;          // for each phase to come to rest
  double heartbeat_s = 1;
  double report_s = 1;     // between two reports of a client
  double bookmark_s = 10;  // between two bookmarks of a worker
};

// One thread at a time calls it.
class FleetService {
 public:
  // The sums over all loads.
  struct State {
    int64_t workers = 0, clients = 0;  // that the present dispatcher has welcomed
    int64_t placed = 0;                // partitions of these workers
    int64_t drained = 0;               // workers, since the start
    int64_t refused = 0;               // workers and clients, since the start
    std::string why;                   // one of them was refused
  };
  struct Taken {
    std::vector<int64_t> worker_beats, client_beats;  // as counted by Latencies
    int64_t client_bytes = 0;
  };
  using Condition = std::function<bool(const State&)>;

  // Starts the dispatcher with a journal, and loads for `peers` workers and clients, of which none
  // is started. FailedPrecondition if a process may not have that many descriptors; the errors of
  // Process.
  static absl::StatusOr<std::unique_ptr<FleetService>> Start(const FleetOptions& options,
                                                             int peers);

  // SIGKILL, and a new process on the same journal and port. Returns when it serves.
  absl::Status RestartDispatcher();
  control::DispatcherStub& stub() { return *stub_; }

  // The workers (clients) `first` to `first` + `count` - 1 begin to register. Each number belongs
  // to one of the loads.
  absl::Status StartWorkers(int first, int count);
  absl::Status StartClients(int first, int count, const control::JobAnswer& job);
  // Does "lose" or "drain" to the worker (load.h).
  absl::Status Order(const std::string& command, int worker);
  // Waits until the condition holds. DeadlineExceeded, with the state, after options.limit_s;
  // FailedPrecondition if a worker or a client is refused; Cancelled when interrupted.
  absl::Status Await(const Condition& condition);
  // Returns the counts since the last call.
  absl::StatusOr<Taken> Take();

  double dispatcher_cpu_s() const;  // of the present process
  int64_t dispatcher_peak_bytes() const;
  // Returns how many workers and clients the dispatchers have declared dead, according to their
  // log, since the start.
  int64_t Deaths() const;

 private:
  FleetService(const FleetOptions& options, Scratch scratch)
      : options_(options), scratch_(std::move(scratch)) {}
  absl::Status StartDispatcher();
  absl::Status StartLoad(int number, int loads);
  absl::StatusOr<std::string> Ask(Process& load, const std::string& command);
  absl::Status AskEach(const std::string& command, int first, int count, const std::string& rest);
  absl::StatusOr<State> Look();

  const FleetOptions options_;
  const Scratch scratch_;
  std::string address_;  // of the dispatcher; empty before its first start
  uint64_t term_ = 0;    // the number of its starts
  std::unique_ptr<control::DispatcherStub> stub_;
  std::unique_ptr<Process> dispatcher_;
  std::vector<std::unique_ptr<Process>> loads_;
};

}  // namespace penstock::bench
