// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/refusals.h"

#include "absl/strings/str_cat.h"

namespace penstock::control {

absl::Status ToStatus(const protocol::Refused& refused) {
  const std::string who = absl::StrCat("client ", absl::Hex(refused.client.value()));
  switch (refused.why) {
    case protocol::Refusal::kDeclaredDead:
      return absl::FailedPreconditionError(absl::StrCat(
          who,
          " was silent for longer than client_timeout and declared dead; what it had not "
          "kept goes to others. Restart from the last committed state"));
    case protocol::Refusal::kStateIsNewer:
      return absl::FailedPreconditionError(absl::StrCat(
          who,
          " was declared dead, and the state it restores contains elements that were never "
          "committed; they go to others. Restore the last committed state"));
    case protocol::Refusal::kStateIsOlder:
      return absl::FailedPreconditionError(absl::StrCat(
          who,
          " restores a state that lacks elements it committed later; they are not delivered "
          "again. Restore the last committed state"));
    case protocol::Refusal::kReplaced:
      return absl::FailedPreconditionError(
          absl::StrCat("another process has taken up the session of ", who));
    case protocol::Refusal::kFinished:
      return absl::FailedPreconditionError(absl::StrCat(
          "the iteration that ", who, " restores is over, and its state is not the last one"));
  }
  return absl::InternalError(absl::StrCat(who, " was refused"));
}

}  // namespace penstock::control
