// SPDX-License-Identifier: Apache-2.0
// The results of gpu_bench on a machine with a GPU, for the bench's page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::bench {

struct GpuFigure {
  std::string what;
  std::string beside;  // the reference figure; empty: this is one
  double gb_per_s = 0;
  double least = 0, most = 0;  // over the rounds
};

struct GpuFigures {
  std::vector<GpuFigure> figures;
  std::string not_measured;  // reason if there are no figures; else empty
};

// Reads gpu_bench's output: a JSON object a line. InvalidArgument, naming the line, for other text.
absl::StatusOr<GpuFigures> ReadGpuFigures(std::string_view lines);

// Returns an HTML table of the figures, each with its reference.
std::string GpuSection(const GpuFigures& figures);

}  // namespace penstock::bench
