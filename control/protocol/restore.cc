// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/restore.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::control {
namespace {

std::string NameOf(ClientId client) {
  return absl::StrCat("client ", absl::Hex(client.value()));
}

int64_t CountOf(const std::vector<PartitionIndices>& sets) {
  int64_t count = 0;
  for (const PartitionIndices& of : sets) count += of.indices.size();
  return count;
}

// A reader of a repetition, as described by the states of all clients.
struct SavedReader {
  int64_t consumer = -1;
  uint64_t version = 0;
  int64_t committed_count = 0;  // a lower bound
  bool gone = false;
  const std::vector<PartitionIndices>* committed = nullptr;  // in the newest state
};

// Merges one repetition from all states that contain it.
class RankStateMerger {
 public:
  RankStateMerger(int64_t number, BrokenMerge broken) : broken_(broken) { merged_.number = number; }

  void Add(ClientId client, const RankState::Repetition& from) {
    given_.push_back({client, &from});
    if (newest_ == nullptr || from.saved.version > newest_->version) newest_ = &from.saved;
  }

  // `has_state`: the clients whose states were given, no matter which repetitions these contain.
  absl::StatusOr<Restoration::Repetition> Merge(const std::set<ClientId>& has_state) && {
    Begin();
    for (const auto& [client, from] : given_) {
      if (absl::Status known = CheckAge(client, from->delivered); !known.ok()) return known;
      if (coordinated()) continue;
      if (absl::Status claimed = Claim(client, from->delivered); !claimed.ok()) return claimed;
    }
    for (const auto& [client, known] : saved_readers_) {
      if (IsGiven(client)) continue;
      if (!known.gone && !has_state.contains(client) && broken_ != BrokenMerge::kMissingState) {
        return Missing(client);
      }
      if (coordinated()) {
        if (known.gone && known.committed_count == 0) continue;  // from an earlier restore
        return Missing(client);
      }
      for (const PartitionIndices& of : *known.committed) AddCommitted(known.consumer, of);
    }
    for (auto& [partition, row_union] : row_unions_)
      At(partition).committed.Add(std::move(row_union).Indices());
    if (coordinated()) {
      if (absl::Status formed = CountFromHere(); !formed.ok()) return formed;
    }
    return std::move(merged_);
  }

 private:
  struct Given {
    ClientId client;
    const RankState::Repetition* from;
  };

  // Starts the result with the content of the newest state and the readers in all states.
  void Begin() {
    if (newest_ == nullptr) return;
    merged_.finished = newest_->finished;
    merged_.division = newest_->division;
    merged_.passes_over = newest_->passes_over;
    for (const SavedRepetition::Partition& partition : newest_->partitions) {
      merged_.partitions.push_back(
          {.committed = coordinated() ? IndexSet() : IndexSet::Of(0, partition.committed_below),
           .given = partition.given,
           .bookmarks = partition.bookmarks});
    }
    for (const Given& given : given_) {
      const SavedRepetition& saved = given.from->saved;
      for (const SavedRepetition::Reader& reader : saved.readers) {
        SavedReader& known = saved_readers_[reader.client];
        known.committed_count = std::max(known.committed_count, reader.committed_count);
        if (known.committed != nullptr && saved.version < known.version) continue;
        known.version = saved.version;
        known.gone = reader.gone;
        known.consumer = reader.consumer;
        known.committed = &reader.committed;
      }
    }
  }

  bool coordinated() const { return newest_ != nullptr && newest_->num_consumers > 0; }

