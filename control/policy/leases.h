// SPDX-License-Identifier: Apache-2.0
// The default lease times, and a class that finds the peers that have been silent for too long. The
// class has no clock: the caller passes the time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <vector>

#include "absl/time/time.h"

namespace penstock::control {

// The defaults. They must equal the defaults in DispatcherConfig (penstock/server.h), where users
// set other values.
inline constexpr absl::Duration kClientTimeout = absl::Seconds(60);
inline constexpr absl::Duration kWorkerTimeout = absl::Seconds(10);
inline constexpr absl::Duration kHeartbeatInterval = absl::Seconds(1);

// A call costs the logarithm of the number of peers, and Expired() costs what it returns. The times
// that the calls pass must not decrease.
template <class Key>
class Leases {
 public:
  Leases() = default;
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  void Heard(const Key& key, absl::Time now) {
    const auto [found, is_new] = peers_.try_emplace(key);
    if (is_new) {
      found->second = by_time_.insert(by_time_.end(), Peer{key, now});
    } else {
      found->second->heard = now;
      by_time_.splice(by_time_.end(), by_time_, found->second);
    }
  }
  void Forget(const Key& key) {
    const auto found = peers_.find(key);
    if (found == peers_.end()) return;
    by_time_.erase(found->second);
    peers_.erase(found);
  }
  size_t size() const { return peers_.size(); }
  bool Knows(const Key& key) const { return peers_.contains(key); }
  // Returns zero for an unknown key.
  absl::Duration SilentFor(const Key& key, absl::Time now) const {
    const auto found = peers_.find(key);
    if (found == peers_.end()) return absl::ZeroDuration();
    return now - std::max(found->second->heard, stalled_until_);
  }

  // Returns the keys that have been silent for `timeout` or longer, ascending. A key is returned
  // until Forget() is called for it.
  std::vector<Key> Expired(absl::Time now, absl::Duration timeout) const {
    std::vector<Key> expired;
    if (now - stalled_until_ < timeout) return expired;
    for (const Peer& peer : by_time_) {
      if (now - peer.heard < timeout) break;
      expired.push_back(peer.key);
    }
    std::sort(expired.begin(), expired.end());
    return expired;
  }

  // Called when the holder of this object was itself stalled until `to`, because its process or
  // machine was stopped. It could not hear from any peer in that time, so all silences are counted
  // from `to`.
  void HolderStalled(absl::Time to) { stalled_until_ = std::max(stalled_until_, to); }

 private:
  struct Peer {
    Key key;
    absl::Time heard;
  };
  std::list<Peer> by_time_;  // the peer that was heard from last is at the end
  std::map<Key, typename std::list<Peer>::iterator> peers_;
  absl::Time stalled_until_ = absl::InfinitePast();
};

}  // namespace penstock::control
