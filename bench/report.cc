// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/measure.h"

namespace penstock::bench {
namespace {

// Returns three significant digits; "-" if the value was not measured.
std::string Digits(double value) {
  if (!std::isfinite(value) || value < 0) return "-";
  if (value == 0) return "0";
  if (value >= 1e6) return absl::StrCat(Digits(value / 1e6), "M");
  if (value >= 1e5) return absl::StrFormat("%.0fk", value / 1e3);
  const int before = std::max(0, static_cast<int>(std::floor(std::log10(value))) + 1);
  return absl::StrFormat("%.*f", std::max(0, 3 - before), value);
}

std::string Thousands(int64_t value) {
  std::string text = absl::StrCat(value);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

}  // namespace

std::string SubjectOf(const Row& row) {
  std::vector<std::string> words;
  if (row.system != "penstock") words.push_back(row.system);
  const std::string coordinated = row.setup.coordinated ? "coordinated" : "";
  for (const std::string& word : {row.setup.protocol, coordinated, row.setup.last, row.variant}) {
    if (!word.empty()) words.push_back(word);
  }
  return absl::StrJoin(words, " ");
}

std::string SizeText(int64_t bytes) {
  if (bytes >= (1 << 20) && bytes % (1 << 20) == 0) return absl::StrCat(bytes >> 20, " MiB");
  if (bytes >= 1024 && bytes % 1024 == 0 && bytes < (1 << 20))
    return absl::StrCat(bytes >> 10, " KiB");
  return absl::StrCat(Thousands(bytes), " B");
}

namespace {

// Returns the sending host, and the reading host if that is not this one.
std::string LinkOf(const Row& row) {
  const Hosts& hosts = row.setup.hosts;
  return row.setup.workload == kPairWorkload ? absl::StrCat(hosts.there, " to ", hosts.here)
                                             : hosts.there;
}

constexpr const char* kReportHead[] = {
    "case",      "sender",      "system",     "limit",         "element",
    "from:to",   "elements/s",  "GB/s",       "of line",       "limit GB/s",
    "ratio",     "worst",       "AU",         "pairs",         "p50 us",
    "p99 us",    "skew p99 us", "spread p99", "CPU s/GB",      "limit CPU",
    "CPU ratio", "trainer CPU", "copied",     "max/min share", ""};

// Returns cells in the order of kReportHead. Columns that are empty in all rows are left out.
std::vector<std::string> CellsOf(const Row& row) {
  const Summary summary = Summarize(row);
  const bool sized = row.setup.element_bytes > 0;  // else left out for all sizes
  return {row.setup.workload,
          LinkOf(row),
          SubjectOf(row),
          row.limit,
          sized ? SizeText(row.setup.element_bytes) : "",
          sized ? absl::StrCat(row.setup.workers, ":", row.setup.consumers) : "",
          Digits(summary.elements_per_s),
          Digits(summary.gb_per_s),
          Digits(summary.line_share),
          Digits(summary.limit_gb_per_s),
          Digits(summary.ratio),
          Digits(summary.worst_ratio),
          Digits(summary.utilization),
          absl::StrCat(summary.clean, "/", summary.pairs),
          Digits(summary.p50_us),
          Digits(summary.p99_us),
          Digits(summary.in_step.has_value() ? summary.in_step->skew_p99_us : -1),
          Digits(summary.in_step.has_value() ? summary.in_step->spread_p99 : -1),
          Digits(summary.cpu_s_per_gb),
          Digits(summary.limit_cpu_s_per_gb),
          Digits(summary.cpu_ratio),
          Digits(summary.trainer_cpu_s_per_gb),
          Digits(summary.copied),
          Digits(summary.share),
          NoteOn(row)};
}

}  // namespace

Report ReportOn(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> all;
  for (const Row& row : rows) all.push_back(CellsOf(row));
  Report report;
  report.lines.resize(all.size());
  for (size_t column = 0; column < std::size(kReportHead); ++column) {
    const bool told = std::any_of(all.begin(), all.end(), [&](const auto& cells) {
      return cells[column] != "-" && !cells[column].empty();
    });
    if (!told) continue;
    report.head.emplace_back(kReportHead[column]);
    for (size_t i = 0; i < all.size(); ++i) report.lines[i].push_back(all[i][column]);
  }
  return report;
}

Matrix MatrixOf(const std::vector<Row>& rows) {
  std::vector<std::string> hosts;
  std::map<std::pair<std::string, std::string>, double> fastest;  // by reader and sender
  for (const Row& row : rows) {
    const std::string &reader = row.setup.hosts.here, &sender = row.setup.hosts.there;
    if (row.setup.workload != kPairWorkload) continue;
    double& rate = fastest.try_emplace({reader, sender}, 0).first->second;
    rate = std::max(rate, Summarize(row).gb_per_s);
    if (std::find(hosts.begin(), hosts.end(), reader) == hosts.end()) hosts.push_back(reader);
  }
  Matrix matrix;
  if (fastest.empty()) return matrix;
  matrix.table.head = hosts;
  matrix.table.head.insert(matrix.table.head.begin(), "reader");
  matrix.table.head.emplace_back();  // the last column is text
  for (const std::string& reader : hosts) {
    std::vector<std::string>& line = matrix.table.lines.emplace_back();
    line.push_back(reader);
    for (const std::string& sender : hosts) {
      const auto found = fastest.find({reader, sender});
      line.push_back(found == fastest.end() ? "-" : Digits(found->second));
    }
    line.emplace_back();
  }
  std::vector<double> rates;
  for (const auto& [pair, rate] : fastest) rates.push_back(rate);
  const auto slowest = std::min_element(fastest.begin(), fastest.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
  matrix.slowest = absl::StrCat("slowest: ", slowest->first.second, " to ", slowest->first.first,
                                ", ", Digits(slowest->second), " GB/s; the median is ",
                                Digits(Median(rates)), " GB/s");
  return matrix;
}

std::string ReportLine(const Row& row) {
  std::string name = row.setup.workload;
  if (row.setup.hosts.two()) absl::StrAppend(&name, " from ", LinkOf(row));
  absl::StrAppend(&name, " ", SubjectOf(row));
  if (row.setup.element_bytes > 0) {
    absl::StrAppend(&name, " ", SizeText(row.setup.element_bytes), " ", row.setup.workers, ":",
                    row.setup.consumers);
  }
  if (!row.status.ok()) return absl::StrCat(name, ": ", NoteOn(row));
  const Summary summary = Summarize(row);
  const std::string rate = absl::StrCat(name, ": ", Digits(summary.gb_per_s), " GB/s");
  if (row.limit.empty()) return rate;
  return absl::StrCat(rate, ", ", Digits(summary.ratio), " of ", row.limit);
}

}  // namespace penstock::bench
