// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/port_bounds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/observe/refused.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

constexpr absl::Duration kBetweenSweeps = absl::Seconds(1);

void Count(Refused reason) {
  CountRefused(Port::kDispatcher, reason);
}

template <class Entries>
auto Find(Entries& entries, const PortUser& user) {
  return std::ranges::find(entries, &user, &Entries::value_type::user);
}

// Returns the oldest entry that has not been ended, if more than `limit` entries have not.
template <class Entries>
auto OldestAbove(Entries& entries, size_t limit) {
  const auto going_on = std::ranges::count(entries, false, &Entries::value_type::ended);
  return static_cast<size_t>(going_on) <= limit
             ? entries.end()
             : std::ranges::find(entries, false, &Entries::value_type::ended);
}

}  // namespace

absl::Status PortBounds::AddStream(PortUser& stream, absl::Time now) {
  MutexLock lock(mu_);
  const bool full = streams_.size() + unidentified_.size() >= limits_.streams;
  unidentified_.push_back({&stream, now, 0, full});
  if (full) {
    Count(Refused::kTooMany);
    return absl::ResourceExhaustedError(
        absl::StrCat("the dispatcher has ", limits_.streams, " streams, which is its limit"));
  }
  if (auto oldest = OldestAbove(unidentified_, limits_.unidentified);
      oldest != unidentified_.end()) {
    Count(Refused::kTooMany);
    oldest->ended = true;
    oldest->user->Refuse(absl::ResourceExhaustedError(absl::StrCat(
        "more than ", limits_.unidentified, " peers have sent no hello, and this is the oldest")));
  }
  return absl::OkStatus();
}

void PortBounds::Identified(const PortUser& stream) {
  MutexLock lock(mu_);
  if (auto found = Find(unidentified_, stream); found != unidentified_.end()) {
    streams_.splice(streams_.end(), unidentified_, found);
  }
}

void PortBounds::AddCall(PortUser& call, absl::Time now) {
  MutexLock lock(mu_);
  calls_.push_back({&call, now});
  if (auto oldest = OldestAbove(calls_, limits_.calls); oldest != calls_.end()) {
    Count(Refused::kTooMany);
    oldest->ended = true;
    oldest->user->Cancel();
  }
}

void PortBounds::Request(const PortUser& call, size_t bytes) {
  MutexLock lock(mu_);
  Find(calls_, call)->bytes += bytes;
  call_bytes_ += bytes;
}

absl::Status PortBounds::Answer(const PortUser& call, size_t bytes, absl::Time now,
                                const SharedObject& shared) {
  MutexLock lock(mu_);
  const size_t added = bytes + (sharers_.contains(shared.object) ? 0 : shared.bytes);
  if (added > limits_.small_answer_bytes) RETURN_IF_ERROR(MakeRoom(added, now));
  Entry& entry = *Find(calls_, call);
  entry.bytes += bytes;
  entry.answer = bytes + shared.read_bytes;
  entry.shared = shared.object;
  call_bytes_ += added;
  if (shared.object != nullptr)
    ++sharers_.try_emplace(shared.object, Sharers{0, shared.bytes}).first->second.calls;
  return absl::OkStatus();
}

// Cancelled calls count until they are over, so that no more memory is given out before it is free.
absl::Status PortBounds::MakeRoom(size_t bytes, absl::Time now) {
  if (call_bytes_ + bytes <= limits_.call_bytes) return absl::OkStatus();
  CancelUnread(calls_, now - limits_.pressed_read_timeout);
  Count(Refused::kTooMany);
  return absl::UnavailableError(absl::StrCat(
      "requests and answers hold ", call_bytes_, " bytes, and this answer needs ", bytes,
      " more; the limit is ", limits_.call_bytes, ". Ask again when other calls have ended"));
}

void PortBounds::CancelUnread(Entries& entries, absl::Time before) {
  for (Entry& entry : entries) {
    if (entry.ended || entry.user->UnreadSince() + TimeToRead(entry) > before) continue;
    Count(Refused::kTooLate);
    entry.ended = true;
    entry.user->Cancel();
  }
}

absl::Duration PortBounds::TimeToRead(const Entry& entry) const {
  return static_cast<double>(entry.answer) / (1 << 20) * limits_.read_time_per_mib;
}

void PortBounds::Remove(const PortUser& user) {
  MutexLock lock(mu_);
  for (Entries* entries : {&unidentified_, &streams_}) {
    if (auto found = Find(*entries, user); found != entries->end()) {
      entries->erase(found);
      return;
    }
  }
  if (auto found = Find(calls_, user); found != calls_.end()) {
    call_bytes_ -= found->bytes;
    if (const auto sharers = sharers_.find(found->shared);
        sharers != sharers_.end() && --sharers->second.calls == 0) {
      call_bytes_ -= sharers->second.bytes;
      sharers_.erase(sharers);
    }
    calls_.erase(found);
  }
}

void PortBounds::Sweep(absl::Time now) {
  MutexLock lock(mu_);
  if (now < swept_ + kBetweenSweeps) return;
  swept_ = now;
  for (Entry& entry : unidentified_) {
    if (entry.ended || entry.since > now - limits_.hello_timeout) continue;
    Count(Refused::kTooLate);
    entry.ended = true;
    entry.user->Refuse(absl::DeadlineExceededError(
        absl::StrCat("no hello arrived within ", absl::FormatDuration(limits_.hello_timeout))));
  }
  for (Entries* entries : {&unidentified_, &streams_, &calls_}) {
    CancelUnread(*entries, now - limits_.read_timeout);
  }
}

}  // namespace penstock::control
