// SPDX-License-Identifier: Apache-2.0
// The sessions of a job's reader, one for each repetition that is being read or is not wholly
// committed yet, and which repetition each pass reads. Changes with how passes become repetitions.
// A value, guarded by the reader's lock (job_reader.h).
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
  // `named`: passes of all readers of `node` count as one sequence. Each is the next repetition
  // that none of them has begun in this process.
  JobSessions(NodePtr node, bool named) : node_(std::move(node)), named_(named) {}

  // Returns the repetition that `pass` reads; a new pass gets its repetition.
  int64_t RepetitionOf(int64_t pass);
  // `pass` continues that repetition, from a state.
  void Continue(int64_t pass, int64_t repetition) { present_ = {pass, repetition}; }
  // A session on `repetition` begins: no later pass gets this repetition.
  void Claim(int64_t repetition);

  const std::shared_ptr<Session>& Add(int64_t repetition, std::shared_ptr<Session> session) {
    return sessions_.emplace(repetition, std::move(session)).first->second;
  }
  // All three return nullptr if there is none.
  std::shared_ptr<Session> On(int64_t repetition) const;
  std::shared_ptr<Session> In(int64_t pass) const;
  using Sessions = std::vector<std::shared_ptr<Session>>;
  Sessions All() const;
  bool empty() const { return sessions_.empty(); }
  int64_t latest() const { return sessions_.rbegin()->first; }  // REQUIRES: !empty()
  bool AllEnded() const;

  // Returns what is delivered in all repetitions, `repetition` last.
  std::vector<ReaderState::Repetition> Delivered(int64_t repetition) const;
  // Returns what was last heard of the dispatcher, in any session.
  control::Heard Heard() const;

  // Takes out the sessions that have ended: all except `but`, or those before `before`. They are to
  // be destroyed without the lock.
  Sessions TakeEndedExcept(int64_t but);
  Sessions TakeEndedBefore(int64_t before);
  // Takes out all sessions: a new incarnation takes their place. Also to be destroyed without the
  // lock.
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
  std::optional<Pass> present_;  // nullopt: none has begun or been restored
  std::map<int64_t, std::shared_ptr<Session>> sessions_;  // by repetition
};

}  // namespace penstock::client
