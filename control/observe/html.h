// SPDX-License-Identifier: Apache-2.0
// Pages for people, plain and without scripts. Texts from outside are escaped.
#pragma once

#include <string>
#include <vector>

namespace penstock {

// A table under a heading; "none" if there are no rows.
std::string HtmlTable(const std::string& heading, const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows);
// A whole page, which browsers fetch again every few seconds. `body` is HTML.
std::string HtmlPage(const std::string& title, const std::string& body);
// All of the process's metrics as a table.
std::string HtmlOfMetrics();

}  // namespace penstock
