// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_figures.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "bench/plot.h"

namespace penstock::bench {
namespace {

// Returns the key's number if it is at least 0, else -1.
double NumberAt(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  const bool is_one = found != object.end() && found->is_number() && found->get<double>() >= 0;
  return is_one ? found->get<double>() : -1;
}

std::string TextAt(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const GpuFigure* FindFigure(const GpuFigures& all, const std::string& what) {
  for (const GpuFigure& figure : all.figures)
    if (figure.what == what) return &figure;
  return nullptr;
}

}  // namespace

absl::StatusOr<GpuFigures> ReadGpuFigures(std::string_view lines) {
  GpuFigures all;
  int number = 0;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(lines.data(), lines.size()), '\n')) {
    ++number;
    if (line.empty()) continue;
    const nlohmann::json object =
        nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (object.is_object() && object.contains("not_measured")) {
      all.not_measured = TextAt(object, "not_measured");
      continue;
    }
    GpuFigure figure;
    if (object.is_object()) {
      figure = {TextAt(object, "what"), TextAt(object, "beside"), NumberAt(object, "gb_per_second"),
                NumberAt(object, "least"), NumberAt(object, "most")};
    }
    if (figure.what.empty() || figure.gb_per_s < 0 || figure.least < 0 || figure.most < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " is no figure of gpu_bench; give its output as it is"));
    }
    all.figures.push_back(std::move(figure));
  }
  return all;
}

std::string GpuSection(const GpuFigures& figures) {
  std::string html = "<h2>On a GPU</h2>\n";
  if (!figures.not_measured.empty()) {
    absl::StrAppend(&html, "<p>Not measured: ", Escaped(figures.not_measured), "</p>\n");
  }
  if (figures.figures.empty()) return html;
  html +=
      "<div class='wide'><table>\n<tr><th class='word'>what</th><th>GB/s</th><th>least</th>"
      "<th>most</th><th>ratio</th><th class='word'>of</th></tr>\n";
  for (const GpuFigure& figure : figures.figures) {
    const GpuFigure* const limit = FindFigure(figures, figure.beside);
    const bool held = limit != nullptr && limit->gb_per_s > 0;
    absl::StrAppend(&html, "<tr><td class='word'>", Escaped(figure.what),
                    absl::StrFormat("</td><td>%.2f</td><td>%.2f</td><td>%.2f</td><td>",
                                    figure.gb_per_s, figure.least, figure.most),
                    held ? absl::StrFormat("%.3f", figure.gb_per_s / limit->gb_per_s) : "",
                    "</td><td class='word'>", Escaped(figure.beside), "</td></tr>\n");
  }
  return html + "</table></div>\n";
}

}  // namespace penstock::bench
