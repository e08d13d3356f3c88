// SPDX-License-Identifier: Apache-2.0
#include "bench/record.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/wire.h"

namespace penstock::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;  // of the record format

// Returns null if the value was not measured.
Json Number(double value) {
  return std::isfinite(value) && value >= 0 ? Json(value) : Json(nullptr);
}

Json CaseOf(const Row& row) {
  Json record = {{"v", kVersion},
                 {"workload", row.setup.workload},
                 {"system", row.system},
                 {"version", row.version},
                 {"protocol", row.setup.protocol},
                 {"compression", "none"},
                 {"variant", row.variant},
                 {"element_bytes", row.setup.element_bytes},
                 {"workers", row.setup.workers},
                 {"consumers", row.setup.consumers},
                 {"coordinated", row.setup.coordinated},
                 {"last", row.setup.last},
                 {"limit", row.limit}};
  if (row.setup.hosts.two()) record["hosts"] = {row.setup.hosts.here, row.setup.hosts.there};
  if (!row.lanes.empty()) record["lanes"] = row.lanes;
  if (!row.settings.empty()) record["settings"] = Json::parse(row.settings, nullptr, false);
  return record;
}

const char* TextOf(Basis basis) {
  switch (basis) {
    case Basis::kElementsPerSecond:
      return "elements per second";
    case Basis::kElementsPerWorkerCpuSecond:
      return "elements per worker CPU second";
    case Basis::kElementsPerCpuSecond:
      return "elements per CPU second";
  }
  return "";
}

Json PerGb(const std::map<std::string, double>& by_role, double gb) {
  Json object = Json::object();
  for (const auto& [role, value] : by_role) object[role] = value / gb;
  return object;
}

Json WindowRecord(const Row& row, const Pair& pair, size_t run) {
  const Window& window = pair.side;
  const double gb = static_cast<double>(window.done.bytes) / 1e9;
  Json record = CaseOf(row);
  record["run"] = run;
  record["seconds"] = window.done.seconds;
  record["elements"] = std::llround(window.done.elements);
  record["elements_per_s"] = window.elements_per_s();
  record["gb_per_s"] = window.gb_per_s();
  if (row.step_s > 0) record["utilization"] = Number(UtilizationOf(row, window));
  record["p50_us"] = window.done.p50_us;
  record["p99_us"] = window.done.p99_us;
  record["max_us"] = window.done.max_us;
  if (window.done.in_step.has_value()) record.update(Json(ToJson(*window.done.in_step)));
  record["cpu_s_per_gb"] = Number(CpuPerGb(row, window));
  record["cpu_s_per_gb_by_role"] = PerGb(window.cpu_seconds, gb);
  record["trainer_cpu_s_per_gb"] = Number(TrainerCpuPerGb(row, window));
  record["cpu_us_per_element"] = Number(window.cpu() * 1e6 / window.done.elements);
  record["rss_mb"] = window.rss() / 1e6;
  record["rss_mb_by_role"] = PerGb(window.resident_bytes, 1e6);
  record["foreign_cores"] = window.foreign_cores;
  record["limit_elements_per_s"] = Number(pair.limit.elements_per_s());
  record["limit_gb_per_s"] = Number(pair.limit.gb_per_s());
  record["limit_cpu_s_per_gb"] =
      pair.limit.cpu_seconds.empty() ? Json(nullptr) : Number(CpuPerGb(row, pair.limit));
  record["limit_foreign_cores"] = pair.limit.foreign_cores;
  if (CopiedOf(window) >= 0) record["copied"] = CopiedOf(window);
  if (!window.done.shares.empty()) record["shares"] = window.done.shares;
  record["ratio"] = Number(RatioOf(row, pair));
  record["clean"] = pair.clean();
  return record;
}

Json SummaryRecord(const Row& row) {
  const Summary summary = Summarize(row);
  Json record = CaseOf(row);
  record["summary"] = true;
  record["pairs"] = summary.pairs;
  record["clean_pairs"] = summary.clean;
  record["ratio"] = Number(summary.ratio);
  record["worst_ratio"] = Number(summary.worst_ratio);
  record["ratio_of"] = TextOf(row.basis);
  record["elements_per_s"] = Number(summary.elements_per_s);
  record["gb_per_s"] = Number(summary.gb_per_s);
  if (row.step_s > 0) record["utilization"] = Number(summary.utilization);
  record["p50_us"] = Number(summary.p50_us);
  record["p99_us"] = Number(summary.p99_us);
  if (summary.in_step.has_value()) record.update(Json(ToJson(*summary.in_step)));
  record["cpu_s_per_gb"] = Number(summary.cpu_s_per_gb);
  record["trainer_cpu_s_per_gb"] = Number(summary.trainer_cpu_s_per_gb);
  record["limit_elements_per_s"] = Number(summary.limit_elements_per_s);
  record["limit_gb_per_s"] = Number(summary.limit_gb_per_s);
  record["limit_cpu_s_per_gb"] = Number(summary.limit_cpu_s_per_gb);
  if (row.line_gb_per_s > 0) {
    record["line_gb_per_s"] = row.line_gb_per_s;
    record["line_share"] = Number(summary.line_share);
  }
  record["cpu_ratio"] = Number(summary.cpu_ratio);
  record["foreign_cores"] = summary.foreign_cores;
  if (summary.copied >= 0) record["copied"] = summary.copied;
  if (summary.share >= 0) record["max_min_share"] = summary.share;
  if (const std::string note = NoteOn(row); !note.empty()) record["note"] = note;
  if (const absl::StatusOr<const Workload*> workload = FindWorkload(row.setup.workload);
      workload.ok()) {
    record["question"] = std::string((*workload)->question());
  }
  return record;
}

// Bytes that are not UTF-8, such as in a file name in an error, are replaced.
std::string JsonLine(const Json& record) {
  return record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string MachineRecord(const Machine& machine, const std::string& host) {
  Json record = {{"v", kVersion},
                 {"workload", "machine"},
                 {"system", "penstock"},
                 {"version", Version()},
                 {"cpu", machine.processor},
                 {"cores", machine.cores},
                 {"numa_nodes", machine.numa_nodes},
                 {"mem_gib", machine.memory_gib},
                 {"kernel", machine.kernel},
                 {"tcp_congestion_control", machine.congestion_control},
                 {"load1", machine.load1},
                 {"when", machine.when},
                 {"description", Describe(machine)}};
  if (!host.empty()) record["host"] = host;
  if (!machine.adapters.empty()) record["adapters"] = Json(ToJson(machine.adapters));
  return JsonLine(record);
}

std::string RecordsOf(const Row& row) {
  std::string lines;
  for (size_t run = 0; run < row.pairs.size(); ++run) {
    lines += JsonLine(WindowRecord(row, row.pairs[run], run));
  }
  return lines + JsonLine(SummaryRecord(row));
}

}  // namespace penstock::bench
