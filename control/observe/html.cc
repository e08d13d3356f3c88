// SPDX-License-Identifier: Apache-2.0
#include "control/observe/html.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "control/observe/metrics.h"
#include "control/sync/clock.h"

namespace penstock {
namespace {

constexpr char kStyle[] =
    "body{font:14px system-ui,sans-serif;margin:2em;color:#222;background:#fff}"
    "h1{font-size:1.4em;margin:0}h2{font-size:1.1em;margin:1.6em 0 .4em}"
    "p{color:#666;margin:.3em 0}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:.25em 1em .25em 0;border-bottom:1px solid #ddd;"
    "vertical-align:top}th{font-weight:600;color:#555}td{font-variant-numeric:tabular-nums}";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

void AddRow(const char* cell, const std::vector<std::string>& row, std::string& html) {
  html += "<tr>";
  for (const std::string& text : row) {
    absl::StrAppend(&html, "<", cell, ">", Escaped(text), "</", cell, ">");
  }
  html += "</tr>\n";
}

}  // namespace

std::string HtmlTable(const std::string& heading, const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows) {
  std::string html = absl::StrCat("<h2>", Escaped(heading), "</h2>\n");
  if (rows.empty()) return html + "<p>none</p>\n";
  html += "<table>\n";
  AddRow("th", head, html);
  for (const std::vector<std::string>& row : rows) AddRow("td", row, html);
  return html + "</table>\n";
}

std::string HtmlPage(const std::string& title, const std::string& body) {
  const std::string name = Escaped(title);
  return absl::StrCat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">",
                      "<meta http-equiv=\"refresh\" content=\"5\"><title>", name, "</title><style>",
                      kStyle, "</style></head><body>\n<h1>", name, "</h1>\n<p>",
                      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", WallTime(), absl::UTCTimeZone()),
                      " · <a href=\"/metrics\">metrics</a></p>\n", body, "</body></html>\n");
}

std::string HtmlOfMetrics() {
  std::vector<std::vector<std::string>> rows;
  const std::string text = ProcessMetrics().Render();
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const size_t space = line.rfind(' ');
    rows.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
  }
  return HtmlTable("Counts of this process", {"metric", "value"}, rows);
}

}  // namespace penstock
