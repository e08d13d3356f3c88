// SPDX-License-Identifier: Apache-2.0
#include "control/settings/server_settings.h"

#include "control/settings/tls_settings.h"

namespace penstock {
namespace {

constexpr char kProtocolHelp[] = "Protocol for the other servers and for clients: grpc.";
constexpr char kTokenHelp[] =
    "Token that a client of a status page must send, as a Bearer token or as the password of "
    "Basic; empty means none.";
constexpr char kPagesHostHelp[] =
    "Address to bind for the status pages; empty means --host, but loopback if clients must show "
    "who they are, because the pages have no TLS.";
constexpr char kMetricsHelp[] =
    "Port of the page /metrics for Prometheus; 0 means any free port, -1 means no page.";

template <class Config>
std::string HostOfPages(const Config& config) {
  if (!config.metrics_host.empty()) return config.metrics_host;
  return AsksWho(config) ? "127.0.0.1" : config.host;
}

}  // namespace

std::vector<Setting> SettingsOf(DispatcherConfig& config) {
  std::vector<Setting> rows = {
      {"host", &config.host, "Address to bind; the default is loopback."},
      {"port", &config.port, "Port to bind; 0 means any free port."},
      {"work-dir", &config.work_dir, "Directory of the journal; empty means in memory only."},
      {"fault-tolerant-mode", &config.fault_tolerant_mode,
       "Write a journal to --work-dir, so that a restart loses nothing."},
      {"journal-key-file", &config.journal_key_file,
       "File with the key from which the tokens of jobs are made, to be kept apart from "
       "--work-dir; "
       "empty means the file key in --work-dir."},
      {"journal", &config.journal,
       "Journal in an etcd cluster in place of --work-dir, for dispatchers with standbys: "
       "etcd://host:port,host:port,host:port/prefix, or etcds://… over TLS "
       "(docs/high_availability.md).",
       nullptr, /*may_be_empty=*/false},
      {"leader-election", &config.leader_election,
       "Such an address, for dispatchers whose --work-dir is on a volume that all of them mount: "
       "one leads, the others wait.",
       nullptr, /*may_be_empty=*/false},
      {"leader-lease-ms", &config.leader_lease,
       "Milliseconds after the leader's last sign of life after which a standby leads; whole "
       "seconds, at least 2."},
      {"etcd-user", &config.etcd.user, "User at etcd; empty means that etcd does not ask for one."},
      {"etcd-password-file", &config.etcd.password_file, "File with the password of --etcd-user."},
      {"etcd-ca", &config.etcd.ca,
       "File of CA certificates in PEM for etcds://; one of them must have signed etcd's "
       "certificate.",
       nullptr, /*may_be_empty=*/false},
      {"etcd-certificate", &config.etcd.certificate,
       "File of the dispatcher's certificate for etcd, in PEM.", nullptr, /*may_be_empty=*/false},
      {"etcd-key", &config.etcd.key, "File of the private key of that certificate, in PEM.",
       nullptr, /*may_be_empty=*/false},
      {"client-timeout-ms", &config.client_timeout,
       "Milliseconds of silence after which a client is declared dead."},
      {"worker-timeout-ms", &config.worker_timeout,
       "Milliseconds of silence after which a worker is declared dead; more if there are more than "
       "5,000 workers."},
      {"heartbeat-interval-ms", &config.heartbeat_interval,
       "Milliseconds between two heartbeats, announced to workers and clients."},
      {"job-gc-timeout-ms", &config.job_gc_timeout,
       "Milliseconds without a reader after which a job is given up."},
      {"gc-dynamic-sharding-jobs", &config.gc_dynamic_sharding_jobs,
       "Forget unread named jobs of mode DYNAMIC too, after --job-gc-timeout-ms."},
      {"abandoned-job-ttl-ms", &config.abandoned_job_ttl,
       "Milliseconds without a reader after which a job that --job-gc-timeout-ms does not remove "
       "is forgotten, with the elements that it still owes; 0 means never."},
      {"dataset-ttl-ms", &config.dataset_ttl,
       "Milliseconds after which a dataset that no job reads is forgotten; 0 means never."},
      {"protocol", &config.protocol, kProtocolHelp},
      {"worker-addresses", &config.worker_addresses,
       "Workers that may register, separated by commas, each as host, host:port or host:%port%. A "
       "worker's place in the list is its shard (docs/tfdata-service.md, D). Empty means any "
       "worker."},
      {"metrics-port", &config.metrics_port, kMetricsHelp},
      {"metrics-token", &config.metrics_token, kTokenHelp},
      {"metrics-host", &config.metrics_host, kPagesHostHelp},
  };
  AddServerTlsSettings(config.tls, rows);
  rows.insert(
      rows.end(),
      {
          {"auth-file", &config.auth_file,
           "File that says which processes may do what (docs/security.md); empty means that "
           "every process that reaches the port may do everything."},
          {"max-jobs-per-namespace", &config.namespace_limits.jobs,
           "Maximum number of unfinished jobs of one namespace; 0 means no limit."},
          {"max-dataset-bytes-per-namespace", &config.namespace_limits.dataset_bytes,
           "Maximum bytes of the definitions of one namespace's datasets; 0 means no limit."},
          {"max-partitions-per-namespace", &config.namespace_limits.partitions,
           "Maximum number of partitions of one namespace that are placed at once; further ones "
           "wait. 0 means no limit."},
          {"max-clients-per-namespace", &config.namespace_limits.clients,
           "Maximum number of connected clients of one namespace; 0 means no limit."},
          {"max-worker-percent-per-namespace", &config.namespace_limits.worker_percent,
           "Maximum number of partitions of one namespace that are placed at once, in percent of "
           "the permits of all workers; 0 means no limit."},
          {"max-links", &config.max_links,
           "Number of workers above which each client of a shared job reads about this many of "
           "them; "
           "0 means that each client reads all workers."},
      });
  return rows;
}

std::vector<Setting> SettingsOf(WorkerConfig& config) {
  std::vector<Setting> rows = {
      {"dispatcher-address", &config.dispatcher_address, kDispatcherAddressHelp},
      {"host", &config.host, "Address to bind; the default is loopback."},
      {"port", &config.port, "Port to bind for grpc; 0 means any free port."},
      {"worker-address", &config.worker_address,
       "Address announced to clients, with the bound port in place of '%port%'; empty means "
       "host:port."},
      {"protocol", &config.protocol, kProtocolHelp},
      {"heartbeat-interval-ms", &config.heartbeat_interval,
       "Milliseconds between two heartbeats; the dispatcher's interval is used if it is shorter."},
      {"dispatcher-timeout-ms", &config.dispatcher_timeout,
       "Milliseconds without an answer of a dispatcher after which the worker gives up."},
      {"data-transfer-protocol", &config.data_transfer_protocol,
       "Protocol offered besides grpc, and used by clients that name no protocol; empty means all "
       "protocols that can run here."},
      {"data-transfer-port", &config.data_transfer_port,
       "Port to bind for tcp; 0 means any free port."},
      {"data-transfer-address", &config.data_transfer_address,
       "Address of tcp announced to clients, with the bound port in place of '%dts_port%'; empty "
       "means as --worker-address."},
      {"fallback", &config.fallback,
       "Further protocols offered, separated by commas and used next, in this order. With them the "
       "protocol of --data-transfer-protocol may be missing on this machine."},
      {"ucx-lanes", &config.ucx_lanes,
       "Lanes that ucx may run over: rdma, any or tcp; empty means rdma."},
      {"transports", &config.transports,
       "Shared libraries with further protocols, separated by commas (docs/transports.md)."},
      {"plugins", &config.plugins,
       "Shared libraries with sources, transforms and maps, separated by commas "
       "(docs/plugins.md).",
       "plugin"},
      {"plugin-allow", &config.plugin_allow,
       "Libraries and folders of libraries, separated by commas, that plug-ins may come from; "
       "empty means any."},
      {"python", &config.python,
       "Number of processes that run Python functions, of any user who registers a dataset; 0 "
       "means that such functions are refused."},
      {"python-command", &config.python_command,
       "Python interpreter of these processes; it needs NumPy."},
      {"python-path", &config.python_path,
       "Folders of modules in addition to the interpreter's own, separated by commas."},
      {"python-allow", &config.python_allow,
       "Modules, separated by commas, that Python functions may come from, by import path only; "
       "empty means any module, and functions sent by value too."},
      {"python-env", &config.python_env,
       "Environment variables, separated by commas, that Python functions may read besides PATH, "
       "HOME, PYTHON*, LANG, LC_*, LD_*, OMP_* and the like."},
      {"files-allow", &config.files_allow,
       "Folders, files, prefixes of URLs and schemes, separated by commas, that datasets may read; "
       "empty means all files of this user if --host is loopback, and otherwise none."},
      {"cache-dir", &config.cache_dir,
       "Only folder in which datasets may write, for Cache; empty means any folder if --host is "
       "loopback, and otherwise none."},
      {"worker-tags", &config.worker_tags,
       "Tags, separated by commas, by which clients choose workers."},
      {"shutdown-quiet-period-ms", &config.shutdown_quiet_period,
       "Milliseconds for which a stopped worker continues to serve."},
      {"permits", &config.permits,
       "Number of partitions computed at once; 0 means one per 4 cores."},
      {"threads", &config.threads, "Number of threads of parallel nodes; 0 means one per core."},
      {"job-threads", &config.job_threads,
       "Maximum number of threads of parallel nodes in all partitions of one job, besides the "
       "thread "
       "of each partition; 0 means that all jobs share one thread per core."},
      {"memory-budget-bytes", &config.memory_budget_bytes,
       "Maximum bytes of elements on their way to clients, and of a single element; 0 means half "
       "of the memory that the process may use."},
      {"ram-budget-bytes", &config.ram_budget_bytes,
       "Maximum bytes that pipelines hold, ready or in progress, beyond their minimum; 0 means a "
       "quarter "
       "of the memory that the process may use."},
      {"buffer-budget-bytes", &config.buffer_budget_bytes,
       "Maximum bytes of the elements that transforms keep, as Shuffle, Cache and windows do; 0 "
       "means three quarters of the memory that the process may use."},
      {"job-buffer-budget-bytes", &config.job_buffer_budget_bytes,
       "Maximum bytes of the elements that transforms of one job keep; 0 means no limit besides "
       "--buffer-budget-bytes."},
      {"cross-trainer-cache-size-bytes", &config.cross_trainer_cache_size_bytes,
       "Maximum bytes of elements in each window that trainers share; 0 means an eighth of the "
       "memory that the process may use, at most 10 GiB."},
      {"max-loan-bytes", &config.max_loan_bytes,
       "Maximum bytes of elements in the worker's own segments that one reader may have at a time, "
       "before it gets copies; 0 means 256 MiB."},
      {"shared-pool-bytes", &config.shared_pool_bytes,
       "Maximum bytes of the worker's own segments for one job, before its readers get copies; 0 "
       "means the window and the loans of eight readers."},
      {"metrics-port", &config.metrics_port, kMetricsHelp},
      {"metrics-token", &config.metrics_token, kTokenHelp},
      {"metrics-host", &config.metrics_host, kPagesHostHelp},
  };
  AddServerTlsSettings(config.tls, rows);
  rows.push_back(TokenSettingOf(config.tls));
  return rows;
}

std::vector<Setting> SettingsOf(NamespaceLimits& limits) {
  return {{"max-jobs", &limits.jobs, ""},
          {"max-dataset-bytes", &limits.dataset_bytes, ""},
          {"max-partitions", &limits.partitions, ""},
          {"max-clients", &limits.clients, ""},
          {"max-worker-percent", &limits.worker_percent, ""}};
}

bool AsksWho(const DispatcherConfig& config) {
  return !config.auth_file.empty() || config.tls.mutual;
}

bool AsksWho(const WorkerConfig& config) {
  return !config.tls.token_file.empty() || config.tls.mutual;
}

std::string PagesHost(const DispatcherConfig& config) {
  return HostOfPages(config);
}

std::string PagesHost(const WorkerConfig& config) {
  return HostOfPages(config);
}

}  // namespace penstock
