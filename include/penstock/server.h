// SPDX-License-Identifier: Apache-2.0
// Dispatcher and worker as objects in this process; `penstock dispatcher` and
// `penstock worker` are these in a program of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock {

struct DispatcherConfig {
  std::string host = "localhost";  // to bind; loopback unless said otherwise
  int port = 0;                    // 0: any free port
  std::string work_dir;            // of the journal; empty: kept in memory only
  bool fault_tolerant_mode = false;  // true needs work_dir
  absl::Duration client_timeout = absl::Seconds(60);
  absl::Duration worker_timeout = absl::Seconds(10);
  absl::Duration heartbeat_interval = absl::Seconds(1);
  absl::Duration job_gc_timeout = absl::Minutes(5);
};

class DispatchServer {
 public:
  // Starts one. Unavailable if the port is in use; FailedPrecondition if
  // another dispatcher holds the journal or a newer release wrote it; DataLoss
  // naming the record if the journal is damaged.
  static absl::StatusOr<std::unique_ptr<DispatchServer>> Start(DispatcherConfig config = {});
  virtual ~DispatchServer() = default;  // stops it

  virtual int port() const = 0;
  virtual std::string target() const = 0;  // "grpc://localhost:5050"
  virtual int NumWorkers() const = 0;      // alive
  virtual void Stop() = 0;                 // idempotent, bounded
  virtual void Join() = 0;                 // until stopped
};

struct WorkerConfig {
  std::string dispatcher_address;          // required: "[grpc://]host:port"
  std::string host = "localhost";
  int port = 0;
  std::string worker_address;              // told to clients; empty: host:port
  absl::Duration heartbeat_interval = absl::Seconds(1);
  absl::Duration dispatcher_timeout = absl::Hours(1);
  std::string data_transfer_protocol;      // offered besides grpc; empty: all
  std::vector<std::string> worker_tags;
  int permits = 0;                         // partitions computed at once; 0: one per 4 cores
  int threads = 0;                         // of the pipeline; 0: one per core
  int64_t memory_budget_bytes = 0;         // 0: half the machine's
};

class WorkerServer {
 public:
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(WorkerConfig config);
  virtual ~WorkerServer() = default;

  virtual int port() const = 0;
  virtual std::string address() const = 0;
  virtual int NumTasks() const = 0;
  // Hands all partitions back in planned moves, then stops; for SIGTERM.
  virtual absl::Status Drain(absl::Duration bound) = 0;
  virtual void Stop() = 0;
  virtual void Join() = 0;
};

}  // namespace penstock
