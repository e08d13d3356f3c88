// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/link_monitor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/partition_placer.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {
namespace {

// Returns whether `link`, an iterator of `links`, points to a link of the session.
template <class Links>
bool IsOf(const SessionKey& key, typename Links::const_iterator link, const Links& links) {
  return link != links.end() && std::get<IterationId>(link->first) == key.first &&
         std::get<ClientId>(link->first) == key.second;
}

}  // namespace

void LinkMonitor::Begin(const SessionKey& key, Incarnation incarnation, uint64_t stream) {
  MutexLock lock(mu_);
  links_.Begin(key, incarnation, stream);
}

bool LinkMonitor::Heard(const SessionKey& key, uint64_t stream, ClientHeartbeat& heartbeat,
                        absl::Time now) {
  MutexLock lock(mu_);
  if (!links_.Heard(key, stream, heartbeat, now)) return false;
  const auto link_to = [&](WorkerId worker) { return Link{key.first, key.second, worker}; };
  if (!heartbeat.only_changed_links) {
    std::set<WorkerId> down;
    for (const LinkCounts& link : heartbeat.links)
      if (link.down) down.insert(link.worker);
    for (auto link = down_.lower_bound(link_to(WorkerId())); IsOf(key, link, down_);) {
      link = down.contains(std::get<WorkerId>(link->first)) ? std::next(link) : down_.erase(link);
    }
  }
  for (const WorkerId gone : heartbeat.gone_links) down_.erase(link_to(gone));
  for (const LinkCounts& link : heartbeat.links) {
    if (link.down && links_.Has(key, link.worker)) {
      down_.try_emplace(link_to(link.worker), now);
    } else {
      down_.erase(link_to(link.worker));
    }
    if (link.open) changes_ += unreached_.erase(link_to(link.worker));
  }
  return true;
}

void LinkMonitor::Forget(const SessionKey& key) {
  MutexLock lock(mu_);
  links_.Forget(key);
  const Link first{key.first, key.second, WorkerId()};
  for (auto link = down_.lower_bound(first); IsOf(key, link, down_);) link = down_.erase(link);
  for (auto link = unreached_.lower_bound(first); IsOf(key, link, unreached_); ++changes_)
    link = unreached_.erase(link);
}

void LinkMonitor::Forget(IterationId iteration) {
  MutexLock lock(mu_);
  changes_ += std::erase_if(unreached_, [&](const auto& entry) {
    return std::get<IterationId>(entry.first) == iteration;
  });
}

void LinkMonitor::OnStall(absl::Time now) {
  MutexLock lock(mu_);
  for (auto& [link, since] : down_) since = now;
}

std::vector<LinkStatus> LinkMonitor::Of(const SessionKey& key) const {
  MutexLock lock(mu_);
  return links_.Of(key);
}

size_t LinkMonitor::NumOf(const SessionKey& key) const {
  MutexLock lock(mu_);
  return links_.NumOf(key);
}

uint64_t LinkMonitor::changes() const {
  MutexLock lock(mu_);
  return changes_;
}

std::set<WorkerId> LinkMonitor::Unreached(IterationId iteration) const {
  MutexLock lock(mu_);
  std::set<WorkerId> unreached;
  for (auto link = unreached_.lower_bound({iteration, ClientId(), WorkerId()});
       link != unreached_.end() && std::get<IterationId>(link->first) == iteration; ++link) {
    if (link->second) unreached.insert(std::get<WorkerId>(link->first));
  }
  return unreached;
}

bool LinkMonitor::ReachesOthers(const SessionKey& key) const {
  const std::vector<LinkStatus> links = Of(key);
  return links.size() == 1 ||
         std::ranges::any_of(links, [](const LinkStatus& link) { return link.counts.open; });
}

static bool HasOtherReaders(const protocol::IterationRecord& record, ClientId but) {
  return std::ranges::any_of(record.readers, [&](const protocol::ReaderRecord& reader) {
    return reader.client != but && reader.reads();
  });
}

std::vector<std::pair<LinkMonitor::Link, absl::Time>> LinkMonitor::TakeLongDown(absl::Time now) {
  std::vector<std::pair<Link, absl::Time>> long_down;
  MutexLock lock(mu_);
  for (auto entry = down_.begin(); entry != down_.end();) {
    auto& [link, since] = *entry;
    const auto& [id, client, worker] = link;
    const IterationState* iteration = state_.FindIteration(id);
    if (iteration == nullptr || !state_.GoesOn(*iteration) || iteration->record.closed) {
      entry = down_.erase(entry);
      continue;
    }
    if (state_.placed.On(worker, id).empty()) since = now;
    if (now - since >= options_.unreached_timeout && !unreached_.contains(link))
      long_down.emplace_back(link, since);
    ++entry;
  }
  return long_down;
}

bool LinkMonitor::NoteUnreached(const Link& link, bool avoids) {
  MutexLock lock(mu_);
  if (!down_.contains(link)) return false;
  changes_ += unreached_.emplace(link, avoids).second;
  return true;
}

void LinkMonitor::MoveFromUnreached(Transaction& txn, PartitionPlacer& placer, absl::Time now) {
  for (const auto& [link, since] : TakeLongDown(now)) {
    const auto& [id, client, worker] = link;
    const SessionKey session{id, client};
    const IterationState* iteration = state_.FindIteration(id);
    if (iteration == nullptr || !state_.GoesOn(*iteration) || iteration->record.closed) continue;
    if (!shared_.workers.contains(worker)) continue;
    // Nothing is known about the links of a silent reader.
    if (liveness_.SilenceOf(session, now) > 3 * options_.heartbeat_interval) continue;
    // Elements in doubt on the link go to no reader until their partition is placed again, and
    // other readers wait for them. If there are other readers, the partition is therefore placed
    // again, even if this reader is at fault and even if no other worker exists.
    const bool others = iteration->record.shared() && HasOtherReaders(iteration->record, client);
    const bool avoids =
        ReachesOthers(session) &&
        std::ranges::any_of(placer.UsableFor(*iteration), [&, worker = worker](const auto& usable) {
          return usable.id != worker;
        });
    if (!avoids && !others) continue;
    if (!NoteUnreached(link, avoids)) continue;
    txn.Log("unreached", {{"worker", absl::StrCat(absl::Hex(worker.value()))},
                          {"client", absl::StrCat(absl::Hex(client.value()))},
                          {"iteration", absl::StrCat(id.value())},
                          {"for", absl::FormatDuration(now - since)}});
    placer.RelieveAllOn(txn, *iteration, worker, PartitionKey());
  }
}

}  // namespace penstock::control
