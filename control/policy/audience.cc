// SPDX-License-Identifier: Apache-2.0
#include "control/policy/audience.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "control/policy/mix.h"

namespace penstock::control {
namespace {

// Returns the rank of the pair, in [0, 1).
double RankOf(WorkerId worker, ClientId client) {
  return std::ldexp(static_cast<double>(Mix(Mix(worker.value()) ^ client.value()) >> 11), -53);
}

template <class Visit>
void ForEach(const IndexSet& positions, const Visit& visit) {
  for (const IndexSet::Interval& interval : positions.intervals())
    for (Index position = interval.begin; position < interval.end; ++position)
      visit(static_cast<size_t>(position));
}

// Finds the readers that need more partitions.
class Shares {
 public:
  Shares(const protocol::IterationRecord& record, const protocol::IterationContext& context,
         const LinkRule& rule)
      : record_(record), rule_(rule), share_(rule.share()), served_(record.readers.size()) {
    const std::vector<PartitionId> waiting = protocol::Assignable(record, context);
    const auto count = [&](bool ended) {
      for (size_t p = 0; p < record.partitions.size(); ++p) {
        const PartitionId id(p + 1);
        if (context.partitions[p].ended.has_value() == ended &&
            !std::ranges::binary_search(waiting, id))
          Count(id);
      }
    };
    count(/*ended=*/false);
    all_ended_ = more_.counted == 0;
    if (all_ended_) count(/*ended=*/true);
  }

  MoreReaders Find() && {
    const IndexSet reading = ReadingPositions(record_);
    if (all_ended_) more_.counted = 0;
    const int64_t enough = EnoughFor(rule_, reading.size(), more_.counted);
    more_.spare = more_.counted;
    ForEach(reading, [&](size_t reader) {
      int64_t its = served_[reader] + served_all_;
      if (its < enough) its += AddWhereChosen(reader);
      if (its < enough) its += AddToNearest(reader);
      more_.spare = std::clamp<int64_t>(its - enough, 0, more_.spare);
    });
    return std::move(more_);
  }

 private:
  // A partition that waits for answers counts for the readers that it had. One that waits for a
  // worker may do so for long, and counts for none.
  void Count(PartitionId id) {
    const protocol::PartitionRecord& partition = record_.partition(id);
    if (partition.audience) {
      ForEach(*partition.audience, [&](size_t reader) { ++served_[reader]; });
    } else if (!partition.collecting()) {
      ++served_all_;
    }
    if (partition.audience || !partition.collecting()) ++more_.counted;
    if (partition.audience && !partition.collecting()) assigned_.push_back(id);
  }

  bool Add(PartitionId partition, size_t reader) {
    if (record_.partition(partition).MayServe(reader)) return false;
    IndexSet& added = more_.of[partition];
    if (added.Contains(static_cast<Index>(reader))) return false;
    added.Add(static_cast<Index>(reader));
    return true;
  }

  // Returns whether ChooseAudience() would choose the reader among these and itself.
  bool IsChosen(size_t reader, WorkerId worker, const IndexSet& among) const {
    const double rank = RankOf(worker, record_.readers[reader].client);
    if (rank < share_) return true;
    size_t before = 0;
    ForEach(among, [&](size_t other) {
      before += RankOf(worker, record_.readers[other].client) < rank ? 1 : 0;
    });
    return before < kFewestReaders;
  }

  int64_t AddWhereChosen(size_t reader) {
    int64_t added = 0;
    for (const PartitionId id : assigned_) {
      const protocol::PartitionRecord& partition = record_.partition(id);
      if (IsChosen(reader, partition.worker, *partition.audience)) added += Add(id, reader) ? 1 : 0;
    }
    return added;
  }

