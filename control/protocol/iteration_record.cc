// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/iteration_record.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "control/protocol/invariant.h"
#include "control/protocol/partial_rows.h"

namespace penstock::protocol {
namespace {

// The maximum number of a partition's bookmarks; more are thinned out. With this number, a replay
// recomputes at most about a sixteenth of the uncommitted elements, and a record stays small.
constexpr size_t kBookmarksKept = 16;

// Drops the bookmark without which the longest gap is shortest. Never drops the first bookmark (the
// bookmarks before it were retired because of it) or the newest.
void Thin(absl::InlinedVector<Bookmark, 1>& bookmarks) {
  if (bookmarks.size() <= kBookmarksKept) return;
  size_t least = 1;
  for (size_t i = 1; i + 1 < bookmarks.size(); ++i) {
    auto gap = [&](size_t at) { return bookmarks[at + 1].index - bookmarks[at - 1].index; };
    if (gap(i) < gap(least)) least = i;
  }
  bookmarks.erase(bookmarks.begin() + static_cast<ptrdiff_t>(least));
}

// Returns the lowest index that none of the readers has committed.
Index FirstMissingOf(absl::Span<const ReaderRecord* const> readers, PartitionId partition) {
  Index missing = 0;
  Index before;
  do {
    before = missing;
    for (const ReaderRecord* reader : readers)
      missing = Of(reader->committed, partition).FirstMissing(missing);
  } while (missing != before);
  return missing;
}

// Returns the client's reader; nullptr if there is none.
const ReaderRecord* ReaderOrNull(const IterationRecord& record, ClientId client) {
  auto found = record.FindReader(client);
  return found ? &record.readers[*found] : nullptr;
}

// Fitting returns whether a change can be applied to the record; Applying applies it. Both have one
// overload per change.
struct Fitting {
  const IterationRecord& record;

  bool HasAll(const ReceivedSets& sets) const {
    return std::ranges::all_of(
        sets, [&](const ReceivedSets::Entry& entry) { return record.Has(entry.partition); });
  }

  bool operator()(const PartitionOpened& c) const {
    return !record.closed && record.rounds.ends.empty() &&
           c.partition.value() == record.partitions.size() + 1;
  }
  bool operator()(const PlacementRaised& c) const {
    return record.Has(c.partition) && c.placement > record.partition(c.partition).placement;
  }
  bool operator()(const PartitionAssigned& c) const {
    if (!record.Has(c.partition) || !c.worker) return false;
    const PartitionRecord& partition = record.partition(c.partition);
    const bool may_choose = record.shared() && !record.at_least_once;
    return !record.closed && partition.collecting() && c.placement == partition.placement &&
           (!c.audience || (may_choose && AreReaders(*c.audience)));
  }
  bool operator()(const AudienceExtended& c) const {
    return record.Has(c.partition) && record.partition(c.partition).audience && AreReaders(c.added);
  }
  bool AreReaders(const IndexSet& positions) const {
    return !positions.empty() && positions.intervals().front().begin >= 0 &&
           positions.end() <= static_cast<Index>(record.readers.size());
  }
  bool operator()(const BookmarkAdded& c) const {
    if (!record.Has(c.partition) || c.bookmark.index < 0) return false;
    const auto& bookmarks = record.partition(c.partition).bookmarks;
    return bookmarks.empty() || bookmarks.back().index < c.bookmark.index;
  }
  bool operator()(const BookmarksRetired& c) const {
    if (!record.Has(c.partition)) return false;
    const auto& bookmarks = record.partition(c.partition).bookmarks;
    return !bookmarks.empty() && bookmarks.back().index >= c.below;
  }
  bool operator()(const ReaderJoined& c) const {
    return c.client && !ReaderOrNull(record, c.client);
  }
  bool operator()(const ReaderReplaced& c) const {
    return ReaderOrNull(record, c.client) != nullptr && HasAll(c.committed);
  }
  bool operator()(const ReaderCommitted& c) const {
    return record.Has(c.partition) && ReaderOrNull(record, c.client) != nullptr;
  }
  bool operator()(const ReaderGone& c) const {
    const ReaderRecord* reader = ReaderOrNull(record, c.client);
    return reader && reader->status == ReaderStatus::kActive && c.status != ReaderStatus::kActive;
  }
  bool operator()(const ReaderEnded& c) const {
    const ReaderRecord* reader = ReaderOrNull(record, c.client);
    return reader && reader->reads() && HasAll(c.final);
  }
  bool operator()(const IterationClosed& c) const {
    return !record.closed && c.ends.size() == record.partitions.size() &&
           std::all_of(c.ends.begin(), c.ends.end(),
                       [](Index end) { return end >= 0 && end < kMostIndices; });
  }
  bool operator()(const IterationReopened&) const { return record.closed && !record.finished; }
  bool operator()(const IterationFinished&) const { return record.closed && !record.finished; }
  bool operator()(const ConsumersFormed&) const { return record.coordinated(); }
  bool operator()(const RoundsRescheduled& c) const {
    if (!record.coordinated() || !record.Has(c.event.partition)) return false;
    const bool joins = c.event.kind == RoundEvent::Kind::kJoins;
    if (record.rounds.schedule.Knows(c.event.partition) == joins) return false;
    Schedule with = record.rounds.schedule;
    with.Add(c.event);
    return with.IsSound();
  }
  bool operator()(const RemaindersPlanned& c) const {
    return record.coordinated() && record.rounds.ends.empty() &&
           c.ends.size() == record.partitions.size() &&
           std::none_of(c.ends.begin(), c.ends.end(), [](Index end) { return end < 0; });
  }
  bool operator()(const RoundsForgotten& c) const {
    return record.coordinated() && c.below >= record.rounds.schedule.first;
  }
};

struct Applying {
  IterationRecord& record;

