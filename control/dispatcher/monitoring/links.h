// SPDX-License-Identifier: Apache-2.0
// Keeps the reports about links in clients' heartbeats. For each session the last two reports are
// kept, and rates are computed from them. The reports are not journaled: a restarted dispatcher
// gets new ones.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/protocol/dispatcher_status.h"
#include "control/protocol/heartbeat_counts.h"

namespace penstock::control {

// Not thread-safe.
class Links {
 public:
  using Key = std::pair<IterationId, ClientId>;

  // Takes the report of a session at `now`, and adds the increases since its previous report to the
  // metrics penstock_link_elements_total and penstock_link_bytes_total of the links' protocols.
  void Heard(const Key& key, Incarnation incarnation, std::vector<LinkCounts> counts,
             absl::Time now);
  void Forget(const Key& key) { sessions_.erase(key); }

  // Returns one entry per link of the session, in which `job` and `worker` are not set; empty for
  // an unknown session.
  std::vector<LinkStatus> Of(const Key& key) const;
  size_t NumOf(const Key& key) const;  // of entries

 private:
  struct Word {
    absl::Time at = absl::InfinitePast();  // never
    std::vector<LinkCounts> counts;        // sorted by worker
  };
  struct Session {
    Incarnation incarnation;
    Word last;
    Word before;  // from the same incarnation; otherwise empty
  };
  // Returns the label of a protocol's name in metrics: "other" if there are too many names. Metrics
  // are kept for ever, and clients choose the names.
  std::string LabelOf(const std::string& protocol);

  std::map<Key, Session> sessions_;
  std::set<std::string> labels_ = {"grpc", "local", "shm", "tcp", "ucx"};
};

}  // namespace penstock::control