  int64_t AddToNearest(size_t reader) {
    struct Near {
      double rank;
      WorkerId worker;
      PartitionId partition;
      auto operator<=>(const Near&) const = default;
    };
    std::vector<Near> nearest;
    for (const PartitionId id : assigned_) {
      const WorkerId worker = record_.partition(id).worker;
      nearest.push_back({RankOf(worker, record_.readers[reader].client), worker, id});
    }
    std::ranges::sort(nearest);
    int64_t added = 0;
    int64_t workers = 0;
    for (size_t i = 0; i < nearest.size(); ++i) {
      workers += i == 0 || nearest[i].worker != nearest[i - 1].worker ? 1 : 0;
      if (!rule_.reads_all() && workers > rule_.max_links) break;
      added += Add(nearest[i].partition, reader) ? 1 : 0;
    }
    return added;
  }

  const protocol::IterationRecord& record_;
  const LinkRule& rule_;
  const double share_;
  bool all_ended_ = false;             // the counted partitions are those that have ended
  std::vector<int64_t> served_;        // by position: the partitions that serve the reader
  int64_t served_all_ = 0;             // partitions that serve all readers
  std::vector<PartitionId> assigned_;  // of those: with an audience
  MoreReaders more_;
};

}  // namespace

double LinkRule::share() const {
  return reads_all() ? 1 : static_cast<double>(max_links) / static_cast<double>(workers);
}

int64_t EnoughFor(const LinkRule& rule, int64_t readers, int64_t counted) {
  const double fewest =
      static_cast<double>(kFewestReaders) / static_cast<double>(std::max<int64_t>(readers, 1));
  const double share = std::min(std::max(rule.share(), fewest), 1.0);
  return std::max<int64_t>(1, std::llround(share * static_cast<double>(counted) / 4));
}

LinkRule LinkRuleOf(const State& state, const IterationState& iteration, int64_t usable,
                    bool any_reader, int64_t max_links) {
  const protocol::IterationRecord& record = iteration.record;
  const bool any_partition = record.shared() && !record.at_least_once &&
                             iteration.division.count == 0 &&
                             !state.jobs.at(iteration.job).terms.deterministic;
  const auto partitions = static_cast<int64_t>(record.partitions.size());
  const int64_t workers = std::max(usable, state.placed.WorkersOf(iteration.id));
  return {std::min(workers, partitions), any_reader && any_partition ? max_links : 0};
}

IndexSet ReadingPositions(const protocol::IterationRecord& record) {
  IndexSet positions;
  for (size_t r = 0; r < record.readers.size(); ++r)
    if (record.readers[r].reads()) positions.Add(static_cast<Index>(r));
  return positions;
}

IndexSet ChooseAudience(const protocol::IterationRecord& record, WorkerId worker,
                        const LinkRule& rule, const IndexSet& among) {
  if (rule.reads_all()) return among;
  const double share = rule.share();
  IndexSet chosen;
  std::vector<std::pair<double, Index>> others;  // rank, position
  ForEach(among, [&](size_t reader) {
    const double rank = RankOf(worker, record.readers[reader].client);
    if (rank < share) {
      chosen.Add(static_cast<Index>(reader));
    } else {
      others.push_back({rank, static_cast<Index>(reader)});
    }
  });
  const auto there = static_cast<size_t>(chosen.size());
  const size_t missing = std::min(others.size(), kFewestReaders - std::min(kFewestReaders, there));
  std::partial_sort(others.begin(), others.begin() + static_cast<ptrdiff_t>(missing), others.end());
  for (size_t i = 0; i < missing; ++i) chosen.Add(others[i].second);
  return chosen;
}

MoreReaders ReadersToAdd(const protocol::IterationRecord& record,
                         const protocol::IterationContext& context, const LinkRule& rule) {
  return Shares(record, context, rule).Find();
}

std::string DescribeLinks(const protocol::IterationRecord& record, size_t reader,
                          int64_t max_links) {
  absl::flat_hash_map<WorkerId, bool> reads;
  for (const protocol::PartitionRecord& partition : record.partitions)
    if (!partition.collecting()) reads[partition.worker] |= partition.MayServe(reader);
  const auto its = std::ranges::count_if(reads, [](const auto& entry) { return entry.second; });
  if (static_cast<size_t>(its) == reads.size()) return absl::StrCat("all ", reads.size());
  return absl::StrCat(its, " of ", reads.size(), " (max_links ", max_links, ")");
}

}  // namespace penstock::control