  absl::Status Missing(ClientId client) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the state of ", NameOf(client), ", which read repetition ", merged_.number,
                     " when another state was saved, is missing; give the states of all ranks"));
  }

  // All consumers of a coordinated read must have the same rows, which belong to the time before
  // the new job. The new job has different consumers, so its indices are counted from the end of
  // those rows.
  absl::Status CountFromHere() {
    const int64_t consumers = newest_->num_consumers;
    if (static_cast<int64_t>(given_.size()) != consumers) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the states cover ", given_.size(), " of the ", consumers, " consumers of repetition ",
          merged_.number, " of a coordinated read; give the states of all consumers"));
    }
    for (size_t p = 0; p < merged_.partitions.size() && !merged_.finished; ++p) {
      const PartitionId id(p + 1);
      const IndexSet rows = RowsOf(given_.front(), id);
      const bool same = std::all_of(given_.begin(), given_.end(),
                                    [&](const Given& given) { return RowsOf(given, id) == rows; });
      if (!same || rows.FirstMissing() != rows.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the states of the consumers of a coordinated read belong to different "
                         "rounds in ",
                         ToString(id), ", repetition ", merged_.number,
                         ", or to the last rounds, which have elements of several partitions; give "
                         "states of one step before the last rounds"));
      }
      StartBehind(rows.size() * consumers, p);
    }
    return absl::OkStatus();
  }

  static IndexSet RowsOf(const Given& given, PartitionId partition) {
    for (const PartitionIndices& of : given.from->delivered) {
      if (of.partition == partition) return of.indices;
    }
    return {};
  }

  // Makes partition `p` resume at `index`, from its newest bookmark at or below `index`.
  void StartBehind(Index index, size_t p) {
    Restoration::Partition& partition = merged_.partitions[p];
    const int64_t lead = p < newest_->leads.size() ? newest_->leads[p] : 0;
    std::vector<SavedRepetition::Position> bookmarks = std::move(partition.bookmarks);
    partition.bookmarks.clear();
    partition.lead = index + lead;
    for (SavedRepetition::Position& bookmark : bookmarks) {
      if (bookmark.index > index) continue;
      partition.lead = index - bookmark.index + (bookmark.index == 0 ? lead : 0);
      partition.bookmarks = {{0, std::move(bookmark.bytes)}};
    }
  }

  bool IsGiven(ClientId client) const {
    return std::any_of(given_.begin(), given_.end(),
                       [&](const Given& given) { return given.client == client; });
  }

  absl::Status CheckAge(ClientId client, const std::vector<PartitionIndices>& delivered) const {
    auto found = saved_readers_.find(client);
    if (found == saved_readers_.end()) return absl::OkStatus();
    const int64_t count = CountOf(delivered);
    if (count < found->second.committed_count && broken_ != BrokenMerge::kOlderState) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the state of ", NameOf(client),
          " is older than what it had committed when another state was saved; give states of "
          "one step"));
    }
    if (found->second.gone && count > found->second.committed_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("the state of ", NameOf(client),
                       " contains elements that were never committed, but it had left or was "
                       "declared dead when another state was saved, so those elements went to "
                       "other clients; give the last state that it committed"));
    }
    return absl::OkStatus();
  }

  // Readers of order kDeterministic have sets of rows.
  void AddCommitted(int64_t consumer, const PartitionIndices& of) {
    if (!newest_->positions || consumer < 0) {
      At(of.partition).committed.Add(of.indices);
      return;
    }
    row_unions_.try_emplace(of.partition, *newest_->positions, of.partition)
        .first->second.Add(consumer, of.indices);
  }

  absl::Status Claim(ClientId client, const std::vector<PartitionIndices>& delivered) {
    const auto found = saved_readers_.find(client);
    const int64_t consumer = found == saved_readers_.end() ? -1 : found->second.consumer;
    for (const PartitionIndices& of : delivered) {
      IndexSet& claimed = claimed_[{of.partition, consumer}];
      if (claimed.Intersects(of.indices) && broken_ != BrokenMerge::kClaimedTwice) {
        return absl::InvalidArgumentError(
            absl::StrCat("two states contain the same elements of ", ToString(of.partition),
                         ", repetition ", merged_.number, "; one of them belongs to ",
                         NameOf(client), "; give one state of each rank, of one step"));
      }
      claimed.Add(of.indices);
      AddCommitted(consumer, of);
    }
    return absl::OkStatus();
  }

  Restoration::Partition& At(PartitionId partition) {
    const size_t at = partition.value() - 1;
    if (merged_.partitions.size() <= at) merged_.partitions.resize(at + 1);
    return merged_.partitions[at];
  }

  const BrokenMerge broken_;
  Restoration::Repetition merged_;
  std::vector<Given> given_;
  const SavedRepetition* newest_ = nullptr;
  std::map<ClientId, SavedReader> saved_readers_;
  std::map<std::pair<PartitionId, int64_t>, IndexSet> claimed_;  // by consumer; -1: none
  std::map<PartitionId, protocol::RowUnion> row_unions_;
};

