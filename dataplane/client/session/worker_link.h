// SPDX-License-Identifier: Apache-2.0
// A session's link to one worker, over all connections: its state, its counts, and when it must be
// dialled or closed. Reason to change: the life of one link. A value, guarded by the session's lock
// (session_parts.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/heartbeat_counts.h"
#include "dataplane/client/session_state/reader.h"
#include "dataplane/client/session_state/unacked_receives.h"

namespace penstock::client {

struct WorkerLink {
  enum class Phase : uint8_t {
    kDown,      // there is no link
    kDialling,  // Dial() may be running
    kOpen,
    kBroken,  // the link is over and must be closed before the next one
  };

  void Fail(const absl::Status& why);
  // Stops using a protocol that has failed several times in a row because it lacks a resource,
  // such as memory, on this host.
  void GiveUpAfterFailures();
  // Forgets failures from before the worker was wanted, which do not count.
  void ForgetFailures();
  // Returns whether the link may be put into use.
  bool IsReady() const { return phase == Phase::kDialling && dialled && opened; }

  // Return when the link must be closed, dialled, or counts as out of reach after `timeout`;
  // InfiniteFuture: not at all as things are. `none_wanted`: all links must be closed.
  absl::Time CloseAt(bool none_wanted) const;
  absl::Time DialAt(bool none_wanted) const;
  absl::Time OutOfReachAt(absl::Duration timeout) const;
  bool IsOutOfReach() const { return wanted && down_since != absl::InfiniteFuture(); }
  // Returns the counts for a heartbeat, except those that the link does not know: the worker, its
  // credits and the waits for it.
  control::LinkCounts Counts(bool none_wanted) const;

  std::shared_ptr<Reader> reader;
  Phase phase = Phase::kDown;
  bool dialled = false;  // Dial() has returned
  bool opened = false;   // the worker has answered
  bool wanted = true;    // the worker has a partition that this client reads
  absl::Time unwanted_since;
  absl::Time retry_at = absl::InfinitePast();
  absl::Duration backoff;
  absl::Time down_since = absl::InfiniteFuture();
  absl::Status reason;                     // why the link is down
  int64_t number = 0;                      // of the latest link; 0 before the first
  transfer::TransportSelection selection;  // of the link's transport
  bool told_of_fall_back = false;  // an event has reported that the protocol is not the named one
  bool made_progress = false;      // an element was received since the link was dialled
  int consecutive_failures = 0;    // for lack of resources, with nothing received
  std::map<std::string, std::string> given_up;  // protocols that are not tried again, and why
  UnackedReceives unacked_receives;
  int64_t elements = 0;  // received over all links to the worker
  int64_t bytes = 0;
  std::shared_ptr<transfer::FilledCounts> filled = std::make_shared<transfer::FilledCounts>();
};

}  // namespace penstock::client
