// SPDX-License-Identifier: Apache-2.0
// Runs a dispatcher or a worker as an object in this process. `penstock dispatcher` and `penstock
// worker` run the same objects in their own programs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/moved_field.h"
#include "penstock/tls.h"

#pragma GCC visibility push(default)
namespace penstock {

// Where workers run: in the trainers' processes, elsewhere, or both.
enum class DeploymentMode : uint8_t { kUnspecified = 0, kColocated = 1, kRemote = 2, kHybrid = 3 };

// Parses "COLOCATED", "REMOTE" or "HYBRID" in any case, or "" for kUnspecified. InvalidArgument for
// any other text.
absl::StatusOr<DeploymentMode> DeploymentModeFromName(std::string_view name);

// Limits on what the jobs and datasets of one namespace hold together. Requests beyond a limit are
// refused with ResourceExhausted, which names the limit. 0: no limit. If a namespace holds more
// than a limit when the dispatcher starts, nothing of it ends, but it gets nothing more.
struct NamespaceLimits {
  int64_t jobs = 0;           // that are not finished
  int64_t dataset_bytes = 0;  // of the definitions of registered datasets
  int64_t partitions = 0;     // placed at once; further ones wait
  int64_t clients = 0;        // that read, also while they reconnect within client_timeout
  // Another limit of the partitions that are placed at once: their number in percent of the permits
  // of all workers, rounded down, but at least one.
  int64_t worker_percent = 0;
};

// How a dispatcher reaches the etcd cluster that `journal` or `leader_election` names.
struct EtcdConfig {
  std::string user;           // empty: etcd does not ask who its clients are
  std::string password_file;  // the file that contains the user's password
  // For etcds://: as in TlsConfig.
  std::string ca;
  std::string certificate;
  std::string key;
};

struct DispatcherConfig {
  std::string host = "localhost";    // to bind; loopback unless set
  int port = 0;                      // 0: any free port
  std::string work_dir;              // for the journal; empty: in memory only
  bool fault_tolerant_mode = false;  // true needs work_dir
  // The file with the key from which the tokens of jobs are made; it is made if no job needs it
  // yet. Empty: `key` in work_dir. With a file elsewhere, a copy of work_dir gives nobody a token.
  std::string journal_key_file;
  // The journal in an etcd cluster, in place of work_dir:
  // "etcd://host:port,host:port,host:port/prefix", or "etcds://…" over TLS. Several dispatchers may
  // have the same journal: one leads, and the others are standbys (docs/high_availability.md).
  // Needs journal_key_file, with the same key for all of them.
  std::string journal;
  // The same kind of address, for dispatchers that have the same work_dir, on a volume that all of
  // them mount.
  std::string leader_election;
  // A standby leads this long after the leader's last sign of life. Whole seconds, at least 2.
  absl::Duration leader_lease = absl::Seconds(3);
  EtcdConfig etcd;
  absl::Duration client_timeout = absl::Seconds(60);
  // Longer for more than 5,000 workers: 20 s for 10,000 of them.
  absl::Duration worker_timeout = absl::Seconds(10);
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // After this long without a reader, a job's ended iterations give up the elements that they still
  // owe, except under ack_mode = on_commit. The job is then forgotten, unless a trainer may return
  // for its part. A trainer may return under ack_mode = on_commit, and in mode DYNAMIC unless
  // gc_dynamic_sharding_jobs is true.
  absl::Duration job_gc_timeout = absl::Minutes(5);
  bool gc_dynamic_sharding_jobs = false;
  // The time after which unread jobs that job_gc_timeout does not remove, and datasets that no job
  // reads, are forgotten; 0: never. Such jobs may owe elements to a trainer that returns, so by
  // default they are kept. A dataset that was forgotten is registered again by the next job that
  // reads it.
  absl::Duration abandoned_job_ttl = absl::ZeroDuration();
  absl::Duration dataset_ttl = absl::Hours(7 * 24);
  std::string protocol = "grpc";  // for workers and clients; there is no other
  // The workers that may register: "host", "host:port" or "host:%port%" (any port); a host may be
  // listed several times. A worker's place in the list is its shard in the modes FILE, DATA and
  // HINT. All other workers are refused. Empty: any worker may register, and there are as many
  // shards as workers when reading begins.
  std::vector<std::string> worker_addresses;
  // With kColocated, static sharding under target_workers AUTO reads only the local worker.
  DeploymentMode deployment_mode = DeploymentMode::kUnspecified;
  int metrics_port = -1;  // of the page /metrics, text for Prometheus; 0: any free port, -1: none
  // The token that a client of the pages must send ("Authorization: Bearer …", or as the password
  // of Basic). With auth_file, the tokens of trainers and operators are accepted too, and each sees
  // its own jobs. Empty: none is needed, unless auth_file or tls.mutual is set.
  std::string metrics_token;
  // The address to bind for the pages. Empty: `host`, but loopback if auth_file or tls.mutual is
  // set, because the pages have no TLS.
  std::string metrics_host;
  TlsConfig tls;
  // The file that says which processes may do what (docs/security.md). Empty: every
  // process that reaches the port may do everything. The file is read again when it changes.
  std::string auth_file;
  NamespaceLimits namespace_limits;  // of each namespace that `namespaces` does not name
  // The limits of namespaces that have their own, by name.
  std::map<std::string, NamespaceLimits> namespaces;
  // If an iteration has more workers than this, each of its readers reads about this many of them,
  // so that the number of links does not grow with readers times workers. A worker has at least two
  // readers, so with few readers each of them reads more workers. 0: each reader reads all workers.
  // Where each reader needs each partition, such as in coordinated reads, it reads all too.
  int64_t max_links = 64;
};

class DispatchServer {
 public:
  // Starts a dispatcher. Unavailable if the port is in use. FailedPrecondition if another
  // dispatcher has the journal open, if a newer release wrote the journal, or if the key that its
  // jobs need is missing. DataLoss, with the record's number, if the journal is damaged. With
  // `journal` or `leader_election`, waits until this dispatcher leads; until then it does not
  // listen.
  static absl::StatusOr<std::unique_ptr<DispatchServer>> Start(DispatcherConfig config = {});
  virtual ~DispatchServer() = default;  // stops it

