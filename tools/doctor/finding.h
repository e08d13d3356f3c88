// SPDX-License-Identifier: Apache-2.0
// What an examination of a machine finds, as values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::doctor {

// kNote: nothing to mend, but good to know. kWarning: slower or weaker than this
// machine could be. kError: keeps something from working that is there to work.
enum class Severity { kOk, kNote, kWarning, kError };

struct Finding {
  std::string id;  // "rdma.small_mtu": for scripts, and the heading in docs/doctor.md
  Severity severity = Severity::kOk;
  std::string what;                         // what was read, as a sentence
  std::string why;                          // why it matters; empty if all is well
  std::string remedy;                       // what to do; empty if all is well
  std::vector<std::string> protocols = {};  // those it concerns; empty: all
  bool blocks = false;                      // they cannot work as long as it holds
};

// The protocols that an examination can be restricted to.
const std::vector<std::string>& Protocols();

// "ok", "note", "warning", "error".
std::string_view SeverityName(Severity severity);

// What concerns that protocol. Whoever names a protocol wants it: what blocks it
// is an error then, even if nothing is wrong with the machine (it has no NIC, say).
std::vector<Finding> ForProtocol(std::vector<Finding> findings, std::string_view protocol);

// 0: nothing above a note; 1: warnings; 2: errors.
int ExitCode(const std::vector<Finding>& findings);

}  // namespace penstock::doctor
