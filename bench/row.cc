// SPDX-License-Identifier: Apache-2.0
#include "bench/row.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/measure.h"

namespace penstock::bench {
namespace {

// Returns elements per second, or per CPU second of the processes in `basis`.
double RateOf(Basis basis, const Window& window) {
  if (basis == Basis::kElementsPerSecond) return window.elements_per_s();
  if (basis == Basis::kElementsPerCpuSecond) return window.done.elements / window.cpu();
  const auto worker = window.cpu_seconds.find("worker");
  const double cpu = worker == window.cpu_seconds.end() ? window.cpu() : worker->second;
  return window.done.elements / cpu;
}

std::vector<const Pair*> Kept(const Row& row) {
  std::vector<const Pair*> clean, all;
  for (const Pair& pair : row.pairs) {
    all.push_back(&pair);
    if (pair.clean()) clean.push_back(&pair);
  }
  return clean.empty() ? all : clean;
}

}  // namespace

bool Pair::clean() const {
  return side.foreign_cores <= kForeignCores && limit.foreign_cores <= kForeignCores;
}

double RatioOf(const Row& row, const Pair& pair) {
  if (row.limit.empty()) return -1;
  return RateOf(row.basis, pair.side) / RateOf(row.basis, pair.limit);
}

double UtilizationOf(const Row& row, const Window& window) {
  if (row.step_s <= 0) return -1;
  const int64_t trainers = row.cached ? 1 : row.setup.consumers;
  return window.elements_per_s() * row.step_s / static_cast<double>(trainers);
}

double ShareOf(const Window& window) {
  const auto& shares = window.done.shares;
  if (shares.size() < 2) return -1;
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  return static_cast<double>(*most) / static_cast<double>(std::max<int64_t>(1, *least));
}

double CopiedOf(const Window& window) {
  const Done& done = window.done;
  if (done.shared == 0) return -1;
  return static_cast<double>(done.copied) / static_cast<double>(done.shared);
}

double CpuPerGb(const Row& row, const Window& window) {
  return row.setup.hosts.two() || window.cpu_seconds.empty() ? -1 : window.cpu_per_gb();
}

double TrainerCpuPerGb(const Row& row, const Window& window) {
  const auto consumer = window.cpu_seconds.find("consumer");
  if (row.setup.protocol == "local" || consumer == window.cpu_seconds.end()) return -1;
  return consumer->second / (static_cast<double>(window.done.bytes) / 1e9);
}

Summary Summarize(const Row& row) {
  Summary summary;
  summary.pairs = row.pairs.size();
  if (row.pairs.empty()) return summary;
  const std::vector<const Pair*> kept = Kept(row);
  const auto median = [&](auto of) {
    std::vector<double> values;
    for (const Pair* pair : kept) values.push_back(of(*pair));
    return Median(values);
  };
  for (const Pair& pair : row.pairs) summary.clean += pair.clean() ? 1 : 0;
  summary.ratio = median([&](const Pair& pair) { return RatioOf(row, pair); });
  summary.worst_ratio = summary.ratio;
  for (const Pair* pair : kept) {
    summary.worst_ratio = std::min(summary.worst_ratio, RatioOf(row, *pair));
  }
  summary.elements_per_s = median([](const Pair& pair) { return pair.side.elements_per_s(); });
  summary.gb_per_s = median([](const Pair& pair) { return pair.side.gb_per_s(); });
  if (row.line_gb_per_s > 0) summary.line_share = summary.gb_per_s / row.line_gb_per_s;
  if (!row.limit.empty()) {
    summary.limit_elements_per_s =
        median([](const Pair& pair) { return pair.limit.elements_per_s(); });
    summary.limit_gb_per_s = median([](const Pair& pair) { return pair.limit.gb_per_s(); });
  }
  summary.utilization = median([&](const Pair& pair) { return UtilizationOf(row, pair.side); });
  summary.p50_us = median([](const Pair& pair) { return pair.side.done.p50_us; });
  summary.p99_us = median([](const Pair& pair) { return pair.side.done.p99_us; });
  if (kept.front()->side.done.in_step.has_value()) {
    const auto of = [&](double InStep::*figure) {
      return median([figure](const Pair& pair) { return *pair.side.done.in_step.*figure; });
    };
    summary.in_step = InStep{.skew_p50_us = of(&InStep::skew_p50_us),
                             .skew_p99_us = of(&InStep::skew_p99_us),
                             .spread_p50 = of(&InStep::spread_p50),
                             .spread_p99 = of(&InStep::spread_p99)};
  }
  summary.cpu_s_per_gb = median([&](const Pair& pair) { return CpuPerGb(row, pair.side); });
  summary.trainer_cpu_s_per_gb =
      median([&](const Pair& pair) { return TrainerCpuPerGb(row, pair.side); });
  if (!row.setup.hosts.two() && !kept.front()->limit.cpu_seconds.empty()) {
    summary.limit_cpu_s_per_gb =
        median([&](const Pair& pair) { return CpuPerGb(row, pair.limit); });
    summary.cpu_ratio =
        median([](const Pair& pair) { return pair.side.cpu_per_gb() / pair.limit.cpu_per_gb(); });
  }
  summary.copied = median([](const Pair& pair) { return CopiedOf(pair.side); });
  summary.share = median([](const Pair& pair) { return ShareOf(pair.side); });
  summary.foreign_cores = median(
      [](const Pair& pair) { return std::max(pair.side.foreign_cores, pair.limit.foreign_cores); });
  return summary;
}

std::string NoteOn(const Row& row) {
  if (!row.status.ok()) return std::string(row.status.message());
  const Summary summary = Summarize(row);
  if (summary.clean > 0 || summary.pairs == 0) return "";
  return absl::StrFormat("no clean pair: other processes used %.1f cores", summary.foreign_cores);
}

}  // namespace penstock::bench
