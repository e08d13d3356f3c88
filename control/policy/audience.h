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

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
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

// Counts the partitions that serve each reader, and is brought up to date at the cost of what has
// changed. A value without locks.
class AudienceCounts {
 public:
  // The partitions that have not ended, or those that have. Excludes those that wait for a worker.
  struct Tally {
    int64_t counted = 0;          // the number of partitions
    int64_t serve_all = 0;        // that serve all readers
    std::vector<int64_t> served;  // by the position of a reader: further partitions; missing: 0
    int64_t Of(size_t reader) const;
    void Add(const std::optional<IndexSet>& audience, int64_t more);
  };
  // An assigned partition that does not serve all readers; for others, the worker is none.
  struct Assigned {
    WorkerId worker;
    double highest_rank = 0;  // up to this rank, a reader is among the kFewestReaders of its worker
    bool ended = false;
    friend bool operator==(const Assigned&, const Assigned&) = default;
  };

  // `changed`: the partitions that were raised, were assigned, got readers or have ended since the
  // last call. Finds opened partitions, and those that wait for answers, by itself.
  void Update(const protocol::IterationRecord& record, const protocol::IterationContext& context,
              absl::Span<const PartitionId> changed);

  const Tally& Of(bool ended) const { return tallies_[ended]; }
  const std::vector<Assigned>& assigned() const { return assigned_; }  // [0] is partition 1

  // Compares what is counted.
  friend bool operator==(const AudienceCounts& a, const AudienceCounts& b) {
    return a.partitions_ == b.partitions_ && a.assigned_ == b.assigned_ &&
           a.collecting_ == b.collecting_;
  }

 private:
  struct Counted {
    bool counts = false;
    bool ended = false;
    std::optional<IndexSet> audience;
    friend bool operator==(const Counted&, const Counted&) = default;
  };
  void Count(const protocol::IterationRecord& record, const protocol::IterationContext& context,
             PartitionId id, bool waits_for_worker);

  std::array<Tally, 2> tallies_;     // [1]: of partitions that have ended
  std::vector<Counted> partitions_;  // as they were counted
  std::vector<Assigned> assigned_;
  std::set<PartitionId> collecting_;
};
// As above. `counts`: of the record, up to date.
MoreReaders ReadersToAdd(const protocol::IterationRecord& record, const AudienceCounts& counts,
                         const LinkRule& rule);

// Says how many of the workers with partitions the reader reads, and why: "all 12", "66 of 1000
// (max_links 64)", or "all 1000 (static shards)" if they are more than max_links.
std::string DescribeLinks(const State& state, const IterationState& iteration, size_t reader,
                          int64_t max_links);

}  // namespace penstock::control
