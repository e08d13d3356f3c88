// SPDX-License-Identifier: Apache-2.0
#include "control/policy/audience.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "control/policy/mix.h"
#include "control/protocol/each_position.h"
#include "control/state/format.h"

namespace penstock::control {

using protocol::ForEach;

namespace {

// Returns the rank of the pair, in [0, 1).
double RankOf(WorkerId worker, ClientId client) {
  return std::ldexp(static_cast<double>(Mix(Mix(worker.value()) ^ client.value()) >> 11), -53);
}

// Finds the readers that need more partitions.
class Shares {
 public:
  Shares(const protocol::IterationRecord& record, const AudienceCounts& counts,
         const LinkRule& rule)
      : record_(record),
        counts_(counts),
        rule_(rule),
        share_(rule.share()),
        all_ended_(counts.Of(/*ended=*/false).counted == 0),
        tally_(counts.Of(all_ended_)) {}

  MoreReaders Find() && {
    const IndexSet reading = ReadingPositions(record_);
    more_.counted = all_ended_ ? 0 : tally_.counted;
    const int64_t enough = EnoughFor(rule_, reading.size(), more_.counted);
    more_.spare = more_.counted;
    ForEach(reading, [&](size_t reader) {
      int64_t its = tally_.Of(reader);
      if (its < enough) its += AddWhereChosen(reader);
      if (its < enough) its += AddToNearest(reader);
      more_.spare = std::clamp<int64_t>(its - enough, 0, more_.spare);
    });
    return std::move(more_);
  }

 private:
  template <class Visit>
  void ForEachAssigned(const Visit& visit) const {
    const auto& assigned = counts_.assigned();
    for (size_t p = 0; p < assigned.size(); ++p)
      if (assigned[p].worker && assigned[p].ended == all_ended_)
        visit(PartitionId(p + 1), assigned[p]);
  }

  bool Add(PartitionId partition, size_t reader) {
    if (record_.partition(partition).MayServe(reader)) return false;
    IndexSet& added = more_.of[partition];
    if (added.Contains(static_cast<Index>(reader))) return false;
    added.Add(static_cast<Index>(reader));
    return true;
  }

