// SPDX-License-Identifier: Apache-2.0
// Columns for people, aligned.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace penstock::tools {

// Rows of cells under a head; columns two spaces apart, each as wide as its
// widest cell. Those behind the first `left` columns stand to the right, but the
// last. Ends with a line break; only the head if there are no rows.
std::string FormatTable(const std::vector<std::string>& head,
                        const std::vector<std::vector<std::string>>& rows,
                        size_t left = std::numeric_limits<size_t>::max());

}  // namespace penstock::tools
