// SPDX-License-Identifier: Apache-2.0
#include "bench/html.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/machine.h"
#include "bench/plot.h"
#include "bench/report.h"

namespace penstock::bench {
namespace {

constexpr char kPageHead[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>penstock bench</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 112em; padding: 0 1em; color: #222; }
h1 { font-size: 1.5em; margin-bottom: .2em; } h2 { font-size: 1.15em; margin: 1.6em 0 .3em; }
.plots { display: flex; flex-wrap: wrap; gap: 1em; }
svg { max-width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: #333; }
svg .title { font-size: 13px; font-weight: 600; }
.grid { stroke: #e4e4e4; } .axis { stroke: #888; } .mark { stroke: #888; stroke-dasharray: 2 3; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .2em .7em; border-bottom: 1px solid #e4e4e4; text-align: right; }
th { border-bottom: 2px solid #888; } .word { text-align: left; }
</style></head><body>
)";

constexpr char kExplained[] =
    "<p>Each figure is compared with its limit of the same run. A ratio is the median over "
    "alternating pairs: a window of ours and a window of the limit. Pairs in which other processes "
    "used more than 0.12 of a core are dropped if there are cleaner ones. Ratios of different "
    "machines are comparable; other figures are not. CPU is in seconds for each GB at the reader. "
    "p50 and p99 are times inside Next().</p>\n";

// The rows of a workload and their x axis: the element size if sizes differ, else the numbers of
// workers and trainers if those differ, else the subject.
struct Plotted {
  explicit Plotted(const std::vector<const Row*>& all);

  std::vector<const Row*> rows;
  bool sizes = false, shapes = false;  // whether these differ
};

std::string ShapeText(const Row& row) {
  return absl::StrCat(row.setup.workers, ":", row.setup.consumers);
}

Plotted::Plotted(const std::vector<const Row*>& all) {
  for (const Row* row : all) {
    const Summary summary = Summarize(*row);
    const bool drawn = summary.gb_per_s > 0 && (row->limit.empty() || summary.limit_gb_per_s > 0);
    if (row->pairs.empty() || !drawn) continue;
    rows.push_back(row);
    sizes |= row->setup.element_bytes != rows.front()->setup.element_bytes;
    shapes |= ShapeText(*row) != ShapeText(*rows.front());
  }
}

// Returns the name of a curve: its subject, with the shape if that differs but is not the x axis.
std::string CurveOf(const Plotted& plotted, const Row& row) {
  return absl::StrCat(SubjectOf(row),
                      plotted.sizes && plotted.shapes ? absl::StrCat(" ", ShapeText(row)) : "");
}

std::string XTitle(const Plotted& plotted) {
  return plotted.sizes ? "bytes of an element" : plotted.shapes ? "workers : trainers" : "";
}

std::string PlaceOf(const Plotted& plotted, const Row& row) {
  return plotted.sizes    ? SizeText(row.setup.element_bytes)
         : plotted.shapes ? ShapeText(row)
                          : SubjectOf(row);
}

// Returns both plots of a workload. If a subject has several limits, those after the first are
// other systems, which have their own curves.
std::string Plots(const std::vector<const Row*>& all) {
  const Plotted plotted(all);
  Plot rate{.title = "GB/s at the reader, the limit dashed",
            .x_title = XTitle(plotted),
            .y_title = "GB/s",
            .log_x = plotted.sizes,
            .log_y = true};
  Plot ratio{.title = "share of the limit: median, and down to the worst pair",
             .x_title = XTitle(plotted),
             .y_title = "ratio",
             .log_x = plotted.sizes,
             .mark_y = 1};
  std::vector<std::string> places;
  std::map<std::string, std::string> limits;        // the first limit of each curve
  std::map<std::string, size_t> of_rate, of_ratio;  // indices of their series
  for (const Row* row : plotted.rows) {
    const Summary summary = Summarize(*row);
    const std::string curve = CurveOf(plotted, *row), place = PlaceOf(plotted, *row);
    auto at = std::find(places.begin(), places.end(), place);
    if (at == places.end()) at = places.insert(places.end(), place);
    const double x = plotted.sizes ? static_cast<double>(row->setup.element_bytes)
                                   : static_cast<double>(at - places.begin());
    const std::pair<double, std::string> tick(x, place);
    if (std::find(rate.x_ticks.begin(), rate.x_ticks.end(), tick) == rate.x_ticks.end()) {
      rate.x_ticks.push_back(tick);
    }
    const bool alone = row->limit.empty();
    const std::string tip =
        alone
            ? absl::StrFormat("%s %s: %.3g GB/s", curve, place, summary.gb_per_s)
            : absl::StrFormat("%s %s: %.3g GB/s, %s %.3g, ratio %.2f", curve, place,
                              summary.gb_per_s, row->limit, summary.limit_gb_per_s, summary.ratio);
    const bool first_limit = limits.emplace(curve, row->limit).first->second == row->limit;
    if (first_limit) {
      const auto [series, is_new] = of_rate.emplace(curve, rate.series.size());
      if (is_new) {
        const int colour = static_cast<int>(of_rate.size()) - 1;
        rate.series.push_back({.name = curve, .colour = colour});
        if (!alone) {
          rate.series.push_back({.name = row->limit, .colour = colour, .dashed = true});
        }
      }
      rate.series[series->second].points.push_back({x, summary.gb_per_s, summary.gb_per_s, tip});
      if (!alone) {
        rate.series[series->second + 1].points.push_back(
            {x, summary.limit_gb_per_s, summary.limit_gb_per_s, tip});
      }
    }
    if (alone) continue;
    const std::string name = first_limit ? curve : absl::StrCat(curve, " by ", row->limit);
    const auto [series, is_new] = of_ratio.emplace(name, ratio.series.size());
    if (is_new) {
      ratio.series.push_back({.name = name, .colour = static_cast<int>(ratio.series.size())});
    }
    ratio.series[series->second].points.push_back({x, summary.ratio, summary.worst_ratio, tip});
  }
  ratio.x_ticks = rate.x_ticks;
  return absl::StrCat("<div class='plots'>\n", Svg(rate), Svg(ratio), "</div>\n");
}

// Returns each name once, in the order of the rows.
std::vector<std::string> WorkloadsOf(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    const std::string& name = row.setup.workload;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string Table(const std::vector<Row>& rows) {
  const Report report = ReportOn(rows);
  const auto cell = [&](const char* tag, size_t column, const std::string& text) {
    const bool word = column < kWordColumns || column + 1 == report.head.size();
    return absl::StrCat("<", tag, word ? " class='word'>" : ">", Escaped(text), "</", tag, ">");
  };
  std::string html = "<div class='wide'><table>\n<tr>";
  for (size_t i = 0; i < report.head.size(); ++i) html += cell("th", i, report.head[i]);
  html += "</tr>\n";
  for (const auto& line : report.lines) {
    html += "<tr>";
    for (size_t i = 0; i < line.size(); ++i) html += cell("td", i, line[i]);
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string HtmlPage(const std::vector<std::string>& machines, const std::vector<Row>& rows,
                     const std::optional<GpuFigures>& gpu) {
  std::string html = absl::StrCat(kPageHead, "<h1>penstock bench</h1>\n");
  for (const std::string& machine : machines) {
    absl::StrAppend(&html, "<p>", Escaped(machine), "; penstock ", Escaped(Version()), "</p>\n");
  }
  html += kExplained;
  for (const std::string& name : WorkloadsOf(rows)) {
    std::vector<const Row*> own;
    for (const Row& row : rows) {
      if (row.setup.workload == name) own.push_back(&row);
    }
    const absl::StatusOr<const Workload*> workload = FindWorkload(name);
    const std::string question =
        workload.ok() ? absl::StrCat(": ", std::string((*workload)->question())) : "";
    absl::StrAppend(&html, "<h2>", Escaped(absl::StrCat(name, question)), "</h2>\n", Plots(own));
  }
  if (gpu.has_value()) html += GpuSection(*gpu);
  return absl::StrCat(html, "<h2>All rows</h2>\n", Table(rows), "</body></html>\n");
}

}  // namespace penstock::bench
