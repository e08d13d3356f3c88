// SPDX-License-Identifier: Apache-2.0
// What clients say of their links with their heartbeats: the last word of each
// session, and the one before, which rates come from. Not journaled: a dispatcher
// that starts anew hears all of it again.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/protocol/session_messages.h"

namespace penstock::control {

// Not thread-safe.
class Links {
 public:
  using Key = std::pair<IterationId, ClientId>;

  // What the session says at `now`; adds what is new to the metrics
  // penstock_link_elements_total and penstock_link_bytes_total of its protocols.
  void Heard(const Key& key, Incarnation incarnation, std::vector<LinkCounts> counts,
             absl::Time now);
  void Forget(const Key& key) { sessions_.erase(key); }

  // One line per link of the session, without names; empty if it is not known.
  std::vector<LinkStatus> Of(const Key& key) const;

 private:
  struct Word {
    absl::Time at = absl::InfinitePast();  // never
    std::vector<LinkCounts> counts;        // by worker
  };
  struct Session {
    Incarnation incarnation;
    Word last;
    Word before;  // of the same incarnation; else empty
  };
  std::map<Key, Session> sessions_;
};

}  // namespace penstock::control
