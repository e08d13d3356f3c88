// SPDX-License-Identifier: Apache-2.0
// Tracks the committed elements of one repetition. Reason to change: the rules of commits. A value,
// guarded by the session's lock (session/session_parts.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "control/protocol/client_messages.h"
#include "control/protocol/message_parts.h"
#include "dataplane/client/session_state/state.h"

namespace penstock::client {

class CommitTracker {
 public:
  // `restored`: the content of the state that the session restores.
  explicit CommitTracker(IndicesByPartition restored) : indices_(std::move(restored)) {}

  // Returns the commit that Commit() waits for, which is sent again on each new stream.
  const std::optional<control::Commit>& awaited() const { return awaited_; }
  void Await(const control::Commit& commit) { awaited_ = commit; }
  void StopAwaiting() { awaited_.reset(); }

  void OnCommitted(int64_t number) { last_ = std::max(last_, number); }
  // Returns true if state `number` or a later state is committed.
  bool IsCommitted(int64_t number) const { return number <= last_; }
  // Records the elements of `repetition` that `commit` contains.
  void Record(const control::Commit& commit, int64_t repetition) {
    for (const control::Commit::OfRepetition& its : commit.repetitions) {
      if (its.repetition != repetition) continue;
      for (const control::PartitionIndices& committed : its.committed)
        indices_[committed.partition] = committed.indices;
    }
  }
  bool Covers(const IndicesByPartition& delivered) const { return delivered == indices_; }

 private:
  std::optional<control::Commit> awaited_;
  int64_t last_ = 0;  // number of the last commit
  IndicesByPartition indices_;
};

}  // namespace penstock::client
