// SPDX-License-Identifier: Apache-2.0
// When something is due for each of many keys, so that a thread need not look at all of them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/time/time.h"

namespace penstock::client {

// A value. A call costs the logarithm of the number of keys with a time.
template <class Key>
class Agenda {
 public:
  // Replaces the key's time. InfiniteFuture: nothing is due for the key.
  void Set(const Key& key, absl::Time due) {
    const auto found = due_.find(key);
    if (found != due_.end()) {
      if (found->second == due) return;
      by_time_.erase({found->second, key});
      due_.erase(found);
    }
    if (due == absl::InfiniteFuture()) return;
    due_.emplace(key, due);
    by_time_.emplace(due, key);
  }
  // Returns the key with the earliest time, if that is not after `now`. Otherwise returns nullopt,
  // and moves `wake` to the earliest time, if that is earlier.
  std::optional<Key> Next(absl::Time now, absl::Time& wake) const {
    if (by_time_.empty()) return std::nullopt;
    const auto& [due, key] = *by_time_.begin();
    if (due <= now) return key;
    wake = std::min(wake, due);
    return std::nullopt;
  }

 private:
  std::map<Key, absl::Time> due_;
  std::set<std::pair<absl::Time, Key>> by_time_;
};

}  // namespace penstock::client
