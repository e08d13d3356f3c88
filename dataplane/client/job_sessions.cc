// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/job_sessions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "control/sync/mutex.h"

namespace penstock::client {

int64_t JobSessions::RepetitionOf(int64_t pass) {
  if (present_.has_value() && present_->pass == pass) return present_->repetition;
  int64_t repetition = pass;
  if (named_) {
    MutexLock lock(node_->kept.mu);
    repetition = node_->kept.repetitions++;
  } else if (present_.has_value()) {
    repetition = present_->repetition + pass - present_->pass;
  }
  present_ = {pass, repetition};
  return repetition;
}

void JobSessions::Claim(int64_t repetition) {
  if (!named_) return;
  MutexLock lock(node_->kept.mu);
  node_->kept.repetitions = std::max(node_->kept.repetitions, repetition + 1);
}

std::shared_ptr<Session> JobSessions::On(int64_t repetition) const {
  const auto found = sessions_.find(repetition);
  return found == sessions_.end() ? nullptr : found->second;
}

std::shared_ptr<Session> JobSessions::In(int64_t pass) const {
  return present_.has_value() && present_->pass == pass ? On(present_->repetition) : nullptr;
}

JobSessions::Sessions JobSessions::All() const {
  Sessions all;
  for (const auto& [repetition, session] : sessions_) all.push_back(session);
  return all;
}

bool JobSessions::AllEnded() const {
  return std::all_of(sessions_.begin(), sessions_.end(),
                     [](const auto& session) { return session.second->ended(); });
}

std::vector<ReaderState::Repetition> JobSessions::Delivered(int64_t repetition) const {
  std::vector<ReaderState::Repetition> repetitions;
  for (const auto& [number, session] : sessions_) {
    if (number != repetition) repetitions.push_back({number, session->delivered()});
  }
  const std::shared_ptr<Session> present = On(repetition);
  repetitions.push_back(
      {repetition, present == nullptr ? IndicesByPartition() : present->delivered()});
  return repetitions;
}

control::Heard JobSessions::Heard() const {
  control::Heard latest;
  for (const auto& [repetition, session] : sessions_) {
    const control::Heard heard = session->heard();
    if (heard.sequence >= latest.sequence) latest = heard;
  }
  return latest;
}

template <class Predicate>
JobSessions::Sessions JobSessions::TakeEnded(Predicate may_go) {
  Sessions ended;
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    const bool goes = may_go(session->first) && session->second->ended();
    if (goes) ended.push_back(std::move(session->second));
    session = goes ? sessions_.erase(session) : std::next(session);
  }
  return ended;
}

JobSessions::Sessions JobSessions::TakeEndedExcept(int64_t but) {
  return TakeEnded([but](int64_t repetition) { return repetition != but; });
}

JobSessions::Sessions JobSessions::TakeEndedBefore(int64_t before) {
  return TakeEnded([before](int64_t repetition) { return repetition < before; });
}

JobSessions::Sessions JobSessions::Abandon() {
  Sessions abandoned = All();
  for (const std::shared_ptr<Session>& session : abandoned) session->Abandon();
  sessions_.clear();
  return abandoned;
}

}  // namespace penstock::client
