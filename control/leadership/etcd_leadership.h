// SPDX-License-Identifier: Apache-2.0
// The leadership as a key in etcd that a lease holds: the process whose key it is leads, and the
// key's create revision is the term (docs/high_availability.md).
#pragma once

#include <memory>
#include <string>

#include "control/etcd/etcd_client.h"
#include "control/leadership/leadership.h"
#include "control/observe/event_log.h"

namespace penstock::control {

// Long enough for etcd to elect a leader of its own, which takes 1 to 2 s with its defaults.
inline constexpr absl::Duration kLeaderLease = absl::Seconds(3);

struct EtcdLeadershipOptions {
  std::string prefix;  // of the key, with a "/" at its end
  std::string name;    // of this process, for people; the key's value
  // After the leader's last sign of life, a standby leads after this time. Whole seconds, at least
  // 2, which is etcd's minimum with its defaults.
  absl::Duration lease = kLeaderLease;
};

// Returns the key whose create revision is the leader's term.
std::string LeaderKey(const std::string& prefix);

// Returns the patience that a client should have that is used for a leadership: with it, a leader
// whose endpoint does not answer has time to ask the others.
inline absl::Duration LeaderPatience(absl::Duration lease) {
  return lease / 6;
}

// HoldsUntil() is half the lease after the last successful sign of life was sent, so that it also
// holds if one clock runs faster than another. `events` gets the event `standby` when it waits.
std::unique_ptr<Leadership> MakeEtcdLeadership(std::shared_ptr<EtcdClient> client,
                                               EtcdLeadershipOptions options,
                                               std::shared_ptr<EventLog> events);

}  // namespace penstock::control
