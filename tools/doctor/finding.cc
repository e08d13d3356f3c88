// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/finding.h"

#include <algorithm>

namespace penstock::doctor {

const std::vector<std::string>& Protocols() {
  static const auto& names = *new std::vector<std::string>{"local", "shm", "ucx", "tcp", "grpc"};
  return names;
}

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "unknown";
}

std::vector<Finding> ForProtocol(std::vector<Finding> findings, std::string_view protocol) {
  std::erase_if(findings, [&](const Finding& finding) {
    const std::vector<std::string>& concerned = finding.protocols;
    return !concerned.empty() &&
           std::find(concerned.begin(), concerned.end(), protocol) == concerned.end();
  });
  for (Finding& finding : findings) {
    if (finding.blocks) finding.severity = Severity::kError;
  }
  return findings;
}

int ExitCode(const std::vector<Finding>& findings) {
  Severity worst = Severity::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst == Severity::kError ? 2 : worst == Severity::kWarning ? 1 : 0;
}

}  // namespace penstock::doctor
