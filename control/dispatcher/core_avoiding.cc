// SPDX-License-Identifier: Apache-2.0
// The workers that partitions avoid: those that a reader cannot reach, and others if a partition
// may be what ends its workers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/placing.h"

namespace penstock::control {
namespace {

// After kDeathsAmongOthers deaths of its workers without progress, a partition gets a worker for
// itself. After kDeathsAlone deaths of such workers its iteration fails.
constexpr int kDeathsAmongOthers = 2;
constexpr int kDeathsAlone = 2;
// Deaths in all after which the iteration fails, if no worker can be spared for the partition.
constexpr int kMostDeaths = 8;
// If no worker can be spared, partitions whose workers died are tried on a worker one at a time,
// each until it makes progress or for this long. So partitions that only died along with others get
// away from the one that kills.
constexpr absl::Duration kTrial = absl::Seconds(5);

}  // namespace

// --- Partitions whose workers die ----------------------------------------------------

void Core::NoteDeath(Transaction& txn, WorkerId worker) {
  const auto reserved = alone_.find(worker);
  const PartitionKey alone = reserved == alone_.end() ? PartitionKey() : reserved->second;
  if (reserved != alone_.end()) alone_.erase(reserved);
  for (const auto& [id, iteration] : state_.iterations) {
    if (!GoesOn(iteration) || iteration.record.closed) continue;
    const protocol::IterationContext& context = txn.GetContext(id);
    for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
      const protocol::PartitionRecord& partition = iteration.record.partitions[p];
      if (partition.worker != worker || context.partitions[p].ended) continue;
      const PartitionKey key{id, PartitionId(p + 1)};
      Failures& failures = failures_[key];
      if (key == alone && failures.deaths >= kDeathsAmongOthers) ++failures.deaths_alone;
      ++failures.deaths;
      if (failures.deaths_alone < kDeathsAlone && failures.deaths < kMostDeaths) continue;
      const Index index = partition.bookmarks.empty() ? 0 : partition.bookmarks.back().index;
      txn.Log("partition_kills", {{"iteration", absl::StrCat(id.value())},
                                  {"partition", absl::StrCat(p + 1)},
                                  {"index", absl::StrCat(index)}});
      FailIteration(
          txn, iteration,
          absl::InternalError(absl::StrCat(
              "partition ", p + 1, " ended ", failures.deaths, " workers, ", failures.deaths_alone,
              " of them with nothing else on them, and got no further than its bookmark at index ",
              index,
              ": an element there or behind it ends the process that makes it; see the last lines "
              "of those workers, and give them more memory, or mend what they run")));
      break;
    }
  }
}

bool Core::RunsAlone(const PartitionKey& key) const {
  const auto failures = failures_.find(key);
  if (failures == failures_.end() || failures->second.deaths < kDeathsAmongOthers) return false;
  const IterationState* iteration = state_.FindIteration(key.iteration);
  if (iteration == nullptr || !GoesOn(*iteration) || iteration->record.closed) return false;
  const auto context = contexts_.find(key.iteration);
  return context == contexts_.end() || !context->second.partitions[key.partition.value() - 1].ended;
}

bool Core::IsReserved(WorkerId worker) const {
  const auto reserved = alone_.find(worker);
  return reserved != alone_.end() && RunsAlone(reserved->second);
}

WorkerId Core::ReservedFor(const PartitionKey& key) const {
  if (alone_.empty() || !RunsAlone(key)) return WorkerId();
  for (const auto& [worker, its] : alone_) {
    const WorkerRecord* record = state_.FindWorker(worker);
    if (its == key && workers_.contains(worker) && record != nullptr && !record->draining)
      return worker;
  }
  return WorkerId();
}

void Core::Reserve(Transaction& txn, const IterationState& iteration) {
  if (failures_.empty()) return;
  const JobTerms& terms = state_.jobs.at(iteration.job).terms;
  if (iteration.division.count > 0 && terms.target_workers == TargetWorkers::kLocal) return;
  for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
    const PartitionKey key{iteration.id, PartitionId(p + 1)};
    if (!iteration.record.partitions[p].collecting() || !RunsAlone(key) || ReservedFor(key))
      continue;
    const std::vector<WorkerId> usable = UsableWorkers(iteration);
    if (usable.size() < 2) return;  // the others need one
    const PartitionCounts counts(state_, iteration, txn.GetContext(iteration.id));
    const WorkerId worker =
        *std::ranges::min_element(usable, {}, [&](WorkerId its) { return counts.OfAll(its); });
    alone_[worker] = key;
    txn.Log("runs_alone", {{"iteration", absl::StrCat(iteration.id.value())},
                           {"partition", absl::StrCat(p + 1)},
                           {"worker", absl::StrCat(absl::Hex(worker.value()))}});
    for (const auto& [id, other] : state_.iterations) {
      if (GoesOn(other) && !other.record.closed) RelieveAllOn(txn, other, worker, key);
    }
  }
}

