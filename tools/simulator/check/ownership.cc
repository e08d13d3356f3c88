// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/ownership.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace penstock::simulator {
namespace {

using Session = CommittedIteration::Session;

// Returns null for a trainer that no record knows.
const Session* SessionOf(const CommittedIteration& iteration, const History& history) {
  if (!history.client.has_value()) return nullptr;
  const auto found = iteration.sessions.find(*history.client);
  return found == iteration.sessions.end() ? nullptr : &found->second;
}

// Returns the first record after `record` by which the reader lost what it had not committed.
std::optional<uint64_t> LostAfter(const Session& session, uint64_t record) {
  const auto lost = std::upper_bound(session.lost.begin(), session.lost.end(), record);
  return lost == session.lost.end() ? std::nullopt : std::optional(*lost);
}

// Returns the last of `records` that is not after `record`; 0: there is none.
uint64_t LastUntil(const std::vector<uint64_t>& records, uint64_t record) {
  const auto after = std::upper_bound(records.begin(), records.end(), record);
  return after == records.begin() ? 0 : *(after - 1);
}

bool IsActive(const Session& session, uint64_t record) {
  const uint64_t began = LastUntil(session.began, record);
  return began > 0 && began >= LastUntil(session.lost, record);
}

// Returns the record by which the reader first committed the element.
std::optional<uint64_t> CommittedAt(const CommittedIteration& iteration, ClientId client,
                                    const ElementKey& key) {
  for (const CommittedIteration::Commit& commit : iteration.commits) {
    if (commit.client == client && commit.partition == key.partition &&
        commit.added.Contains(key.index)) {
      return commit.record;
    }
  }
  return std::nullopt;
}

// Returns whether the owner still owns the element at `record`. A record that loses all that is not
// committed may contain the commit.
bool StillOwns(const CommittedIteration& iteration, const ElementKey& key, const Returned& owner,
               uint64_t record) {
  const Session& session = *SessionOf(iteration, *owner.history);
  const std::optional<uint64_t> lost = LostAfter(session, owner.got->record);
  if (!lost.has_value() || *lost > record) return true;
  const auto committed = CommittedAt(iteration, *owner.history->client, key);
  return committed.has_value() && *committed <= *lost;
}

// Returns whether a reader got the end, or came to read, when the element was owed already.
bool SomebodyPassedBy(const Histories& histories, const CommittedIteration& iteration,
                      uint64_t lost) {
  return std::any_of(histories.begin(), histories.end(), [&](const History& history) {
    const Session* const session = SessionOf(iteration, history);
    if (session != nullptr) return session->told.has_value() && *session->told >= lost;
    return history.ended.has_value() && history.client.has_value() && history.connected >= lost;
  });
}

}  // namespace

std::string WrongOwner(const CommittedIteration& iteration, const ElementKey& key,
                       std::vector<Returned>& returned) {
  std::sort(returned.begin(), returned.end(), [](const Returned& a, const Returned& b) {
    return std::tie(a.got->when, a.got->record) < std::tie(b.got->when, b.got->record);
  });
  const Returned* owner = nullptr;
  for (const Returned& now : returned) {
    const Session* const session = SessionOf(iteration, *now.history);
    if (session == nullptr) {
      return absl::StrCat(now.history->name, " got it, but is a reader in no durable record");
    }
    if (owner != nullptr && owner->history != now.history &&
        StillOwns(iteration, key, *owner, now.got->record)) {
      return absl::StrCat(now.history->name, " got it at ", absl::FormatDuration(now.got->when),
                          ", when it belonged to ", owner->history->name, ", which got it at ",
                          absl::FormatDuration(owner->got->when));
    }
    if (IsActive(*session, now.got->record)) owner = &now;
  }
  return "";
}

bool MayBeGivenUp(const Histories& histories, const CommittedIteration& iteration,
                  const std::vector<Returned>& returned) {
  if (!iteration.commits_states || iteration.finished || !iteration.closed_at.has_value()) {
    return false;
  }
  return std::any_of(returned.begin(), returned.end(), [&](const Returned& its) {
    const Session* const session = SessionOf(iteration, *its.history);
    if (session == nullptr || !its.history->gone.has_value()) return false;
    const std::optional<uint64_t> lost = LostAfter(*session, its.got->record);
    if (!lost.has_value()) return true;  // its session has not ended yet
    return *lost > *iteration.closed_at && !SomebodyPassedBy(histories, iteration, *lost);
  });
}

}  // namespace penstock::simulator
