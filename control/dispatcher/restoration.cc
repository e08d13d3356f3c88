// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/restoration.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/sharding.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// Returns the bookmarks with which a restore may begin: the oldest, the newest at or below
// `committed_below`, and the newest at or below `received_below`.
std::vector<SavedRepetition::Position> BookmarksOf(const protocol::PartitionRecord& partition,
                                                   Index committed_below, Index received_below) {
  std::set<Index> wanted;
  if (!partition.bookmarks.empty()) wanted.insert(partition.bookmarks.front().index);
  for (Index below : {committed_below, received_below}) {
    for (auto it = partition.bookmarks.rbegin(); it != partition.bookmarks.rend(); ++it) {
      if (it->index > below) continue;
      wanted.insert(it->index);
      break;
    }
  }
  std::vector<SavedRepetition::Position> positions;
  for (const protocol::Bookmark& bookmark : partition.bookmarks) {
    if (wanted.contains(bookmark.index)) positions.push_back({bookmark.index, bookmark.bytes});
  }
  return positions;
}

// Returns the index below which every active reader has received everything, according to the
// readers' reports.
Index ReceivedBelow(const protocol::IterationRecord& record,
                    const protocol::IterationContext& context, const protocol::Positions& positions,
                    size_t p) {
  const protocol::AckStates& acks = context.partitions[p].acks;
  if (!record.coordinated()) {
    protocol::Together received(record, positions, PartitionId(p + 1));
    for (size_t r = 0; r < record.readers.size(); ++r) {
      received.Add(record.readers[r],
                   protocol::Of(record.readers[r].committed, PartitionId(p + 1)));
      received.Add(record.readers[r], acks.Of(r).reported);
    }
    return std::move(received).Indices().FirstMissing();
  }
  std::optional<int64_t> rows;
  for (size_t r = 0; r < record.readers.size(); ++r) {
    if (!record.readers[r].reads() || record.readers[r].consumer < 0) continue;
    const int64_t its = acks.Of(r).reported.FirstMissing();
    rows = std::min(rows.value_or(its), its);
  }
  return rows.value_or(0) * record.rounds.consumers;
}

SavedRepetition::Reader ReaderOf(const protocol::ReaderRecord& from,
                                 const std::vector<SavedRepetition::Partition>& partitions,
                                 const std::optional<protocol::Positions>& positions) {
  SavedRepetition::Reader reader{.client = from.client,
                                 .gone = from.status != protocol::ReaderStatus::kActive,
                                 .consumer = from.consumer};
  reader.committed_count = from.mark.count;
  for (size_t p = 0; p < partitions.size(); ++p) {
    IndexSet committed = protocol::Of(from.committed, PartitionId(p + 1));
    reader.committed_count += committed.size();
    IndexSet known = IndexSet::Of(0, partitions[p].committed_below);
    if (positions && from.consumer >= 0) {
      known = positions->RowsIn(known, PartitionId(p + 1), from.consumer);
    }
    committed.Remove(known);
    if (!committed.empty()) reader.committed.push_back({PartitionId(p + 1), std::move(committed)});
  }
  return reader;
}

// Adds the retired runs of passes that are not over. The restored job must know how many splits
// these runs had, or it would give out the splits again.
void AddRetired(const IterationState& iteration,
                std::vector<SavedRepetition::Partition>& partitions) {
  for (const auto& [key, handed_out] : iteration.handed_out) {
    int64_t retired = handed_out;
    std::optional<size_t> of;
    for (size_t p = 0; p < partitions.size(); ++p) {
      const PartitionSplits& splits = iteration.splits[p];
      if (const auto run = splits.given.find(key); run != splits.given.end()) {
        retired -= run->second.first_ordinal + static_cast<int64_t>(run->second.numbers.size());
        continue;
      }
      const auto below = splits.retired.find(key.provider);
      if (below != splits.retired.end() && key.repetition < below->second) of = p;
    }
    if (retired > 0 && of) {
      partitions[*of].given.push_back(
          {.provider = key.provider, .repetition = key.repetition, .first_ordinal = retired});
    }
  }
}