void Core::RelieveAllOn(Transaction& txn, const IterationState& iteration, WorkerId worker,
                        const PartitionKey& but) {
  for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
    const PartitionKey key{iteration.id, PartitionId(p + 1)};
    if (iteration.record.partitions[p].worker != worker || key == but) continue;
    txn.Settle(iteration.id,
               protocol::OnRelieve(iteration.record, txn.GetContext(iteration.id), key.partition));
  }
}

bool Core::IsTrying(WorkerId worker) const {
  const auto trial = trials_.find(worker);
  if (trial == trials_.end()) return false;
  const auto& [key, since] = trial->second;
  return RunsAlone(key) && options_.now() < since + kTrial &&
         state_.FindIteration(key.iteration)->record.partition(key.partition).worker == worker;
}

std::vector<WorkerId> Core::WorkersToTry(const PartitionKey& key,
                                         std::vector<WorkerId> usable) const {
  if (RunsAlone(key))
    std::erase_if(usable, [&](WorkerId its) REQUIRES(mu_) { return IsTrying(its); });
  return usable;
}

void Core::EndReservations(Transaction& txn) {
  const size_t ended =
      std::erase_if(alone_,
                    [&](const auto& entry) REQUIRES(mu_) { return !RunsAlone(entry.second); }) +
      std::erase_if(trials_,
                    [&](const auto& entry) REQUIRES(mu_) { return !IsTrying(entry.first); });
  if (ended == 0) return;
  // Other partitions may have waited for a place.
  for (const auto& [id, iteration] : state_.iterations) {
    if (!GoesOn(iteration) || iteration.record.closed) continue;
    txn.Settle(id, {});
    txn.Balance(id);
  }
}

// --- Workers that a reader cannot reach ------------------------------------------------

void Core::NoteLinks(const ClientPeer& peer, const std::vector<LinkCounts>& links, absl::Time now) {
  for (const LinkCounts& link : links) {
    const Link key{peer.iteration, peer.client, link.worker};
    const auto& partitions = state_.iterations.at(peer.iteration).record.partitions;
    const bool down = link.down && std::ranges::any_of(partitions, [&](const auto& partition) {
                        return partition.worker == link.worker;
                      });
    if (down) {
      down_.try_emplace(key, now);
    } else if (!down_.empty()) {
      down_.erase(key);
    }
    if (link.open && !unreached_.empty()) unreached_.erase(key);
  }
}

bool Core::ReachesOthers(const SessionKey& key) const {
  const std::vector<LinkStatus> links = links_.Of(key);
  return links.size() == 1 ||
         std::ranges::any_of(links, [](const LinkStatus& link) { return link.counts.open; });
}

bool Core::HasOtherWorkers(const IterationState& iteration, WorkerId but) const {
  return std::ranges::any_of(UsableWorkers(iteration),
                             [&](WorkerId worker) { return worker != but; });
}

static bool HasOtherReaders(const protocol::IterationRecord& record, ClientId but) {
  return std::ranges::any_of(record.readers, [&](const protocol::ReaderRecord& reader) {
    return reader.client != but && reader.reads();
  });
}

void Core::MoveFromUnreached(Transaction& txn, absl::Time now) {
  const std::map<Link, absl::Time> down = down_;
  for (const auto& [link, since] : down) {
    const auto& [id, client, worker] = link;
    const SessionKey session{id, client};
    const IterationState* iteration = state_.FindIteration(id);
    if (iteration == nullptr || !GoesOn(*iteration) || iteration->record.closed) {
      down_.erase(link);
      continue;
    }
    if (now - since < options_.unreached_timeout || !workers_.contains(worker)) continue;
    // Nothing is known about the links of a silent reader.
    if (client_leases_.SilentFor(session, now) > 3 * options_.heartbeat_interval) continue;
    // Elements in doubt on the link go to no reader until their partition is placed again. Other
    // readers wait for them, even if the fault is the reader's own or there is no other worker.
    const bool others = iteration->record.shared() && HasOtherReaders(iteration->record, client);
    const bool avoids = ReachesOthers(session) && HasOtherWorkers(*iteration, worker);
    if ((!avoids && !others) || !unreached_.try_emplace(link, avoids).second) continue;
    txn.Log("unreached", {{"worker", absl::StrCat(absl::Hex(worker.value()))},
                          {"client", absl::StrCat(absl::Hex(client.value()))},
                          {"iteration", absl::StrCat(id.value())},
                          {"for", absl::FormatDuration(now - since)}});
    RelieveAllOn(txn, *iteration, worker, PartitionKey());
  }
}

}  // namespace penstock::control
