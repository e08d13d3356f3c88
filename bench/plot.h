// SPDX-License-Identifier: Apache-2.0
// Plots as SVG, for pages that load nothing.
#pragma once

#include <string>
#include <vector>

namespace penstock::bench {

struct Point {
  double x = 0, y = 0;
  double low = 0;   // end of a whisker below y; y: none
  std::string tip;  // told when the pointer rests on it
};

struct Series {
  std::string name;
  int colour = 0;  // its number in the palette; series of one subject share it
  bool dashed = false;
  std::vector<Point> points;  // by x
};

struct Plot {
  std::string title, x_title, y_title;
  bool log_x = false, log_y = false;  // all values are above 0 then
  std::vector<std::pair<double, std::string>> x_ticks;
  double mark_y = 0;  // a line across at this height; 0: none
  std::vector<Series> series;
};

// An <svg> element with a legend; "" if no series has a point.
std::string Svg(const Plot& plot);

// `text` as it stands between tags and in attributes.
std::string Escaped(const std::string& text);

}  // namespace penstock::bench
