// SPDX-License-Identifier: Apache-2.0
// The bench's results as one HTML page that loads no other files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/gpu_figures.h"
#include "bench/row.h"

namespace penstock::bench {

// Returns the page: the machines as text; for each workload, in the order of the rows, a plot of
// GB/s by size with dashed limits and one of the ratios with their worst pairs; the table; and the
// GPU's figures, if there are some.
std::string HtmlPage(const std::vector<std::string>& machines, const std::vector<Row>& rows,
                     const std::optional<GpuFigures>& gpu = std::nullopt);

}  // namespace penstock::bench
