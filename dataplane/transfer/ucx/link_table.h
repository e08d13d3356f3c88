// SPDX-License-Identifier: Apache-2.0
// The links of an engine: by their keys, with their time limits. Used on the engine's thread only.
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
  // Returns the link that the message is for; nullptr: none.
  std::shared_ptr<Link> Find(const Head& head) const;
  // True if a link runs over the peer.
  bool Uses(Worker::Peer peer) const;
  // Takes the link out and returns it, so that the caller keeps it alive; nullptr: it is not in.
  std::shared_ptr<Link> Remove(Link& link);
  // Tells the links of the peer that it is lost.
  void Lose(Worker::Peer peer, const absl::Status& reason);

  void SetDeadline(Link& link, Clock::time_point deadline);
  // Collects the links whose time limits have passed, and looks when the next one will.
  void CollectDue(Clock::time_point now);
  // Calls those collected that are still attached.
  void CallDue();

  void Clear() { links_.clear(); }

 private:
  ActiveWorker& active_;
  std::map<Link::Key, std::shared_ptr<Link>> links_;
  std::vector<std::shared_ptr<Link>> due_;  // empty between two turns of the loop
};

}  // namespace penstock::transfer::ucx
