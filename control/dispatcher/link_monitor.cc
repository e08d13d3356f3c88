// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/link_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/partition_placer.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {

void LinkMonitor::Heard(const ClientPeer& peer, std::vector<LinkCounts> links, absl::Time now) {
  for (const LinkCounts& link : links) {
    const Link key{peer.iteration, peer.client, link.worker};
    const bool down = link.down && !state_.placed.On(link.worker, peer.iteration).empty();
    if (down) {
      down_.try_emplace(key, now);
    } else if (!down_.empty()) {
      down_.erase(key);
    }
    if (link.open && !unreached_.empty()) changes_ += unreached_.erase(key);
  }
  links_.Heard({peer.iteration, peer.client}, peer.incarnation, std::move(links), now);
}

void LinkMonitor::Forget(const SessionKey& key) {
  links_.Forget(key);
  const auto its = [&](const auto& entry) {
    const auto& [iteration, client, worker] = entry.first;
    return SessionKey(iteration, client) == key;
  };
  std::erase_if(down_, its);
  changes_ += std::erase_if(unreached_, its);
}

void LinkMonitor::Forget(IterationId iteration) {
  changes_ += std::erase_if(unreached_, [&](const auto& entry) {
    return std::get<IterationId>(entry.first) == iteration;
  });
}

std::set<WorkerId> LinkMonitor::Unreached(IterationId iteration) const {
  std::set<WorkerId> unreached;
  for (auto link = unreached_.lower_bound({iteration, ClientId(), WorkerId()});
       link != unreached_.end() && std::get<IterationId>(link->first) == iteration; ++link) {
    if (link->second) unreached.insert(std::get<WorkerId>(link->first));
  }
  return unreached;
}

bool LinkMonitor::ReachesOthers(const SessionKey& key) const {
  const std::vector<LinkStatus> links = links_.Of(key);
  return links.size() == 1 ||
         std::ranges::any_of(links, [](const LinkStatus& link) { return link.counts.open; });
}

static bool HasOtherReaders(const protocol::IterationRecord& record, ClientId but) {
  return std::ranges::any_of(record.readers, [&](const protocol::ReaderRecord& reader) {
    return reader.client != but && reader.reads();
  });
}

void LinkMonitor::MoveFromUnreached(Transaction& txn, PartitionPlacer& placer, absl::Time now) {
  const std::map<Link, absl::Time> down = down_;
  for (const auto& [link, since] : down) {
    const auto& [id, client, worker] = link;
    const SessionKey session{id, client};
    const IterationState* iteration = state_.FindIteration(id);
    if (iteration == nullptr || !state_.GoesOn(*iteration) || iteration->record.closed) {
      down_.erase(link);
      continue;
    }
    if (now - since < options_.unreached_timeout || !shared_.workers.contains(worker) ||
        unreached_.contains(link)) {
      continue;
    }
    // Nothing is known about the links of a silent reader.
    if (liveness_.SilenceOf(session, now) > 3 * options_.heartbeat_interval) continue;
    // Elements in doubt on the link go to no reader until their partition is placed again, and
    // other readers wait for them. If there are other readers, the partition is therefore placed
    // again, even if this reader is at fault and even if no other worker exists.
    const bool others = iteration->record.shared() && HasOtherReaders(iteration->record, client);
    const bool avoids =
        ReachesOthers(session) &&
        std::ranges::any_of(placer.UsableWorkers(*iteration),
                            [&, worker = worker](WorkerId usable) { return usable != worker; });
    if (!avoids && !others) continue;
    unreached_.emplace(link, avoids);
    ++changes_;
    txn.Log("unreached", {{"worker", absl::StrCat(absl::Hex(worker.value()))},
                          {"client", absl::StrCat(absl::Hex(client.value()))},
                          {"iteration", absl::StrCat(id.value())},
                          {"for", absl::FormatDuration(now - since)}});
    placer.RelieveAllOn(txn, *iteration, worker, PartitionKey());
  }
}

}  // namespace penstock::control
