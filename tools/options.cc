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

constexpr char kProtocolHelp[] = "towards the other servers and clients: grpc";
constexpr char kAddressHelp[] = "[grpc://]host:port of the dispatcher, or grpcs://host:port";
constexpr char kTokenHelp[] = "shown by who asks for a page: a Bearer token, or Basic's password";
constexpr char kMetricsHelp[] = "of the page /metrics for Prometheus; 0: any free one, -1: none";

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

// "jobs_list"
std::string SectionOf(const CLI::App& command) {
  std::string section = command.get_name();
  for (const CLI::App* above = command.get_parent(); above->get_parent() != nullptr;
       above = above->get_parent()) {
    section = absl::StrCat(above->get_name(), "_", section);
  }
  return section;
}

// What no flag has given, from elsewhere.
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

// How this process reads remote files, which has no flags.
void SettleFiles(const std::string& path) {
  const absl::StatusOr<FilesConfig> config = ReadFilesConfig(path, ProcessEnvironment());
  const absl::Status settled = config.ok() ? ConfigureFiles(*config) : config.status();
  if (!settled.ok()) throw CLI::ValidationError(std::string(settled.message()));
}

}  // namespace

std::vector<Setting> SettingsOf(DispatcherConfig& config) {
  std::vector<Setting> rows = {
      {"host", &config.host, "address to bind; loopback unless said otherwise"},
      {"port", &config.port, "port to bind; 0: any free one"},
      {"work-dir", &config.work_dir, "directory of the journal; empty: kept in memory only"},
      {"fault-tolerant-mode", &config.fault_tolerant_mode,
       "keep a journal in --work-dir, so that a restart loses nothing"},
      {"client-timeout-ms", &config.client_timeout, "a client silent for so long is dead"},
      {"worker-timeout-ms", &config.worker_timeout, "a worker silent for so long is dead"},
      {"heartbeat-interval-ms", &config.heartbeat_interval, "told to workers and clients"},
      {"job-gc-timeout-ms", &config.job_gc_timeout,
       "a job without readers for so long is given up"},
      {"gc-dynamic-sharding-jobs", &config.gc_dynamic_sharding_jobs,
       "also forget named jobs of mode DYNAMIC that nobody reads any more"},
      {"abandoned-job-ttl-ms", &config.abandoned_job_ttl,
       "a job that --job-gc-timeout-ms leaves is forgotten when nobody has read it for so long, "
       "with "
       "what it owes; 0: never"},
      {"dataset-ttl-ms", &config.dataset_ttl,
       "a dataset that no job has read for so long is forgotten; 0: never"},
      {"protocol", &config.protocol, kProtocolHelp},
      {"worker-addresses", &config.worker_addresses,
       "the workers that there may be, host, host:port or host:%port%, with commas; the place is "
       "the shard (docs/tfdata-service.md, D)"},
      {"metrics-port", &config.metrics_port, kMetricsHelp},
      {"metrics-token", &config.metrics_token, kTokenHelp},
  };
  AddServerTlsSettings(config.tls, rows);
  return rows;
}

std::vector<Setting> SettingsOf(WorkerConfig& config) {
  std::vector<Setting> rows = {
      {"dispatcher-address", &config.dispatcher_address, kAddressHelp},
      {"host", &config.host, "address to bind; loopback unless said otherwise"},
      {"port", &config.port, "port to bind for grpc; 0: any free one"},
      {"worker-address", &config.worker_address,
       "address told to clients, '%port%' for the port bound; empty: host:port"},
      {"protocol", &config.protocol, kProtocolHelp},
      {"heartbeat-interval-ms", &config.heartbeat_interval,
       "or the dispatcher's, if that is shorter"},
      {"dispatcher-timeout-ms", &config.dispatcher_timeout,
       "give up when no dispatcher answers for so long"},
      {"data-transfer-protocol", &config.data_transfer_protocol,
       "offered besides grpc, and what clients take that name none; empty: all that run here"},
      {"data-transfer-port", &config.data_transfer_port, "port to bind for tcp; 0: any free one"},
      {"data-transfer-address", &config.data_transfer_address,
       "address of tcp told to clients, '%dts_port%' for the port bound; empty: as "
       "--worker-address"},
      {"fallback", &config.fallback,
       "offered too and taken next, in this order, with commas; also where that one cannot run"},
      {"ucx-lanes", &config.ucx_lanes, "what ucx may run over: rdma, any or tcp; empty: rdma"},
      {"transports", &config.transports,
       "shared libraries with further protocols, with commas (docs/transports.md)"},
      {"plugin", &config.plugins,
       "shared libraries with sources, transforms and maps, with commas (docs/plugins.md)"},
      {"plugin-allow", &config.allowed_plugins,
       "libraries and folders, with commas: no other plug-in is loaded; empty: all named ones"},
      {"python", &config.python,
       "processes that run functions written in Python, of whoever registers a dataset; 0: they "
       "are refused"},
      {"python-command", &config.python_command, "the interpreter of these; it needs NumPy"},
      {"python-path", &config.python_path, "folders where these look for modules too, with commas"},
      {"python-allow", &config.python_allow,
       "modules, with commas, that alone such functions may come from; empty: any, and by value"},
      {"worker-tags", &config.worker_tags, "words that clients choose workers by, with commas"},
      {"shutdown-quiet-period-ms", &config.shutdown_quiet_period,
       "how long a worker that is stopped goes on serving"},
      {"permits", &config.permits, "partitions computed at once; 0: one per 4 cores"},
      {"threads", &config.threads, "of parallel nodes; 0: one per core"},
      {"memory-budget-bytes", &config.memory_budget_bytes,
       "of elements on their way to clients, and of the largest one; 0: half of the machine's "
       "memory"},
      {"ram-budget-bytes", &config.ram_budget_bytes,
       "of what pipelines keep ready beyond their least; 0: a quarter of the machine's memory"},
      {"cross-trainer-cache-size-bytes", &config.cross_trainer_cache_size_bytes,
       "of each window that trainers share; 0: an eighth of the machine's memory, 10 GiB at most"},
      {"max-loan-bytes", &config.max_loan_bytes,
       "of elements in the worker's own segments that one reader may have; 0: 256 MiB"},
      {"shared-pool-bytes", &config.shared_pool_bytes,
       "of such segments of a job; 0: the window and the loans of eight readers"},
      {"metrics-port", &config.metrics_port, kMetricsHelp},
      {"metrics-token", &config.metrics_token, kTokenHelp},
  };
  AddServerTlsSettings(config.tls, rows);
  return rows;
}

std::vector<Setting> SettingsOf(DispatcherCall& call) {
  std::vector<Setting> rows = TlsSettingsOf(call.tls);
  rows.insert(rows.begin(), {{"dispatcher-address", &call.address, kAddressHelp},
                             {"timeout-ms", &call.timeout, "how long to try to reach it"}});
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
  command.add_option(
      "--config", *path,
      absl::StrCat("file of settings, this command's under [", section, "] (", kFileVariable, ")"));
  for (const Setting& setting : settings) AddFlag(command, section, setting);
  command.parse_complete_callback([&command, path, settings = std::move(settings)] {
    SettleRest(command, settings, *path, ProcessEnvironment());
    SettleFiles(*path);
  });
}

}  // namespace penstock::tools
