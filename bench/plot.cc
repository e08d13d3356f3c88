// SPDX-License-Identifier: Apache-2.0
#include "bench/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace penstock::bench {
namespace {

// Pixels.
constexpr double kWidth = 570, kHeight = 320;
constexpr double kLeft = 64, kRight = 150, kTop = 30, kBottom = 46;
constexpr double kLegendLine = 18;

// Distinguishable with colour blindness too (Okabe and Ito).
constexpr std::array<const char*, 7> kPalette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#444444"};

const char* ColourOf(const Series& series) {
  return kPalette[static_cast<size_t>(series.colour) % kPalette.size()];
}

// An axis: maps values to pixels.
struct Axis {
  double low = 0, high = 1;    // values
  double first = 0, last = 1;  // pixels
  bool log = false;

  double At(double value) const {
    const auto scaled = [&](double v) { return log ? std::log10(v) : v; };
    const double share = (scaled(value) - scaled(low)) / (scaled(high) - scaled(low));
    return first + share * (last - first);
  }
};

// Returns 1, 2 or 5 times a power of ten, about a fifth of `span`.
double StepOf(double span) {
  const double power = std::pow(10, std::floor(std::log10(span / 5)));
  for (double times : {1.0, 2.0, 5.0}) {
    if (times * power >= span / 5) return times * power;
  }
  return 10 * power;
}

std::vector<double> YTicks(const Axis& y) {
  std::vector<double> ticks;
  if (y.log) {
    for (double tick = y.low; tick <= y.high * 1.001; tick *= 10) ticks.push_back(tick);
  } else {
    const double step = StepOf(y.high);
    for (double tick = 0; tick <= y.high * 1.001; tick += step) ticks.push_back(tick);
  }
  return ticks;
}

std::string SvgLine(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return absl::StrFormat("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' %s/>\n", x1, y1, x2, y2,
                         attributes);
}

std::string Text(double x, double y, const std::string& anchor, const std::string& text) {
  return absl::StrFormat("<text x='%.1f' y='%.1f' text-anchor='%s'>%s</text>\n", x, y, anchor,
                         Escaped(text));
}

Axis XAxis(const Plot& plot) {
  Axis x{.first = kLeft, .last = kWidth - kRight, .log = plot.log_x};
  x.low = std::numeric_limits<double>::max();
  x.high = std::numeric_limits<double>::lowest();
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      x.low = std::min(x.low, point.x);
      x.high = std::max(x.high, point.x);
    }
  }
  // Leaves room at both ends, also for a single value.
  if (x.log) {
    x.low /= 1.5;
    x.high *= 1.5;
  } else {
    x.low -= 0.5;
    x.high += 0.5;
  }
  return x;
}

Axis YAxis(const Plot& plot) {
  Axis y{.first = kHeight - kBottom, .last = kTop, .log = plot.log_y};
  y.low = std::numeric_limits<double>::max();
  y.high = plot.mark_y;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      y.low = std::min(y.low, point.low);
      y.high = std::max(y.high, point.y);
    }
  }
  if (y.log) {
    y.low = std::pow(10, std::floor(std::log10(y.low)));
    y.high = std::pow(10, std::ceil(std::log10(y.high)));
    if (y.high <= y.low) y.high = y.low * 10;
  } else {
    y.low = 0;
    y.high *= 1.08;
  }
  return y;
}

std::string Frame(const Plot& plot, const Axis& x, const Axis& y) {
  std::string svg;
  for (double tick : YTicks(y)) {
    svg += SvgLine(x.first, y.At(tick), x.last, y.At(tick), "class='grid'");
    svg += Text(x.first - 6, y.At(tick) + 4, "end", absl::StrFormat("%g", tick));
  }
  for (const auto& [at, name] : plot.x_ticks) {
    svg += SvgLine(x.At(at), y.first, x.At(at), y.first + 4, "class='axis'");
    svg += Text(x.At(at), y.first + 17, "middle", name);
  }
  if (plot.mark_y > 0) {
    svg += SvgLine(x.first, y.At(plot.mark_y), x.last, y.At(plot.mark_y), "class='mark'");
  }
  svg += SvgLine(x.first, y.first, x.last, y.first, "class='axis'");
  svg += Text((x.first + x.last) / 2, kHeight - 8, "middle", plot.x_title);
  svg += absl::StrFormat(
      "<text x='14' y='%.1f' text-anchor='middle' transform='rotate(-90 14 %.1f)'>"
      "%s</text>\n",
      (y.first + y.last) / 2, (y.first + y.last) / 2, Escaped(plot.y_title));
  return svg + absl::StrFormat("<text x='%.1f' y='18' class='title'>%s</text>\n", x.first,
                               Escaped(plot.title));
}

std::string Curve(const Series& series, const Axis& x, const Axis& y) {
  std::string path, svg;
  for (const Point& point : series.points) {
    absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : " L", x.At(point.x),
                          y.At(point.y));
  }
  absl::StrAppendFormat(&svg, "<path d='%s' fill='none' stroke='%s' stroke-width='1.8'%s/>\n", path,
                        ColourOf(series), series.dashed ? " stroke-dasharray='5 4'" : "");
  for (const Point& point : series.points) {
    if (point.low < point.y) {
      svg += SvgLine(x.At(point.x), y.At(point.y), x.At(point.x), y.At(point.low),
                     absl::StrCat("stroke='", ColourOf(series), "' stroke-width='1'"));
    }
    absl::StrAppendFormat(&svg,
                          "<circle cx='%.1f' cy='%.1f' r='%s' fill='%s'><title>%s</title>"
                          "</circle>\n",
                          x.At(point.x), y.At(point.y), series.dashed ? "2" : "3.5",
                          ColourOf(series), Escaped(point.tip));
  }
  return svg;
}

}  // namespace

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&quot;"}});
}

std::string Svg(const Plot& plot) {
  if (std::all_of(plot.series.begin(), plot.series.end(),
                  [](const Series& series) { return series.points.empty(); })) {
    return "";
  }
  const Axis x = XAxis(plot), y = YAxis(plot);
  std::string svg = absl::StrFormat("<svg viewBox='0 0 %g %g' width='%g' height='%g' role='img'>\n",
                                    kWidth, kHeight, kWidth, kHeight);
  svg += Frame(plot, x, y);
  double legend = kTop + 8;
  for (const Series& series : plot.series) {
    if (series.points.empty()) continue;
    svg += Curve(series, x, y);
    svg += SvgLine(x.last + 12, legend, x.last + 32, legend,
                   absl::StrCat("stroke='", ColourOf(series), "' stroke-width='1.8'",
                                series.dashed ? " stroke-dasharray='5 4'" : ""));
    svg += Text(x.last + 38, legend + 4, "start", series.name);
    legend += kLegendLine;
  }
  return svg + "</svg>\n";
}

}  // namespace penstock::bench