// Returns the id of the reader to which the history in the states belongs. No client has this id,
// because client ids are random.
ClientId ReaderBefore(const Restoration& restoration) {
  return ClientId(std::max<uint64_t>(restoration.name, 1));
}

absl::Status Wrong(const Restoration::Repetition& repetition, size_t partition,
                   std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the states to restore, partition ", partition + 1,
                                                 " of repetition ", repetition.number, ": ",
                                                 std::string(what)));
}

absl::Status CheckDivision(const Restoration::Repetition& repetition, const JobTerms& terms) {
  const Division& division = repetition.division;
  const bool shards_are_there =
      std::all_of(division.shards.begin(), division.shards.end(),
                  [&](int64_t shard) { return shard >= 0 && shard < division.count; });
  const bool of_the_mode =
      division.mode == terms.mode ||
      (terms.mode == ShardingPolicy::kFileOrData &&
       (division.mode == ShardingPolicy::kFile || division.mode == ShardingPolicy::kData));
  if (!IsStatic(terms.mode) ? division.count == 0 && division.shards.empty()
                            : repetition.partitions.empty() ||
                                  (of_the_mode && shards_are_there &&
                                   division.shards.size() == repetition.partitions.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the states to restore have ", division.shards.size(), " of ", division.count,
                   " shards in mode ", ToText(division.mode), " in repetition ", repetition.number,
                   "; they cannot begin a job in mode ", ToText(terms.mode)));
}

}  // namespace

