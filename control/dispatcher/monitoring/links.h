// SPDX-License-Identifier: Apache-2.0
// Keeps the reports about links in clients' heartbeats. For each link the last two counts are kept,
// and rates are computed from them. The reports are not journaled: a restarted dispatcher gets new
// ones.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/dispatcher_status.h"
#include "control/protocol/heartbeat_counts.h"

namespace penstock::control {

// Not thread-safe.
class Links {
 public:
  using Key = std::pair<IterationId, ClientId>;

  // Called when the session begins or continues on a stream. Streams have different numbers. Only
  // the reports of the session's last stream count. The counts from an earlier stream of the same
  // incarnation are kept until the first report on this one, so that increases are counted once.
  void Begin(const Key& key, Incarnation incarnation, uint64_t stream);
  // Takes the report in a heartbeat at `now`, and adds the increases since the previous report to
  // the metrics penstock_link_elements_total and penstock_link_bytes_total of the links' protocols.
  // Costs what the heartbeat names. Moves the texts out of heartbeat.links. Returns false if the
  // report does not count: the session is unknown or has a newer stream, or the first report on its
  // stream names only changes.
  bool Heard(const Key& key, uint64_t stream, ClientHeartbeat& heartbeat, absl::Time now);
  void Forget(const Key& key) { sessions_.erase(key); }

  // Returns one entry per link of the session, in ascending order of the workers, in which `job`
  // and `worker` are not set; empty for an unknown session.
  std::vector<LinkStatus> Of(const Key& key) const;
  size_t NumOf(const Key& key) const;  // of entries
  bool Has(const Key& key, WorkerId worker) const;

 private:
  struct Link {
    LinkCounts counts;
    int64_t elements_before = 0;  // at the report before `report`
    int64_t bytes_before = 0;
    uint64_t report = 0;  // number of the last report that named the link
  };
  struct Session {
    Incarnation incarnation;
    uint64_t stream = 0;
    bool whole = false;    // the stream has reported all links
    uint64_t reports = 0;  // number of the last report
    // The times of the last two reports.
    absl::Time last = absl::InfinitePast();
    absl::Time before = absl::InfinitePast();
    std::map<WorkerId, Link> links;
  };
  void Take(Session& session, LinkCounts& counts);
  // Returns the label of a protocol's name in metrics: "other" if there are too many names. Metrics
  // are kept for ever, and clients choose the names.
  std::string LabelOf(const std::string& protocol);

  std::map<Key, Session> sessions_;
  std::set<std::string> labels_ = {"grpc", "local", "shm", "tcp", "ucx"};
};

}  // namespace penstock::control