  ReaderRecord& reader(ClientId client) const { return record.readers[*record.FindReader(client)]; }

  void operator()(const PartitionOpened&) const { record.partitions.emplace_back(); }
  void operator()(const PlacementRaised& c) const {
    PartitionRecord& partition = record.partition(c.partition);
    partition.placement = c.placement;
    partition.worker = {};
  }
  void operator()(const PartitionAssigned& c) const {
    PartitionRecord& partition = record.partition(c.partition);
    partition.worker = c.worker;
    record.audiences.Change(c.partition.value() - 1, partition.audience, c.audience);
    partition.audience = c.audience;
  }
  void operator()(const AudienceExtended& c) const {
    record.partition(c.partition).audience->Add(c.added);
    record.audiences.Extend(c.partition.value() - 1, c.added);
  }
  void operator()(const BookmarkAdded& c) const {
    auto& bookmarks = record.partition(c.partition).bookmarks;
    bookmarks.push_back(c.bookmark);
    Thin(bookmarks);
  }
  void operator()(const BookmarksRetired& c) const {
    auto& bookmarks = record.partition(c.partition).bookmarks;
    auto stays = std::find_if(bookmarks.begin(), bookmarks.end(),
                              [&](const Bookmark& b) { return b.index >= c.below; });
    bookmarks.erase(bookmarks.begin(), stays);
  }
  void operator()(const ReaderJoined& c) const {
    ReaderRecord reader;
    reader.client = c.client;
    reader.incarnation = c.incarnation;
    reader.consumer = c.consumer;
    reader.fresh = record.coordinated();
    record.readers.Add(std::move(reader));
  }
  void operator()(const ReaderReplaced& c) const {
    ReaderRecord& replaced = reader(c.client);
    const bool gives_up = !Contains(c.committed, replaced.committed);
    replaced = ReaderRecord{.client = c.client,
                            .incarnation = c.incarnation,
                            .committed = c.committed,
                            .consumer = replaced.consumer,
                            .start = c.start,
                            .fresh = record.coordinated()};
    if (gives_up) {
      record.committed_by_any = ComputeCommitted(record);
    } else if (record.unites_indices()) {
      record.committed_by_any.sets.Add(c.committed);
    }
  }
  void operator()(const ReaderCommitted& c) const {
    reader(c.client).committed.Add(c.partition, c.added);
    if (record.unites_indices()) record.committed_by_any.sets.Add(c.partition, c.added);
  }
  void operator()(const ReaderGone& c) const {
    ReaderRecord& gone = reader(c.client);
    gone.status = c.status;
    gone.end_notified = false;
    gone.final.clear();
  }
  void operator()(const ReaderEnded& c) const {
    ReaderRecord& ended = reader(c.client);
    ended.end_notified = true;
    ended.final = c.final;
  }
  void operator()(const IterationClosed& c) const {
    record.closed = true;
    record.elements = std::accumulate(c.ends.begin(), c.ends.end(), Index{0});
    for (size_t i = 0; i < c.ends.size(); ++i) {
      record.partitions[i].end = c.ends[i];
      record.partitions[i].worker = {};
    }
  }
  void operator()(const IterationReopened&) const { record.closed = false; }
  void operator()(const IterationFinished&) const { record.finished = true; }
  void operator()(const ConsumersFormed&) const {
    for (ReaderRecord& reader : record.readers) reader.fresh = false;
  }
  void operator()(const RoundsRescheduled& c) const { record.rounds.schedule.Add(c.event); }
  void operator()(const RemaindersPlanned& c) const { record.rounds.ends = c.ends; }
  void operator()(const RoundsForgotten& c) const { ForgetBefore(record.rounds.schedule, c.below); }
};

}  // namespace

std::optional<Index> IterationRecord::EndOf(PartitionId id) const {
  if (rounds.ends.empty()) return std::nullopt;
  return rounds.ends[id.value() - 1];
}

Remainder IterationRecord::RemainderOf(PartitionId id) const {
  if (rounds.ends.empty()) return {};
  return ComputeRemainder(rounds.ends, rounds.consumers, rounds.remainder_policy, id);
}

void ReaderList::Add(ReaderRecord reader) {
  constexpr size_t kFew = 8;
  list_.push_back(std::move(reader));
  if (list_.size() > kFew)
    for (size_t i = at_.size(); i < list_.size(); ++i) at_.emplace(list_[i].client, i);
}

std::optional<size_t> ReaderList::Find(ClientId client) const {
  if (!at_.empty()) {
    const auto found = at_.find(client);
    return found == at_.end() ? std::nullopt : std::optional(found->second);
  }
  for (size_t i = 0; i < list_.size(); ++i)
    if (list_[i].client == client) return i;
  return std::nullopt;
}

bool Fits(const IterationRecord& record, const IterationChange& change) {
  return !record.finished && std::visit(Fitting{record}, change);
}

void Apply(IterationRecord& record, const IterationChange& change) {
  PENSTOCK_INVARIANT(Fits(record, change));
  std::visit(Applying{record}, change);
}

Positions PositionsOf(const IterationRecord& record) {
  Positions positions{
      .partitions = std::max<int64_t>(1, static_cast<int64_t>(record.partitions.size())),
      .consumers = std::max<int64_t>(1, record.order_consumers)};
  if (!record.has_order_consumers()) return positions;
  std::vector<const ReaderRecord*> without_consumers;
  for (const ReaderRecord& reader : record.readers)
    if (reader.consumer < 0) without_consumers.push_back(&reader);
  if (without_consumers.empty()) return positions;
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionId partition(p + 1);
    const Index lacks = positions.At(partition, FirstMissingOf(without_consumers, partition));
    positions.first = p == 0 ? lacks : std::min(positions.first, lacks);
  }
  return positions;
}

