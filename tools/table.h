// SPDX-License-Identifier: Apache-2.0
// Tables of aligned columns, for people.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace penstock::tools {

// Returns rows of cells below a head. Columns are two spaces apart, each as wide as its widest
// cell. The columns after the first `left` are aligned to the right, except the last. The text ends
// with a line break; without rows it is only the head.
std::string FormatTable(const std::vector<std::string>& head,
                        const std::vector<std::vector<std::string>>& rows,
                        size_t left = std::numeric_limits<size_t>::max());

}  // namespace penstock::tools
