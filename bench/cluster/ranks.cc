// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/ranks.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "dataplane/transfer/tcp/socket.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

// Below the ports that systems assign by themselves, above the ports of services.
constexpr int64_t kFirstLeaderPort = 20'000;
constexpr int64_t kLeaderPorts = 10'000;

// Returns the variable's number; `otherwise` if it is not set.
absl::StatusOr<int> NumberOf(const Environment& environment, const char* name, int otherwise) {
  const std::optional<std::string> text = environment(name);
  int number = 0;
  if (!text) return otherwise;
  if (absl::SimpleAtoi(*text, &number) && number >= 0) return number;
  return absl::InvalidArgumentError(absl::StrCat(name, " is '", *text, "', which is no rank"));
}

// Returns the address of rank 0 of a Slurm step; "" if the variables do not name it.
std::string SlurmLeader(const Environment& environment) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    const std::optional<std::string> list = environment(name);
    const std::string host = list ? FirstHost(*list) : "";
    if (host.empty()) continue;
    int64_t job = 0, step = 0;
    (void)absl::SimpleAtoi(environment("SLURM_JOB_ID").value_or(""), &job);
    (void)absl::SimpleAtoi(environment("SLURM_STEP_ID").value_or(""), &step);
    return control::JoinHostPort(host, kFirstLeaderPort + (job * 7 + step) % kLeaderPorts);
  }
  return "";
}

}  // namespace

std::string FirstHost(const std::string& list) {
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      host += list[at];
      continue;
    }
    const size_t end = list.find_first_of("-,]", at);
    const size_t close = list.find(']', at);
    if (close == std::string::npos) return "";
    host += list.substr(at + 1, end - at - 1);
    at = close;
  }
  return host;
}

absl::StatusOr<Rank> FindRank(const GivenRank& given, const Environment& environment) {
  Rank rank;
  if (given.number >= 0 || given.count >= 0) {
    if (given.number < 0 || given.count < 1 || given.number >= given.count) {
      return absl::InvalidArgumentError(
          "--rank and --ranks go together: a number from 0, and how many there are");
    }
    rank = {.number = given.number, .count = given.count, .node = given.number};
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(rank.number, NumberOf(environment, "SLURM_PROCID", 0));
    PENSTOCK_ASSIGN_OR_RETURN(rank.count, NumberOf(environment, "SLURM_NTASKS", 1));
    PENSTOCK_ASSIGN_OR_RETURN(rank.node, NumberOf(environment, "SLURM_NODEID", rank.number));
    if (rank.number >= rank.count) {
      return absl::InvalidArgumentError(
          absl::StrCat("SLURM_PROCID is ", rank.number, " and SLURM_NTASKS only ", rank.count));
    }
    rank.job = absl::StrCat(environment("SLURM_JOB_ID").value_or(""), ".",
                            environment("SLURM_STEP_ID").value_or(""));
  }
  if (rank.count == 1) return rank;
  rank.leader = given.leader.empty() ? SlurmLeader(environment) : given.leader;
  if (rank.leader.empty()) {
    return absl::InvalidArgumentError(
        "where rank 0 is met is not known: Slurm's variables do not tell, so give --leader "
        "HOST:PORT to all ranks");
  }
  PENSTOCK_RETURN_IF_ERROR(
      Annotate(transfer::tcp::ParseAddress(rank.leader).status(), "it is where rank 0 is met"));
  return rank;
}

}  // namespace penstock::bench