  virtual int port() const = 0;
  virtual std::string target() const = 0;  // "grpc://localhost:5050", or "grpcs://…"
  virtual int NumWorkers() const = 0;      // alive workers
  virtual int metrics_port() const = 0;    // -1: none
  // Returns OK, or the error with which the dispatcher ended by itself because the journal cannot
  // be written (ResourceExhausted if the disk is full), or because it leads no longer (Aborted).
  virtual absl::Status status() const = 0;
  virtual void Stop() = 0;  // idempotent, bounded
  virtual void Join() = 0;  // returns when it was stopped, or ended by itself
};

struct WorkerConfig {
  // Required: "[grpc://]host:port" or "grpcs://host:port"; several addresses of one service after
  // one protocol, "grpc://a:5050,b:5050". The worker follows the dispatcher that leads.
  std::string dispatcher_address;
  std::string host = "localhost";
  int port = 0;
  // Announced to clients, with the bound port in place of "%port%". Empty: host:port.
  std::string worker_address;
  std::string protocol = "grpc";  // for the dispatcher and clients; there is no other
  absl::Duration heartbeat_interval = absl::Seconds(1);
  absl::Duration dispatcher_timeout = absl::Hours(1);
  // The time for which Stop() continues to serve readers that are about to reach their end.
  absl::Duration shutdown_quiet_period;
  // The protocol that is offered besides grpc, and that clients use if they ask for "auto". Empty
  // or "auto": all protocols that can run here, the best first.
  std::string data_transfer_protocol;
  // Further protocols that are offered, and that clients try next, in this order. If one of these
  // can run, the protocol named above may be missing on this machine.
  std::vector<std::string> fallback;
  // The lanes that "ucx" may use: "rdma", "any" or "tcp"; empty: "rdma". "any" and "tcp" are for
  // tests, and for machines without a NIC for RDMA.
  std::string ucx_lanes;
  // Shared libraries that register further protocols (docs/transports.md).
  std::vector<std::string> transports;
  // Shared libraries that register sources, transforms and maps (docs/plugins.md).
  std::vector<std::string> plugins;
  // If not empty, a plug-in must be one of these libraries or be inside one of these folders.
  std::vector<std::string> plugin_allow;
  // The name of plugin_allow before 0.9. Release 0.10 removes it.
  MovedField<std::vector<std::string>> allowed_plugins;
  // The number of processes that run Python functions and generators. They run, with the rights of
  // this user, the code of anyone who registers a dataset (docs/security.md). 0: such functions are
  // refused.
  int python = 0;
  // The interpreter of these processes, which is looked up as in a shell. It needs NumPy.
  std::string python_command = "python3";
  // Folders of modules, in addition to the interpreter's own.
  std::vector<std::string> python_path;
  // If not empty, such functions may come only from these modules, and only by import path.
  std::vector<std::string> python_allow;
  // The names of environment variables of this process that the Python processes get too. Without
  // an entry here they get only those that every Python process needs (PATH, HOME, PYTHON*, LANG,
  // LC_*, LD_*, OMP_* and the like), and no credentials.
  std::vector<std::string> python_env;
  // The files that datasets may read: folders ("/data/"), files, prefixes of URLs
  // ("s3://bucket/", "https://host/path/"), and schemes ("https://"). Links, "..", and redirects
  // must stay in the list. A prefix with a host admits this host even on loopback or in a private
  // network; a scheme alone does not. Empty: all files that this user may read, if `host` is
  // loopback, and otherwise none. Other files are refused with PermissionDenied.
  std::vector<std::string> files_allow;
  // The only folder in which datasets may write, for Cache(filename). Only this user may read such
  // files. They need no entry in files_allow. Empty: any folder if `host` is loopback, and
  // otherwise none.
  std::string cache_dir;
  // For the protocol that has its own port ("tcp"): the port to bind (0: any free port), and the
  // address announced to clients, with the bound port in place of "%dts_port%". Empty: the same as
  // worker_address, but with this port.
  int data_transfer_port = 0;
  std::string data_transfer_address;
  // "COLOCATED" reserves the worker for trainers in its own process, unless their target_workers is
  // ANY. No tag may be empty.
  std::vector<std::string> worker_tags;
  // Below, "the memory" is the memory of the machine or, if it is less, of the container.
  int permits = 0;  // partitions computed at once; 0: one per 4 cores
  int threads = 0;  // of the pipeline; 0: one per core
  // The maximum number of threads, in all partitions of one job together, on which parallel nodes
  // make calls, besides the thread of each partition. 0: no limit for one job; all jobs share one
  // thread per core.
  int job_threads = 0;
  // The maximum number of bytes of elements on their way to clients. A single element that is
  // larger is refused, everywhere in this process. 0: half the memory.
  int64_t memory_budget_bytes = 0;
  // The maximum number of bytes, in all partitions together, that nodes set to kAutotune hold
  // beyond their minimum, ready or in progress. 0: a quarter of the memory, shared with all other
  // reading in this process.
  int64_t ram_budget_bytes = 0;
  // The maximum number of bytes, in all partitions together, of the elements that transforms keep
  // (Shuffle, Cache in memory, windows and others), with 256 bytes for each element. A partition
  // that needs more ends with ResourceExhausted, but a Cache reads its input again instead. 0:
  // three quarters of the memory.
  int64_t buffer_budget_bytes = 0;
  // The part of these bytes that the partitions of one job may take together. 0: all.
  int64_t job_buffer_budget_bytes = 0;
  // The maximum number of bytes of elements in each window that trainers share (CrossTrainerCache);
  // 0: an eighth of the memory, but at most 10 GiB.
  int64_t cross_trainer_cache_size_bytes = 0;
  // Elements that several readers on this host read in place (in such windows and in consumer
  // groups) are in segments of the worker. This is the number of bytes of such elements that one
  // reader may have at a time, queued and lent, before it gets copies. 0: 256 MiB.
  int64_t max_loan_bytes = 0;
  // The number of bytes of these segments that one job may use before all its readers get copies.
  // 0: the size of the window, plus eight times the limit above.
  int64_t shared_pool_bytes = 0;
  int metrics_port = -1;  // as in DispatcherConfig
  // As in DispatcherConfig, but no other tokens are accepted. Empty: none is needed, or nobody is
  // admitted if tls.token_file or tls.mutual is set.
  std::string metrics_token;
  // As in DispatcherConfig. Empty: `host`, but loopback if tls.token_file or tls.mutual is set.
  std::string metrics_host;
  // For the connection to the dispatcher and for grpc links. With a certificate, protocols that
  // send unencrypted data to other hosts (tcp, ucx) are offered only if they are named above.
  TlsConfig tls;
};

class WorkerServer {
 public:
  // Starts a worker; returns when the dispatcher has welcomed it. InvalidArgument for a config that
  // is not valid; Unavailable if the port is in use or no dispatcher answers within
  // dispatcher_timeout; FailedPrecondition if dispatcher and worker share no version of the
  // protocol; NotFound for a data_transfer_protocol that cannot run here unless one of `fallback`
  // can, or for a python_command that does not exist.
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(WorkerConfig config);
  virtual ~WorkerServer() = default;  // stops it

  virtual int port() const = 0;             // of grpc
  virtual std::string address() const = 0;  // as announced to clients
  virtual int NumTasks() const = 0;         // partitions placed here
  virtual int metrics_port() const = 0;     // -1: none
  // Hands all partitions back in planned moves, and then stops the worker; for SIGTERM.
  // DeadlineExceeded if the dispatcher has not taken all partitions back within `bound`; the worker
  // is stopped even then.
  virtual absl::Status Drain(absl::Duration bound) = 0;
  // Returns OK, or the error with which the worker ended by itself because the dispatcher was
  // unreachable for dispatcher_timeout or refused the worker.
  virtual absl::Status status() const = 0;
  virtual void Stop() = 0;  // idempotent, bounded
  virtual void Join() = 0;  // returns when it was stopped, or ended by itself
};

}  // namespace penstock
#pragma GCC visibility pop
