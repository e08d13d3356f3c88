// SPDX-License-Identifier: Apache-2.0
// The bench for machines: one JSON object a line. bench/README.md lists the fields.
#pragma once

#include <string>

#include "bench/machine.h"
#include "bench/row.h"

namespace penstock::bench {

// The line about the machine, which comes first; of several, one each with its
// host's name.
std::string MachineRecord(const Machine& machine, const std::string& host = "");
// A line a window, then the summary; only the summary, with a note, of what did
// not run. Each ends with a line break.
std::string RecordsOf(const Row& row);

}  // namespace penstock::bench
