// SPDX-License-Identifier: Apache-2.0
// Makes plain pages without scripts, for people. All untrusted text is escaped.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// Returns a table under a heading; "none" if there are no rows.
std::string HtmlTable(const std::string& heading, const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows);
// Returns a whole page, which browsers reload every few seconds. `body` is HTML.
std::string HtmlPage(const std::string& title, const std::string& body);
// Returns all of the process's metrics as a table.
std::string HtmlOfMetrics();

}  // namespace penstock
