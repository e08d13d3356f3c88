// SPDX-License-Identifier: Apache-2.0
// The bench's output for programs: one JSON object a line. bench/README.md lists the fields.
#pragma once

#include <string>

#include "bench/machine.h"
#include "bench/row.h"

namespace penstock::bench {

// Returns the line about the machine, which comes first. With several machines, each has a line
// with its host's name.
std::string MachineRecord(const Machine& machine, const std::string& host = "");
// Returns a line for each window, then the summary. A row that did not run has only the summary,
// with a note. Each line ends with a line break.
std::string RecordsOf(const Row& row);

}  // namespace penstock::bench