absl::Status CheckRestoration(const Restoration& restoration, const DatasetSummary& dataset,
                              const JobTerms& terms) {
  int64_t after = -1;
  for (const Restoration::Repetition& repetition : restoration.repetitions) {
    if (repetition.number <= after) {
      return absl::InvalidArgumentError("the states to restore name repetitions out of order");
    }
    after = repetition.number;
    const auto partitions = static_cast<int64_t>(repetition.partitions.size());
    if (terms.partitions > 0 && partitions > 0 && partitions != terms.partitions) {
      return absl::InvalidArgumentError(absl::StrCat("the states to restore have ", partitions,
                                                     " partitions, but the job has ",
                                                     terms.partitions));
    }
    RETURN_IF_ERROR(CheckDivision(repetition, terms));
    for (const auto& [provider, below] : repetition.passes_over) {
      if (static_cast<size_t>(provider) < dataset.plan.size()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the states to restore name source ", provider,
                       ", but the number of sources of the dataset is ", dataset.plan.size()));
    }
    std::set<std::pair<ProviderKey, int64_t>> given;
    std::map<ProviderKey, int64_t> counts;
    for (size_t p = 0; p < repetition.partitions.size(); ++p) {
      const Restoration::Partition& partition = repetition.partitions[p];
      if (partition.lead < 0) return Wrong(repetition, p, "a negative number of elements");
      if (terms.coordinated() && !partition.committed.empty()) {
        return Wrong(
            repetition, p,
            "elements that belong to no round; they come from a job without num_consumers");
      }
      Index last = -1;
      for (const SavedRepetition::Position& bookmark : partition.bookmarks) {
        if (bookmark.index <= last) return Wrong(repetition, p, "bookmarks are out of order");
        last = bookmark.index;
      }
      std::set<ProviderKey> runs;
      for (const SplitRun& run : partition.given) {
        const ProviderKey key{run.provider, run.repetition};
        if (run.provider < 0 || static_cast<size_t>(run.provider) >= dataset.plan.size()) {
          return Wrong(repetition, p, "splits of a source that the dataset does not have");
        }
        if (!runs.insert(key).second) return Wrong(repetition, p, "two runs of one source");
        const int64_t count = dataset.plan[static_cast<size_t>(run.provider)].count;
        int64_t& handed = counts[key];  // never above `count`
        const auto numbers = static_cast<int64_t>(run.numbers.size());
        if (run.first_ordinal < 0 || numbers > count - handed ||
            run.first_ordinal > count - handed - numbers) {
          return Wrong(repetition, p, "more splits than the source has; has it changed?");
        }
        handed += run.first_ordinal + numbers;
        for (int64_t number : run.numbers) {
          if (number < 0 || number >= count || !given.insert({key, number}).second) {
            return Wrong(repetition, p,
                         absl::StrCat("split ", number, " does not exist, or is given out twice"));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

bool BeganWith(const Restoration& restoration, const State& state, const JobRecord& job) {
  for (const Restoration::Repetition& repetition : restoration.repetitions) {
    if (repetition.partitions.empty()) continue;
    const IterationState* iteration = state.FindIteration(job.id, repetition.number);
    const std::optional<IterationState> past = state.FindPast(job.id, repetition.number);
    if (past.has_value()) iteration = &*past;
    return iteration != nullptr &&
           iteration->record.FindReader(ReaderBefore(restoration)).has_value();
  }
  return true;  // the states contain no elements, so any job could have begun with them
}

void Save(const IterationState& iteration, const protocol::IterationContext& context,
          SavedRepetition& saved) {
  const protocol::IterationRecord& record = iteration.record;
  saved.finished = record.finished;
  saved.division = iteration.division;
  saved.num_consumers = record.rounds.consumers;
  const protocol::Positions positions = protocol::PositionsOf(record);
  if (record.has_order_consumers()) saved.positions = positions;
  saved.leads = iteration.leads;
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    SavedRepetition::Partition& to = saved.partitions.emplace_back();
    to.committed_below = protocol::FirstUncommitted(record, positions, PartitionId(p + 1));
    to.bookmarks = BookmarksOf(record.partitions[p], to.committed_below,
                               ReceivedBelow(record, context, positions, p));
    if (record.coordinated()) to.committed_below /= record.rounds.consumers;
    for (const auto& [key, run] : iteration.splits[p].given) to.given.push_back(run);
  }
  saved.passes_over = iteration.passes_over;
  AddRetired(iteration, saved.partitions);
  for (const protocol::ReaderRecord& reader : iteration.record.readers) {
    saved.readers.push_back(ReaderOf(reader, saved.partitions, saved.positions));
  }
}

void BeginWith(Transaction& txn, const State& state, JobId job, const Restoration& restoration) {
  for (const Restoration::Repetition& repetition : restoration.repetitions) {
    if (repetition.partitions.empty()) continue;
    const IterationId id(state.next_iteration);
    std::vector<int64_t> leads;
    for (const Restoration::Partition& partition : repetition.partitions) {
      leads.push_back(partition.lead);
    }
    txn.Apply(IterationCreated{id, job, repetition.number, repetition.division, std::move(leads),
                               repetition.passes_over});
    auto alter = [&](protocol::IterationChange change) {
      txn.Apply(IterationAltered{id, std::move(change)});
    };
    protocol::ReceivedSets committed;
    for (size_t p = 0; p < repetition.partitions.size(); ++p) {
      const Restoration::Partition& partition = repetition.partitions[p];
      const PartitionId number(p + 1);
      alter(protocol::PartitionOpened{number});
      committed.Add(number, partition.committed);
      if (repetition.finished) continue;  // nothing is replayed
      for (const SavedRepetition::Position& bookmark : partition.bookmarks) {
        alter(protocol::BookmarkAdded{number, {bookmark.index, bookmark.bytes}});
      }
      for (const SplitRun& run : partition.given) txn.Apply(SplitsGiven{{id, number}, run});
    }
    const ClientId before = ReaderBefore(restoration);
    const Incarnation incarnation(before.value());
    alter(protocol::ReaderJoined{before, incarnation});
    alter(protocol::ReaderReplaced{before, incarnation, std::move(committed)});
    alter(protocol::ReaderGone{before, protocol::ReaderStatus::kLeft});
    if (repetition.finished) {
      protocol::IterationClosed closed;
      for (const Restoration::Partition& partition : repetition.partitions) {
        closed.ends.push_back(partition.committed.FirstMissing());
      }
      alter(std::move(closed));
      alter(protocol::IterationFinished{});
    }
    txn.Log("restored", {{"job", absl::StrCat(job.value())},
                         {"iteration", absl::StrCat(id.value())},
                         {"partitions", absl::StrCat(repetition.partitions.size())}});
  }
}

}  // namespace penstock::control
