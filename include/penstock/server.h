// SPDX-License-Identifier: Apache-2.0
// Dispatcher and worker as objects in this process; `penstock dispatcher` and
// `penstock worker` are these in a program of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/tls.h"

namespace penstock {

// Where workers run: in the trainers' processes, elsewhere, or both.
enum class DeploymentMode : uint8_t { kUnspecified = 0, kColocated = 1, kRemote = 2, kHybrid = 3 };

// "COLOCATED", "REMOTE", "HYBRID" in any case, or "" for kUnspecified; else InvalidArgument.
absl::StatusOr<DeploymentMode> DeploymentModeFromName(std::string_view name);

struct DispatcherConfig {
  std::string host = "localhost";    // to bind; loopback unless said otherwise
  int port = 0;                      // 0: any free port
  std::string work_dir;              // of the journal; empty: kept in memory only
  bool fault_tolerant_mode = false;  // true needs work_dir
  absl::Duration client_timeout = absl::Seconds(60);
  absl::Duration worker_timeout = absl::Seconds(10);
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // A job that nobody has read for so long is given up, and forgotten unless a trainer may come
  // back for its part: under keep = committed, and in mode DYNAMIC unless that is to be collected
  // too.
  absl::Duration job_gc_timeout = absl::Minutes(5);
  bool gc_dynamic_sharding_jobs = false;
  // What job_gc_timeout leaves, though nobody reads it, goes after these; 0: never. Jobs may owe
  // elements to a trainer that comes back, so they stay unless it is said for how long. A dataset
  // that no job reads is registered again by the next one that does.
  absl::Duration abandoned_job_ttl = absl::ZeroDuration();
  absl::Duration dataset_ttl = absl::Hours(7 * 24);
  std::string protocol = "grpc";  // towards workers and clients; there is no other
  // The workers that there may be: "host", "host:port" or "host:%port%"; a host may stand there
  // several times. A worker's place is its shard in the modes FILE, DATA and HINT, and another
  // worker is refused. Empty: any, and as many shards as there are workers when reading begins.
  std::vector<std::string> worker_addresses;
  // With kColocated, static sharding under target_workers AUTO reads the local worker alone.
  DeploymentMode deployment_mode = DeploymentMode::kUnspecified;
  int metrics_port = -1;  // of the page /metrics, as text for Prometheus; 0: any free one, -1: none
  // What who asks for a page must show ("Authorization: Bearer …", or the password of Basic);
  // empty: nothing.
  std::string metrics_token;
  TlsConfig tls;
};

class DispatchServer {
 public:
  // Starts one. Unavailable if the port is in use; FailedPrecondition if
  // another dispatcher holds the journal or a newer release wrote it; DataLoss
  // naming the record if the journal is damaged.
  static absl::StatusOr<std::unique_ptr<DispatchServer>> Start(DispatcherConfig config = {});
  virtual ~DispatchServer() = default;  // stops it

