// SPDX-License-Identifier: Apache-2.0
#include "tools/table.h"

#include <algorithm>

namespace penstock::tools {

std::string FormatTable(const std::vector<std::string>& head,
                        const std::vector<std::vector<std::string>>& rows, size_t left) {
  std::vector<size_t> widths(head.size());
  const auto widen = [&](const std::vector<std::string>& row) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  };
  widen(head);
  for (const auto& row : rows) widen(row);

  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      const size_t gap = widths[i] - row[i].size();
      if (i >= left && !last) text.append(gap, ' ');
      text += row[i];
      if (!last) text.append((i < left ? gap : 0) + 2, ' ');
    }
    text += '\n';
  };
  add(head);
  for (const auto& row : rows) add(row);
  return text;
}

}  // namespace penstock::tools
