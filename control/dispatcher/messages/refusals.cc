// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/messages/refusals.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "control/protocol/scoped_name.h"

namespace penstock::control {

absl::StatusOr<uint32_t> AgreeOnVersion(const VersionRange& theirs, std::string_view who) {
  const VersionRange ours;
  if (theirs.max >= ours.min && ours.max >= theirs.min) return std::min(theirs.max, ours.max);
  const char* older = theirs.max < ours.min ? "it" : "the dispatcher";
  return absl::FailedPreconditionError(
      absl::StrCat(std::string(who), " speaks control versions ", theirs.min, " to ", theirs.max,
                   ", the dispatcher ", ours.min, " to ", ours.max, "; upgrade ", older,
                   ", at most one release at a time"));
}

absl::Status ToStatus(const protocol::Refused& refused) {
  const std::string who = absl::StrCat("client ", absl::Hex(refused.client.value()));
  switch (refused.why) {
    case protocol::Refusal::kDeclaredDead:
      return absl::FailedPreconditionError(absl::StrCat(
          who,
          " was silent for longer than client_timeout and was declared dead; elements that it had "
          "not committed go to other clients. Restart from the last committed state"));
    case protocol::Refusal::kStateIsNewer:
      return absl::FailedPreconditionError(absl::StrCat(
          who,
          " was declared dead, and the state it restores contains elements that were never "
          "committed; they go to other clients. Restore the last committed state"));
    case protocol::Refusal::kStateIsOlder:
      return absl::FailedPreconditionError(absl::StrCat(
          who,
          " restores a state that lacks elements it committed later; they are not delivered "
          "again. Restore the last committed state"));
    case protocol::Refusal::kReplaced:
      return absl::FailedPreconditionError(
          absl::StrCat("another process has taken over the session of ", who));
    case protocol::Refusal::kFinished:
      return absl::FailedPreconditionError(
          absl::StrCat("the iteration that ", who,
                       " restores is over, and its state is not the last one that it committed; "
                       "other clients have read the rest. Restore the last committed state"));
    case protocol::Refusal::kConsumerTaken:
      return absl::FailedPreconditionError(
          absl::StrCat("another process already reads with the consumer_index of ", who,
                       "; wait until it has left or has been declared dead"));
    case protocol::Refusal::kRoundsBegan:
      return absl::FailedPreconditionError(absl::StrCat(
          who,
          " joins a coordinated read without a state, but rounds of it have already been given "
          "out. Restore all consumers from states of one step, or use another run_id"));
  }
  return absl::InternalError(absl::StrCat(who, " was refused"));
}

absl::Status CheckScoped(std::string_view name_space, std::string_view scoped) {
  const std::string_view its = name_space.empty() ? kDefaultNamespace : name_space;
  const bool possible = its.size() <= kMaxNamespaceBytes &&
                        NamespaceOf(scoped).size() <= kMaxNamespaceBytes &&
                        std::none_of(its.begin(), its.end(), [](char c) {
                          return c == '/' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
                        });
  if (!possible) {
    return absl::InvalidArgumentError(
        "a namespace may have at most 256 bytes, and may contain no '/' and no control characters");
  }
  if (scoped.empty() || NamespaceOf(scoped) == its) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(scoped), "' is not in namespace '", std::string(its), "'"));
}

}  // namespace penstock::control
