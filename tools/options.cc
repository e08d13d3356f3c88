// SPDX-License-Identifier: Apache-2.0
#include "tools/options.h"

#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace penstock::tools {
namespace {

constexpr char kMetricsHelp[] = "of the page /metrics for Prometheus; 0: any free one, -1: none";

void AddOne(CLI::App& command, const std::string& flag, const Option& option,
            const std::string& environment) {
  const std::string help = option.help;
  if (auto* const* on = std::get_if<bool*>(&option.target)) {
    command.add_flag(flag, **on, help)->envname(environment);
  } else if (auto* const* time = std::get_if<absl::Duration*>(&option.target)) {
    absl::Duration* target = *time;
    command
        .add_option_function<int64_t>(
            flag, [target](int64_t ms) { *target = absl::Milliseconds(ms); }, help)
        ->envname(environment)
        ->check(CLI::NonNegativeNumber)
        ->default_str(absl::StrCat(absl::ToInt64Milliseconds(*target)));
  } else if (auto* const* words = std::get_if<std::vector<std::string>*>(&option.target)) {
    command.add_option(flag, **words, help)->envname(environment)->delimiter(',');
  } else {
    std::visit(
        [&](auto* target) {
          using T = std::remove_pointer_t<decltype(target)>;
          if constexpr (std::is_same_v<T, std::string> || std::is_integral_v<T>) {
            command.add_option(flag, *target, help)->envname(environment)->capture_default_str();
          }
        },
        option.target);
  }
}

}  // namespace

std::vector<Option> OptionsOf(DispatcherConfig& config) {
  return {
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
      {"metrics-port", &config.metrics_port, kMetricsHelp},
  };
}

std::vector<Option> OptionsOf(WorkerConfig& config) {
  return {
      {"dispatcher-address", &config.dispatcher_address, "[grpc://]host:port of the dispatcher"},
      {"host", &config.host, "address to bind; loopback unless said otherwise"},
      {"port", &config.port, "port to bind for grpc; 0: any free one"},
      {"worker-address", &config.worker_address,
       "address told to clients, '%port%' for the port bound; empty: host:port"},
      {"heartbeat-interval-ms", &config.heartbeat_interval,
       "or the dispatcher's, if that is shorter"},
      {"dispatcher-timeout-ms", &config.dispatcher_timeout,
       "give up when no dispatcher answers for so long"},
      {"data-transfer-protocol", &config.data_transfer_protocol,
       "offered besides grpc; empty: all that run here"},
      {"worker-tags", &config.worker_tags, "words that clients choose workers by, with commas"},
      {"permits", &config.permits, "partitions computed at once; 0: one per 4 cores"},
      {"threads", &config.threads, "of parallel nodes; 0: one per core"},
      {"memory-budget-bytes", &config.memory_budget_bytes,
       "of elements on their way to clients; 0: half of the machine's memory"},
      {"metrics-port", &config.metrics_port, kMetricsHelp},
  };
}

std::vector<Option> OptionsOf(DispatcherCall& call) {
  return {
      {"dispatcher-address", &call.address, "[grpc://]host:port of the dispatcher"},
      {"timeout-ms", &call.timeout, "how long to try to reach it"},
  };
}

std::string EnvironmentName(const std::string& command, const std::string& name) {
  // One name for all who look for the dispatcher.
  const std::string words = name == "dispatcher-address" ? name : absl::StrCat(command, "_", name);
  return absl::StrCat("PENSTOCK_", absl::AsciiStrToUpper(absl::StrReplaceAll(words, {{"-", "_"}})));
}

void AddOptions(CLI::App& command, const std::vector<Option>& options) {
  std::string name = command.get_name();
  for (const CLI::App* above = command.get_parent(); above->get_parent() != nullptr;
       above = above->get_parent()) {
    name = absl::StrCat(above->get_name(), "_", name);  // "jobs_list"
  }
  for (const Option& option : options) {
    AddOne(command, absl::StrCat("--", option.name), option, EnvironmentName(name, option.name));
  }
}

}  // namespace penstock::tools
