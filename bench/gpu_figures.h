// SPDX-License-Identifier: Apache-2.0
// What gpu_bench measured on a machine with a GPU, for the page of the bench.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::bench {

struct GpuFigure {
  std::string what;
  std::string beside;  // the figure that it is held to; empty: it is one of those itself
  double gb_per_s = 0;
  double least = 0, most = 0;  // of the rounds
};

struct GpuFigures {
  std::vector<GpuFigure> figures;
  std::string not_measured;  // why there are none; empty if there are
};

// gpu_bench's output: a JSON object a line. InvalidArgument names the line that is none of its.
absl::StatusOr<GpuFigures> ReadGpuFigures(std::string_view lines);

// A table of them as HTML, each beside what it is held to.
std::string GpuSection(const GpuFigures& figures);

}  // namespace penstock::bench
