// SPDX-License-Identifier: Apache-2.0
// Plots as SVG, for pages that load no other files.
#pragma once

#include <string>
#include <vector>

namespace penstock::bench {

struct Point {
  double x = 0, y = 0;
  double low = 0;   // end of a whisker below y; equal to y: no whisker
  std::string tip;  // tooltip
};

struct Series {
  std::string name;
  int colour = 0;  // index in the palette; series of one subject share it
  bool dashed = false;
  std::vector<Point> points;  // ordered by x
};

struct Plot {
  std::string title, x_title, y_title;
  bool log_x = false, log_y = false;  // REQUIRES: all values are above 0
  std::vector<std::pair<double, std::string>> x_ticks;
  double mark_y = 0;  // height of a horizontal line; 0: none
  std::vector<Series> series;
};

// Returns an <svg> element with a legend; "" if no series has a point.
std::string Svg(const Plot& plot);

// Returns `text` escaped for text and attributes.
std::string Escaped(const std::string& text);

}  // namespace penstock::bench
