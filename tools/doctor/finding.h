// SPDX-License-Identifier: Apache-2.0
// The findings of an examination of a machine, as values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::doctor {

// kNote: needs no repair, but is good to know. kWarning: something is slower or weaker than this
// machine allows. kError: something on this machine does not work.
enum class Severity { kOk, kNote, kWarning, kError };

struct Finding {
  std::string id;  // "rdma.small_mtu": for scripts, and the heading in docs/doctor.md
  Severity severity = Severity::kOk;
  std::string what;                         // what was read, as a sentence
  std::string why;                          // why it matters; empty if all is well
  std::string remedy;                       // what to do; empty if all is well
  std::vector<std::string> protocols = {};  // affected protocols; empty: all
  bool blocks = false;                      // the protocols cannot work until this is repaired
};

// The protocols that an examination can be restricted to.
const std::vector<std::string>& Protocols();

// Returns "ok", "note", "warning" or "error".
std::string_view SeverityName(Severity severity);

// Returns the findings that concern the protocol. A user who names a protocol wants to use it, so a
// finding that blocks it becomes an error, even if the machine is in order (it has no NIC, for
// example).
std::vector<Finding> ForProtocol(std::vector<Finding> findings, std::string_view protocol);

// Returns 0 if nothing is worse than a note, 1 if there are warnings, 2 if there are errors.
int ExitCode(const std::vector<Finding>& findings);

}  // namespace penstock::doctor
