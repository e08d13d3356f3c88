// SPDX-License-Identifier: Apache-2.0
// Decides which readers a partition serves (docs/exactly_once.md, rule 32). If an iteration has
// more workers than max_links, each reader reads some of them only, so the number of links grows
// with the number of readers, and not with readers times workers. Pure functions.
//
// Each pair of a worker and a reader has a rank, which is a hash of their ids (rendezvous hashing).
// A worker serves the readers whose rank is among the lowest max_links / workers of all ranks, but
// at least the kFewestReaders readers of lowest rank. So:
// - A reader reads about max_links workers. If there are fewer than kFewestReaders * workers /
//   max_links readers, it reads more, because each worker needs readers.
// - The choice is the same after a restart of the dispatcher. If a reader joins or leaves, or a
//   worker comes or goes, the choice changes only for pairs with it and, by the ratio above, for
//   few others.
// - The load is balanced by the hash: each reader reads max_links workers with a standard deviation
//   of at most the square root of max_links. ReadersToAdd() adds a reader to further partitions
//   once it has less than a quarter of its share, so no reader is left without partitions.
//
// Every partition serves all readers where each reader needs each partition, or may not read each
// worker: in coordinated reads, in a fixed order, with static shards or a cross-trainer cache, with
// visitation kAtLeastOnce, and where readers read local workers only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/index_set.h"
#include "control/state/state.h"
#include "penstock/ids.h"

namespace penstock::control {

inline constexpr int64_t kMaxLinks = 64;

// A worker has at least this many readers, so that a slow reader does not stop it.
inline constexpr size_t kFewestReaders = 2;

// How the readers of an iteration share its workers.
struct LinkRule {
  int64_t workers = 0;    // that have partitions of the iteration, or may get some
  int64_t max_links = 0;  // of a reader; 0: no bound
  // Returns whether each reader reads all workers.
  bool reads_all() const { return max_links == 0 || workers <= max_links; }
  // Returns the rank below which a worker serves each reader.
  double share() const;
};

// `usable`: the number of workers that may get partitions of the iteration. A worker that is not
// connected, as after a restart of the dispatcher, counts as long as it has partitions.
// `any_reader`: each reader may read each of them.
LinkRule LinkRuleOf(const State& state, const IterationState& iteration, int64_t usable,
                    bool any_reader, int64_t max_links);

// The positions of the readers that read.
IndexSet ReadingPositions(const protocol::IterationRecord& record);

// Returns the positions of the readers that the worker's partitions serve, if there are no other
// readers than those at the positions `among`. Empty only if `among` is empty.
IndexSet ChooseAudience(const protocol::IterationRecord& record, WorkerId worker,
                        const LinkRule& rule, const IndexSet& among);

// Returns a quarter of a reader's share of `counted` partitions, but at least one partition.
// `readers`: how many read.
int64_t EnoughFor(const LinkRule& rule, int64_t readers, int64_t counted);

// `of`: the positions of the readers to add, by partition. `counted`: the number of partitions that
// have not ended, without those that wait for a worker. `spare`: the number of further partitions
// that may be assigned, end or be placed again before a reader needs more. It is 0 if some reader
// still has too few.
struct MoreReaders {
  std::map<PartitionId, IndexSet> of;
  int64_t counted = 0;
  int64_t spare = 0;
};
// Returns the readers to add to the audiences of assigned partitions, because they have less than a
// quarter of their share of the partitions that have not ended: they have joined, their workers are
// lost, or most partitions have ended. Such a reader is added to the partitions that
// ChooseAudience() would give it. If these are too few, it is also added to the partitions of the
// max_links workers of lowest rank that have any. If all partitions have ended, a reader needs one
// of them: a client that no worker serves would give up while others hold elements.
MoreReaders ReadersToAdd(const protocol::IterationRecord& record,
                         const protocol::IterationContext& context, const LinkRule& rule);

// Says how many of the workers with partitions the reader reads, and why: "all 12", or "66 of 1000
// (max_links 64)".
std::string DescribeLinks(const protocol::IterationRecord& record, size_t reader,
                          int64_t max_links);

}  // namespace penstock::control
