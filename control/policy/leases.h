// SPDX-License-Identifier: Apache-2.0
// The default lease times, and a class that finds the peers that have been silent for too long. The
// class has no clock: the caller passes the time.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "absl/time/time.h"

namespace penstock::control {

// The defaults. They must equal the defaults in DispatcherConfig (penstock/server.h), where users
// set other values.
inline constexpr absl::Duration kClientTimeout = absl::Seconds(60);
inline constexpr absl::Duration kWorkerTimeout = absl::Seconds(10);
inline constexpr absl::Duration kHeartbeatInterval = absl::Seconds(1);

template <class Key>
class Leases {
 public:
  void Heard(const Key& key, absl::Time now) { heard_[key] = now; }
  void Forget(const Key& key) { heard_.erase(key); }
  bool Knows(const Key& key) const { return heard_.count(key) > 0; }
  // Returns zero for an unknown key.
  absl::Duration SilentFor(const Key& key, absl::Time now) const {
    auto found = heard_.find(key);
    return found == heard_.end() ? absl::ZeroDuration() : now - found->second;
  }

  // Returns the keys that have been silent for `timeout` or longer. A key is returned until
  // Forget() is called for it.
  std::vector<Key> Expired(absl::Time now, absl::Duration timeout) const {
    std::vector<Key> expired;
    for (const auto& [key, heard] : heard_) {
      if (now - heard >= timeout) expired.push_back(key);
    }
    return expired;
  }

  // Called when the holder of this object was itself stalled until `to`, because its process or
  // machine was stopped. It could not hear from any peer in that time, so all silences are counted
  // from `to`.
  void HolderStalled(absl::Time to) {
    for (auto& [key, heard] : heard_) heard = std::max(heard, to);
  }

 private:
  std::map<Key, absl::Time> heard_;
};

}  // namespace penstock::control