bool HasAllSplits(const Restoration::Partition& partition) {
  return std::all_of(partition.given.begin(), partition.given.end(),
                     [](const SplitRun& run) { return run.first_ordinal == 0; });
}

// A replay must be able to begin at or below all elements that are owed.
absl::Status CheckReplays(const Restoration::Repetition& repetition) {
  if (repetition.finished) return absl::OkStatus();
  for (size_t p = 0; p < repetition.partitions.size(); ++p) {
    const Restoration::Partition& partition = repetition.partitions[p];
    const bool from_start = HasAllSplits(partition);
    const bool from_bookmark =
        !partition.bookmarks.empty() &&
        partition.bookmarks.front().index <= partition.committed.FirstMissing();
    if (from_start || from_bookmark) continue;
    return absl::DataLossError(absl::StrCat(
        "partition ", p + 1, " of repetition ", repetition.number,
        " cannot be read again from the states, because they do not contain its first splits"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Restoration> MergeRankStates(absl::Span<const RankState> states, uint64_t name,
                                            BrokenMerge broken) {
  Restoration restoration{.name = name};
  std::set<ClientId> clients;
  std::map<int64_t, RankStateMerger> repetitions;
  for (const RankState& state : states) {
    const RankState& first = states.front();
    if (state.job != first.job || state.job_mark != first.job_mark) {
      return absl::InvalidArgumentError(
          absl::StrCat("the states belong to different jobs: ", ToString(first.job), " '",
                       first.job_name, "' and ", ToString(state.job), " '", state.job_name, "'",
                       state.job == first.job ? " of another service or an earlier restore" : ""));
    }
    if (!clients.insert(state.client).second) {
      return absl::InvalidArgumentError(absl::StrCat("two states belong to ", NameOf(state.client),
                                                     "; give one state of each rank"));
    }
    for (const RankState::Repetition& repetition : state.repetitions) {
      const int64_t number = repetition.saved.repetition;
      const BrokenMerge rules = state.at_least_once ? BrokenMerge::kClaimedTwice : broken;
      repetitions.try_emplace(number, number, rules).first->second.Add(state.client, repetition);
    }
  }
  for (auto& [number, merger] : repetitions) {
    absl::StatusOr<Restoration::Repetition> merged = std::move(merger).Merge(clients);
    if (!merged.ok()) return merged.status();
    if (absl::Status replays = CheckReplays(*merged); !replays.ok()) return replays;
    restoration.repetitions.push_back(*std::move(merged));
  }
  return restoration;
}

absl::Status ForgetBookmarks(Restoration& restoration) {
  for (Restoration::Repetition& repetition : restoration.repetitions) {
    if (!repetition.finished && (!repetition.passes_over.empty() ||
                                 !std::ranges::all_of(repetition.partitions, HasAllSplits))) {
      return absl::InvalidArgumentError(
          "a dataset that was edited before Distribute cannot resume from states of a dataset that "
          "repeats before Distribute once the first pass is over, because it is no longer known "
          "which partition read what; restore them with the dataset that they were saved from");
    }
    for (Restoration::Partition& partition : repetition.partitions) {
      if (partition.lead > 0) {
        return absl::InvalidArgumentError(
            "a dataset that was edited before Distribute cannot resume from states of a "
            "coordinated read; restore them with the dataset that they were saved from");
      }
      partition.bookmarks.clear();
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::control
