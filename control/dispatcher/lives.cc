// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/lives.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/iteration_end.h"
#include "control/dispatcher/transaction.h"
#include "control/observe/secret.h"
#include "control/policy/authorization.h"

namespace penstock::control {

void Lives::Begin(Transaction& txn) {
  const auto draw = [this] { return std::max<uint64_t>(options_.random(), 1); };  // 0: none
  const uint64_t journal = state_.lives.empty() ? 0 : state_.lives.back().life.journal;
  txn.Apply(LifeBegun{{.life = {.journal = journal != 0 ? journal : draw(),
                                .id = draw(),
                                .term = Term(state_.term().value() + 1)},
                       .begins = shared_.sequence + 1,
                       .lease = options_.client_timeout,
                       .key_id = shared_.tokens.key_id}});
  const bool is_new = shared_.sequence == 0;
  if (is_new && options_.new_format > state_.format)
    txn.Apply(FormatFinalised{options_.new_format});
  first_iteration_ = IterationId(state_.next_iteration);
}

absl::Status Lives::Beyond(const Heard& heard) const {
  return absl::FailedPreconditionError(absl::StrCat(
      "the dispatcher is in term ", state_.term().value(), " of its journal, at record ",
      shared_.sequence.load(), ", but a peer has heard of term ", heard.life.term.value(),
      " at record ", heard.sequence,
      ", which is not in this journal: it began from an older copy of the journal, or another "
      "dispatcher began from this one; start only one dispatcher, from the newest copy"));
}

// Returns whether a process's hello may end the job. Nothing proves that a process has heard what
// its hello says, so a trainer or operator ends only jobs that it may cancel. The readers of other
// jobs say themselves whether they are ahead of the journal.
static bool MayEnd(const Caller& caller, const JobRecord& job) {
  return !caller.has_value() || caller->role == Role::kWorker ||
         Authorize(Action::kCancelJob, caller, job).ok();
}

void Lives::EndEarlier(Transaction& txn, const Heard& heard) {
  std::vector<IterationId> earlier;
  for (const auto& [id, iteration] : state_.iterations) {
    if (id < first_iteration_ && state_.GoesOn(iteration) && !iteration.record.finished &&
        MayEnd(txn.caller(), state_.jobs.at(iteration.job))) {
      earlier.push_back(id);
    }
  }
  if (earlier.empty()) return;
  txn.Log("journal_is_older", {{"record", absl::StrCat(shared_.sequence.load())},
                               {"heard", absl::StrCat(heard.sequence)}});
  for (IterationId id : earlier) {
    const IterationState& iteration = state_.iterations.at(id);
    txn.EndOf(iteration).Fail(OlderJournal(state_.jobs.at(iteration.job), heard));
  }
}

static absl::Status OtherJob(const JobRecord& job) {
  return absl::FailedPreconditionError(absl::StrCat(
      ToString(job.id), " of this dispatcher is '", job.name,
      "', not the one that this reader began with: the dispatcher began without its "
      "journal, without the key of the journal, or from an older copy of it; restart the trainer, "
      "and Restore() its state"));
}

absl::Status Lives::OlderJournal(const JobRecord& job, const Heard& heard) const {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job.name, ": ", Beyond(heard).message(),
                   ". Alternatively, begin the job under another run_id, with the states of all "
                   "ranks (Restore())"));
}

absl::Status Lives::CheckHeard(const JobRecord& job, const Heard& heard) const {
  switch (OriginOf(heard, state_.lives)) {
    case Origin::kOther:
      return OtherJob(job);
    case Origin::kBeyond:
      return OlderJournal(job, heard);
    default:
      return absl::OkStatus();
  }
}

absl::Status Lives::Check(Transaction& txn, const JobRecord& job, const ClientHello& hello) {
  if (!SameSecret(hello.token, shared_.tokens.Of(job))) return OtherJob(job);
  if (OriginOf(hello.heard, state_.lives) == Origin::kBeyond) EndEarlier(txn, hello.heard);
  return CheckHeard(job, hello.heard);
}

}  // namespace penstock::control
