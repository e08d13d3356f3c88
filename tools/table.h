// SPDX-License-Identifier: Apache-2.0
// Columns for people, aligned.
#pragma once

#include <string>
#include <vector>

namespace penstock::tools {

// Rows of cells under a head; columns two spaces apart, each as wide as its
// widest cell. Ends with a line break; only the head if there are no rows.
std::string FormatTable(const std::vector<std::string>& head,
                        const std::vector<std::vector<std::string>>& rows);

}  // namespace penstock::tools