Together::Together(const IterationRecord& record, const Positions& positions, PartitionId partition)
    : record_(record), partition_(partition) {
  if (record.has_order_consumers()) row_union_.emplace(positions, partition);
}

void Together::Add(const ReaderRecord& reader, const IndexSet& has) {
  if (record_.has_order_consumers() && reader.consumer >= 0)
    return row_union_->Add(reader.consumer, has);
  if (!record_.coordinated()) return indices_.Add(has);
  rows_.resize(static_cast<size_t>(record_.rounds.consumers));
  if (reader.consumer >= 0) rows_[static_cast<size_t>(reader.consumer)].Add(has);
}

IndexSet Together::Indices() && {
  if (row_union_) indices_.Add(std::move(*row_union_).Indices());
  if (!record_.coordinated() || rows_.empty()) return std::move(indices_);
  const int64_t consumers = record_.rounds.consumers;
  const std::optional<Index> end = record_.EndOf(partition_);
  const Remainder remainder = record_.RemainderOf(partition_);
  // Most rows are rows that all consumers have. These are added as whole intervals. All other rows,
  // and the rows of the remainder, are added one by one.
  IndexSet everybodys = rows_[0];
  for (const IndexSet& rows : rows_) {
    IndexSet lacking = everybodys;
    lacking.Remove(rows);
    everybodys.Remove(lacking);
  }
  if (end) everybodys.Remove(IndexSet::Of(*end / consumers, everybodys.end()));
  IndexSet indices;
  for (const IndexSet::Interval& rows : everybodys.intervals()) {
    indices.Add(rows.begin * consumers, rows.end * consumers);
  }
  for (int64_t consumer = 0; consumer < consumers; ++consumer) {
    IndexSet others = rows_[static_cast<size_t>(consumer)];
    others.Remove(everybodys);
    indices.Add(IndicesOfPartialRows(
        others, [&](int64_t row) { return IndexOf(row, consumer, consumers, end, remainder); }));
  }
  return indices;
}

