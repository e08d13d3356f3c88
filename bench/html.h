// SPDX-License-Identifier: Apache-2.0
// The bench as one page for a browser, which needs nothing but itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/gpu_figures.h"
#include "bench/row.h"

namespace penstock::bench {

// The machines, in words; for each workload, in the order of the rows, a plot of
// GB/s by size with the limits dashed and one of the ratios with their worst pairs;
// and the table; and what was measured on a GPU, if something was.
std::string HtmlPage(const std::vector<std::string>& machines, const std::vector<Row>& rows,
                     const std::optional<GpuFigures>& gpu = std::nullopt);

}  // namespace penstock::bench
