// SPDX-License-Identifier: Apache-2.0
// The links of an engine, by key, with their time limits. Used on the engine's thread only.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "dataplane/transfer/ucx/active_worker.h"
#include "dataplane/transfer/ucx/link.h"

namespace penstock::transfer::ucx {

class LinkTable {
 public:
  explicit LinkTable(ActiveWorker& active) : active_(active) {}

  void Add(const std::shared_ptr<Link>& link, Link::Key key, Worker::Peer peer);
  bool Has(Link::Key key) const { return links_.contains(key); }
  // Returns the link to which the message belongs; nullptr if there is none.
  std::shared_ptr<Link> Find(const Head& head) const;
  // Returns true if any link uses the peer.
  bool Uses(Worker::Peer peer) const;
  // Removes the link and returns it, so that the caller keeps it alive; nullptr if the table does
  // not have the link.
  std::shared_ptr<Link> Remove(Link& link);
  // Tells the peer's links that the peer is lost.
  void Lose(Worker::Peer peer, const absl::Status& reason);

  void SetDeadline(Link& link, Clock::time_point deadline);
  // Collects the links whose time limits have passed, and finds the next time limit.
  void CollectDue(Clock::time_point now);
  // Calls the collected links that are still attached.
  void CallDue();

  void Clear() { links_.clear(); }

 private:
  ActiveWorker& active_;
  std::map<Link::Key, std::shared_ptr<Link>> links_;
  std::vector<std::shared_ptr<Link>> due_;  // empty between two turns of the loop
};

}  // namespace penstock::transfer::ucx