void ForgetHistories(IterationRecord& record) {
  PENSTOCK_INVARIANT(record.finished);
  if (std::exchange(record.forgotten, true)) return;
  record.committed_by_any = {};
  for (ReaderRecord& reader : record.readers) {
    reader.mark = MarkOf(reader.committed);
    reader.committed.clear();
    reader.final.clear();
  }
}

bool HasCommitted(const IterationRecord& record, const ReaderRecord& reader,
                  const ReceivedSets& state) {
  if (!record.forgotten) return Contains(reader.committed, state);
  const CommittedMark mark = MarkOf(state);
  return mark.count == 0 || mark == reader.mark;
}

bool Lacks(const IterationRecord& record, const ReaderRecord& reader, const ReceivedSets& state) {
  return record.forgotten ? MarkOf(state).count < reader.mark.count
                          : !Contains(state, reader.committed);
}

CommittedByAny ComputeCommitted(const IterationRecord& record) {
  CommittedByAny by_any;
  if (record.unites_indices())
    for (const ReaderRecord& reader : record.readers) by_any.sets.Add(reader.committed);
  return by_any;
}

void ComputeKept(IterationRecord& record) {
  record.committed_by_any = ComputeCommitted(record);
  record.audiences = Audiences();
  record.elements = 0;
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    record.audiences.Change(p, std::nullopt, record.partitions[p].audience);
    record.elements += record.partitions[p].end.value_or(0);
  }
}

bool IsKept(const IterationRecord& record) {
  IterationRecord computed = record;
  ComputeKept(computed);
  return record.committed_by_any.sets == computed.committed_by_any.sets &&
         record.audiences == computed.audiences && record.elements == computed.elements;
}

IndexSet CommittedIndices(const IterationRecord& record, const Positions& positions,
                          PartitionId partition) {
  if (record.forgotten) return IndexSet::Of(0, record.partition(partition).end.value_or(0));
  if (record.unites_indices()) return Of(record.committed_by_any.sets, partition);
  Together committed(record, positions, partition);
  for (const ReaderRecord& reader : record.readers)
    committed.Add(reader, Of(reader.committed, partition));
  return std::move(committed).Indices();
}

IndexSet CommittedIndices(const IterationRecord& record, PartitionId partition) {
  return CommittedIndices(record, PositionsOf(record), partition);
}

Index FirstUncommitted(const IterationRecord& record, const Positions& positions,
                       PartitionId partition) {
  if (record.forgotten || !record.unites_indices())
    return CommittedIndices(record, positions, partition).FirstMissing();
  return Of(record.committed_by_any.sets, partition).FirstMissing();
}

IndexSet Owed(const IterationRecord& record, const Positions& positions, PartitionId partition) {
  IndexSet owed = IndexSet::Of(0, record.partition(partition).end.value_or(0));
  owed.Remove(CommittedIndices(record, positions, partition));
  return owed;
}

}  // namespace penstock::protocol
