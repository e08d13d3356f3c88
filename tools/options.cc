// SPDX-License-Identifier: Apache-2.0
#include "tools/options.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/files_settings.h"
#include "control/settings/tls_settings.h"

namespace penstock::tools {
namespace {

constexpr char kProtocolHelp[] = "Protocol for the other servers and for clients: grpc.";
constexpr char kAddressHelp[] =
    "Address of the dispatcher: [grpc://]host:port or grpcs://host:port.";
constexpr char kTokenHelp[] =
    "Token that a client of a status page must send, as a Bearer token or as the password of "
    "Basic; empty means none.";
constexpr char kMetricsHelp[] =
    "Port of the page /metrics for Prometheus; 0 means any free port, -1 means no page.";

void AddFlag(CLI::App& command, const std::string& section, const Setting& setting) {
  const std::string flag = absl::StrCat("--", setting.name);
  const std::string help = absl::StrCat(setting.help, " (", VariableOf(section, setting.name), ")");
  if (auto* const* on = std::get_if<bool*>(&setting.target)) {
    command.add_flag(flag, **on, help);
  } else if (auto* const* time = std::get_if<absl::Duration*>(&setting.target)) {
    absl::Duration* target = *time;
    command
        .add_option_function<int64_t>(
            flag, [target](int64_t ms) { *target = absl::Milliseconds(ms); }, help)
        ->check(CLI::NonNegativeNumber)
        ->default_str(absl::StrCat(absl::ToInt64Milliseconds(*target)));
  } else if (auto* const* words = std::get_if<std::vector<std::string>*>(&setting.target)) {
    command.add_option(flag, **words, help)->delimiter(',');
  } else {
    std::visit(
        [&](auto* target) {
          using T = std::remove_pointer_t<decltype(target)>;
          if constexpr (std::is_same_v<T, std::string> || std::is_integral_v<T>) {
            command.add_option(flag, *target, help)->capture_default_str();
          }
        },
        setting.target);
  }
}

// Returns the command's section in the settings file, such as "jobs_list".
std::string SectionOf(const CLI::App& command) {
  std::string section = command.get_name();
  for (const CLI::App* above = command.get_parent(); above->get_parent() != nullptr;
       above = above->get_parent()) {
    section = absl::StrCat(above->get_name(), "_", section);
  }
  return section;
}

// Sets the settings without a flag from the environment and the settings file.
void SettleRest(const CLI::App& command, const std::vector<Setting>& settings,
                const std::string& path, const Environment& environment) {
  std::set<std::string> given;
  for (const Setting& setting : settings) {
    if (command.count(absl::StrCat("--", setting.name)) > 0) given.insert(setting.name);
  }
  const absl::Status settled =
      Settle(SectionOf(command), settings, given, path, environment).status();
  if (!settled.ok()) throw CLI::ValidationError(std::string(settled.message()));
}

// Configures how this process reads remote files. These settings have no flags.
void SettleFiles(const std::string& path) {
  const absl::StatusOr<FilesConfig> config = ReadFilesConfig(path, ProcessEnvironment());
  const absl::Status settled = config.ok() ? ConfigureFiles(*config) : config.status();
  if (!settled.ok()) throw CLI::ValidationError(std::string(settled.message()));
}

}  // namespace

std::vector<Setting> SettingsOf(DispatcherConfig& config) {
  std::vector<Setting> rows = {
      {"host", &config.host, "Address to bind; the default is loopback."},
      {"port", &config.port, "Port to bind; 0 means any free port."},
      {"work-dir", &config.work_dir, "Directory of the journal; empty means in memory only."},
      {"fault-tolerant-mode", &config.fault_tolerant_mode,
       "Write a journal to --work-dir, so that a restart loses nothing."},
      {"client-timeout-ms", &config.client_timeout,
       "Milliseconds of silence after which a client is declared dead."},
      {"worker-timeout-ms", &config.worker_timeout,
       "Milliseconds of silence after which a worker is declared dead."},
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
  };
  AddServerTlsSettings(config.tls, rows);
  return rows;
}

std::vector<Setting> SettingsOf(WorkerConfig& config) {
  std::vector<Setting> rows = {
      {"dispatcher-address", &config.dispatcher_address, kAddressHelp},
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
      {"plugin", &config.plugins,
       "Shared libraries with sources, transforms and maps, separated by commas "
       "(docs/plugins.md)."},
      {"plugin-allow", &config.allowed_plugins,
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
      {"worker-tags", &config.worker_tags,
       "Tags, separated by commas, by which clients choose workers."},
      {"shutdown-quiet-period-ms", &config.shutdown_quiet_period,
       "Milliseconds for which a stopped worker continues to serve."},
      {"permits", &config.permits,
       "Number of partitions computed at once; 0 means one per 4 cores."},
      {"threads", &config.threads, "Number of threads of parallel nodes; 0 means one per core."},
      {"memory-budget-bytes", &config.memory_budget_bytes,
       "Maximum bytes of elements on their way to clients, and of a single element; 0 means half "
       "of the memory that the process may use."},
      {"ram-budget-bytes", &config.ram_budget_bytes,
       "Maximum bytes that pipelines hold ready or in work beyond their minimum; 0 means a quarter "
       "of the memory that the process may use."},
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
  };
  AddServerTlsSettings(config.tls, rows);
  return rows;
}

std::vector<Setting> SettingsOf(DispatcherCall& call) {
  std::vector<Setting> rows = TlsSettingsOf(call.tls);
  rows.insert(rows.begin(), {{"dispatcher-address", &call.address, kAddressHelp},
                             {"timeout-ms", &call.timeout,
                              "Milliseconds for which to try to reach the dispatcher."}});
  return rows;
}

void AddOptions(CLI::App& command, std::vector<Setting> settings) {
  const std::string section = SectionOf(command);
  for (const Setting& setting : settings) AddFlag(command, section, setting);
  command.parse_complete_callback([&command, settings = std::move(settings)] {
    SettleRest(command, settings, "", [](const std::string& variable) {
      return variable == kFileVariable ? std::nullopt : ProcessEnvironment()(variable);
    });
  });
}

void AddServerOptions(CLI::App& command, std::vector<Setting> settings) {
  const std::string section = SectionOf(command);
  auto path = std::make_shared<std::string>();
  command.add_option("--config", *path,
                     absl::StrCat("Settings file; this command reads its section [", section,
                                  "]. (", kFileVariable, ")"));
  for (const Setting& setting : settings) AddFlag(command, section, setting);
  command.parse_complete_callback([&command, path, settings = std::move(settings)] {
    SettleRest(command, settings, *path, ProcessEnvironment());
    SettleFiles(*path);
  });
}

}  // namespace penstock::tools