  virtual int port() const = 0;
  virtual std::string target() const = 0;  // "grpc://localhost:5050", or "grpcs://…"
  virtual int NumWorkers() const = 0;      // alive
  virtual int metrics_port() const = 0;    // -1: none
  // OK, or why it ended by itself: a journal that cannot be written
  // (ResourceExhausted on a full disk).
  virtual absl::Status status() const = 0;
  virtual void Stop() = 0;  // idempotent, bounded
  virtual void Join() = 0;  // until stopped, or ended by itself
};

struct WorkerConfig {
  std::string dispatcher_address;  // required: "[grpc://]host:port" or "grpcs://host:port"
  std::string host = "localhost";
  int port = 0;
  // Told to clients; "%port%" stands for the port bound. Empty: host:port.
  std::string worker_address;
  std::string protocol = "grpc";  // towards the dispatcher and clients; there is no other
  absl::Duration heartbeat_interval = absl::Seconds(1);
  absl::Duration dispatcher_timeout = absl::Hours(1);
  // How long Stop() goes on serving, for readers that are about to end.
  absl::Duration shutdown_quiet_period;
  // Offered besides grpc, and what clients take that ask for "auto". Empty or "auto": all that run
  // here, the best first.
  std::string data_transfer_protocol;
  // Offered too and taken next, in this order; with one of them the named protocol may be missing
  // on this machine.
  std::vector<std::string> fallback;
  // Of "ucx": "rdma", "any" or "tcp"; empty: "rdma". For tests and machines without a NIC.
  std::string ucx_lanes;
  // Shared libraries that register further protocols (docs/transports.md).
  std::vector<std::string> transports;
  // Shared libraries that register sources, transforms and maps (docs/plugins.md), and, unless it
  // is empty, the libraries and folders that alone they may be or lie in.
  std::vector<std::string> plugins;
  std::vector<std::string> allowed_plugins;
  // Processes that run functions and generators written in Python, of whoever registers a dataset,
  // as this user (docs/security.md); 0: they are refused. Their interpreter, looked for as a shell
  // does, which needs NumPy; folders of modules, besides the interpreter's own; and, unless it is
  // empty, the modules that alone such functions may come from, and by import path only.
  int python = 0;
  std::string python_command = "python3";
  std::vector<std::string> python_path;
  std::vector<std::string> python_allow;
  // Of the protocol that has a port of its own ("tcp"): to bind (0: any free one), and told to
  // clients, where "%dts_port%" stands for the port bound. Empty: as worker_address.
  int data_transfer_port = 0;
  std::string data_transfer_address;
  // "COLOCATED" keeps the worker for trainers in its own process, unless their target_workers is
  // ANY. None may be empty.
  std::vector<std::string> worker_tags;
  // Below, "the memory" is the machine's, or the container's where that has less.
  int permits = 0;  // partitions computed at once; 0: one per 4 cores
  int threads = 0;  // of the pipeline; 0: one per core
  // Of elements on their way to clients; one that is larger alone is refused, in this whole
  // process. 0: half the memory.
  int64_t memory_budget_bytes = 0;
  // Of what nodes left at kAutotune hold ready or in work beyond their least, in all partitions
  // together; 0: a quarter of the memory, shared with whatever else reads in this process.
  int64_t ram_budget_bytes = 0;
  // Of the elements in each window that trainers share (DistributeOptions::cross_trainer_cache); 0:
  // an eighth of the memory, 10 GiB at most.
  int64_t cross_trainer_cache_size_bytes = 0;
  // Elements that several readers on this host read in one place, those of such windows and of
  // consumer groups, lie in segments of the worker's. Of these: what one reader may have at a time,
  // in its queue and lent, before it gets copies (0: 256 MiB); and what one job's may take, before
  // all get copies (0: the window and such loans of eight readers).
  int64_t max_loan_bytes = 0;
  int64_t shared_pool_bytes = 0;
  int metrics_port = -1;      // as a dispatcher's
  std::string metrics_token;  // as a dispatcher's
  // Of its connection to the dispatcher and of its grpc links. With a certificate, what is not
  // encrypted and leaves the host (tcp, ucx) is offered only where it is named above.
  TlsConfig tls;
};

class WorkerServer {
 public:
  // Starts one; returns when the dispatcher has welcomed it. InvalidArgument for
  // a config that makes no sense, Unavailable if the port is in use or no
  // dispatcher answers within dispatcher_timeout, FailedPrecondition if it
  // speaks no common version, NotFound for a data_transfer_protocol that cannot run
  // here unless one of `fallback` can, or for a python_command that is not there.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(WorkerConfig config);
  virtual ~WorkerServer() = default;  // stops it

  virtual int port() const = 0;             // of grpc
  virtual std::string address() const = 0;  // as told to clients
  virtual int NumTasks() const = 0;         // partitions placed here
  virtual int metrics_port() const = 0;     // -1: none
  // Hands all partitions back in planned moves, then stops; for SIGTERM.
  // DeadlineExceeded if the dispatcher has not taken them within `bound`; it is
  // stopped then too.
  virtual absl::Status Drain(absl::Duration bound) = 0;
  // OK, or why it ended by itself: the dispatcher was out of reach for
  // dispatcher_timeout, or refused it.
  virtual absl::Status status() const = 0;
  virtual void Stop() = 0;  // idempotent, bounded
  virtual void Join() = 0;  // until stopped, or ended by itself
};

}  // namespace penstock