  // Adds the reader where ChooseAudience() would choose it among the audience and itself.
  int64_t AddWhereChosen(size_t reader) {
    int64_t added = 0;
    ForEachAssigned([&](PartitionId id, const AudienceCounts::Assigned& its) {
      const double rank = RankOf(its.worker, record_.readers[reader].client);
      if (rank < share_ || rank <= its.highest_rank) added += Add(id, reader) ? 1 : 0;
    });
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
    ForEachAssigned([&](PartitionId id, const AudienceCounts::Assigned& its) {
      nearest.push_back({RankOf(its.worker, record_.readers[reader].client), its.worker, id});
    });
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
  const AudienceCounts& counts_;
  const LinkRule& rule_;
  const double share_;
  const bool all_ended_;  // then the partitions that have ended are looked at
  const AudienceCounts::Tally& tally_;
  MoreReaders more_;
};

// Returns the rank up to which a reader would be among the kFewestReaders of lowest rank.
double HighestRank(const protocol::IterationRecord& record, WorkerId worker,
                   const IndexSet& audience) {
  std::array<double, kFewestReaders> lowest;
  lowest.fill(std::numeric_limits<double>::infinity());
  ForEach(audience, [&](size_t reader) {
    const double rank = RankOf(worker, record.readers[reader].client);
    if (rank >= lowest.back()) return;
    lowest.back() = rank;
    std::ranges::sort(lowest);
  });
  return lowest.back();
}

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
  AudienceCounts counts;
  counts.Update(record, context, {});
  return ReadersToAdd(record, counts, rule);
}

MoreReaders ReadersToAdd(const protocol::IterationRecord& record, const AudienceCounts& counts,
                         const LinkRule& rule) {
  return Shares(record, counts, rule).Find();
}

int64_t AudienceCounts::Tally::Of(size_t reader) const {
  return serve_all + (reader < served.size() ? served[reader] : 0);
}

void AudienceCounts::Tally::Add(const std::optional<IndexSet>& audience, int64_t more) {
  counted += more;
  if (!audience) {
    serve_all += more;
    return;
  }
  served.resize(std::max(served.size(), static_cast<size_t>(audience->end())));
  ForEach(*audience, [&](size_t reader) { served[reader] += more; });
}

void AudienceCounts::Update(const protocol::IterationRecord& record,
                            const protocol::IterationContext& context,
                            absl::Span<const PartitionId> changed) {
  const std::vector<PartitionId> waiting = protocol::Assignable(record, context);
  const auto count = [&](PartitionId id) {
    Count(record, context, id, std::ranges::binary_search(waiting, id));
  };
  for (const PartitionId id : changed)
    if (id.value() <= partitions_.size()) count(id);
  for (const PartitionId id : std::vector(collecting_.begin(), collecting_.end())) count(id);
  for (size_t p = partitions_.size(); p < record.partitions.size(); ++p) {
    partitions_.emplace_back();
    assigned_.emplace_back();
    count(PartitionId(p + 1));
  }
}

// A partition that waits for answers counts for the readers that it had. One that waits for a
// worker may do so for long, and counts for none.
void AudienceCounts::Count(const protocol::IterationRecord& record,
                           const protocol::IterationContext& context, PartitionId id,
                           bool waits_for_worker) {
  const protocol::PartitionRecord& partition = record.partition(id);
  const size_t p = id.value() - 1;
  const bool counts = !waits_for_worker && (partition.audience || !partition.collecting());
  const Counted now{counts, context.partitions[p].ended.has_value(), partition.audience};
  Counted& before = partitions_[p];
  if (before.counts) tallies_[before.ended].Add(before.audience, -1);
  if (now.counts) tallies_[now.ended].Add(now.audience, 1);
  before = now;
  assigned_[p] = Assigned();
  if (partition.collecting()) {
    collecting_.insert(id);
    return;
  }
  collecting_.erase(id);
  if (!partition.audience) return;
  assigned_[p] = {partition.worker, HighestRank(record, partition.worker, *partition.audience),
                  now.ended};
}

// Returns why a reader reads more than max_links workers, which is all of them.
static const char* WhyAll(const State& state, const IterationState& iteration) {
  const protocol::IterationRecord& record = iteration.record;
  const JobTerms& terms = state.jobs.at(iteration.job).terms;
  if (record.coordinated()) return "coordinated reads";
  if (terms.deterministic) return "a fixed order";
  if (iteration.division.count > 0) return "static shards";
  if (!record.shared()) return "each trainer reads all elements";
  if (record.at_least_once) return "visitation at_least_once";
  if (state.format < kAudiencesFormat) return "the upgrade is not finalised";
  if (terms.target_workers == TargetWorkers::kLocal) return "local workers";
  return "few trainers, partitions from before, or local workers";
}

std::string DescribeLinks(const State& state, const IterationState& iteration, size_t reader,
                          int64_t max_links) {
  absl::flat_hash_map<WorkerId, bool> reads;
  for (const protocol::PartitionRecord& partition : iteration.record.partitions)
    if (!partition.collecting()) reads[partition.worker] |= partition.MayServe(reader);
  const auto of = static_cast<int64_t>(reads.size());
  const auto its = std::ranges::count_if(reads, [](const auto& entry) { return entry.second; });
  const std::string bound = max_links == 0 || of <= max_links
                                ? "max_links was lower"
                                : absl::StrCat("max_links ", max_links);
  if (its < of) return absl::StrCat(its, " of ", of, " (", bound, ")");
  const bool has_reason = max_links > 0 && of > max_links;
  return absl::StrCat("all ", of,
                      has_reason ? absl::StrCat(" (", WhyAll(state, iteration), ")") : "");
}

}  // namespace penstock::control
