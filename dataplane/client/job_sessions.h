// SPDX-License-Identifier: Apache-2.0
// The sessions of a job's reader, one for each repetition that is being read or is not wholly
// committed yet, and the repetition that each pass reads. Reason to change: the rules by which
// passes become repetitions. A value, guarded by the reader's lock (job_reader.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "control/protocol/lives.h"
#include "dataplane/client/session/session.h"
#include "dataplane/client/session_state/state.h"
#include "dataplane/dataset/graph/graph.h"

namespace penstock::client {

class JobSessions {
 public:
  // `named`: the passes of all readers of `node` form one sequence. Each pass reads the next
  // repetition that no reader of `node` in this process has begun.
  JobSessions(NodePtr node, bool named) : node_(std::move(node)), named_(named) {}

  // Returns the repetition that `pass` reads. Assigns a repetition to a new pass.
  int64_t RepetitionOf(int64_t pass);
  // Records that `pass` continues `repetition` from a state.
  void Continue(int64_t pass, int64_t repetition) { present_ = {pass, repetition}; }
  // Records that a session on `repetition` begins, so that no later pass gets this repetition.
  void Claim(int64_t repetition);

  const std::shared_ptr<Session>& Add(int64_t repetition, std::shared_ptr<Session> session) {
    return sessions_.emplace(repetition, std::move(session)).first->second;
  }
  // Returns nullptr if there is no such session; the same holds for In().
  std::shared_ptr<Session> On(int64_t repetition) const;
  std::shared_ptr<Session> In(int64_t pass) const;
  using Sessions = std::vector<std::shared_ptr<Session>>;
  Sessions All() const;
  bool empty() const { return sessions_.empty(); }
  int64_t latest() const { return sessions_.rbegin()->first; }  // REQUIRES: !empty()
  bool AllEnded() const;

  // Returns the delivered elements of all repetitions, `repetition` last.
  std::vector<ReaderState::Repetition> Delivered(int64_t repetition) const;
  // Returns the last life and record of the dispatcher that any session has heard of.
  control::Heard Heard() const;

  // Takes out the sessions that have ended: all except the one on repetition `but`, or all on
  // repetitions before `before`. Destroy the result without the lock.
  Sessions TakeEndedExcept(int64_t but);
  Sessions TakeEndedBefore(int64_t before);
  // Takes out all sessions, because a new incarnation takes their place. Destroy the result without
  // the lock.
  Sessions Abandon();

 private:
  template <class Predicate>
  Sessions TakeEnded(Predicate may_go);

  const NodePtr node_;
  const bool named_;
  struct Pass {
    int64_t pass = 0;
    int64_t repetition = 0;
  };
  std::optional<Pass> present_;  // nullopt: no pass has begun or been restored
  std::map<int64_t, std::shared_ptr<Session>> sessions_;  // by repetition
};

}  // namespace penstock::client
