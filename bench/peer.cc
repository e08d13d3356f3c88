// SPDX-License-Identifier: Apache-2.0
#include "bench/peer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/wire.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

// Far longer than the slowest peer takes to load and start on a busy machine.
constexpr absl::Duration kPeerBound = absl::Minutes(5);

absl::StatusOr<nlohmann::json> Ask(Process& process, const nlohmann::json& line) {
  process.Write(line.dump()).IgnoreError();  // if it has ended, its last output has the reason
  ASSIGN_OR_RETURN(const std::string answer, process.ReadLine(kPeerBound));
  return ParseAnswer(answer);
}

absl::StatusOr<Roles> RolesOf(const nlohmann::json& answer) {
  Roles roles;
  const auto pids = answer.find("pids");
  if (pids == answer.end() || !pids->is_object()) {
    return absl::InvalidArgumentError("a peer did not give its \"pids\" by role");
  }
  for (const auto& [role, processes] : pids->items()) {
    for (const auto& pid : processes) {
      if (pid.is_number_integer()) roles[role].push_back(pid.get<pid_t>());
    }
  }
  return roles;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> Peer::Start(const std::string& launcher,
                                                  const std::string& name, const Setup& setup) {
  ASSIGN_OR_RETURN(std::unique_ptr<Process> process,
                   Process::Start({launcher, name}, Process::Ends::kWithInput,
                                  absl::StrCat(setup.scratch, "/peer.log")));
  auto peer = std::unique_ptr<Peer>(new Peer(name, std::move(process)));
  ASSIGN_OR_RETURN(const nlohmann::json answer, Ask(*peer->process_, ToJson(setup)));
  ASSIGN_OR_RETURN(peer->roles_, RolesOf(answer));
  for (const auto& [field, value] : answer.items()) {
    peer->about_[field] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return peer;
}

std::string Peer::About(const std::string& field) const {
  const auto found = about_.find(field);
  return found == about_.end() ? "" : found->second;
}

absl::StatusOr<Done> Peer::Read(double seconds) {
  ASSIGN_OR_RETURN(const nlohmann::json answer, Ask(*process_, {{"seconds", seconds}}));
  return DoneOf(answer);
}

}  // namespace penstock::bench
