// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/shadow.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

using control::Journal;
using control::Recovered;

// Returns the bytes of a state as a recovery would read them. A recovery drops some data that are
// no longer needed.
absl::StatusOr<std::vector<std::string>> BytesOf(const control::State& state) {
  ASSIGN_OR_RETURN(const std::vector<std::string> pieces, control::EncodeState(state));
  ASSIGN_OR_RETURN(const control::State decoded, control::DecodeState(pieces));
  return control::EncodeState(decoded);
}

absl::StatusOr<control::State> StateOf(const Recovered& recovered) {
  control::State state;
  if (!recovered.snapshot.empty()) {
    ASSIGN_OR_RETURN(state, control::DecodeState(recovered.snapshot));
  }
  for (const Recovered::Record& record : recovered.records) {
    RETURN_IF_ERROR(control::ApplyRecord(record.bytes, state));
  }
  return state;
}

// Returns the pieces of a whole snapshot, in the order of their keys.
std::vector<std::string> PiecesOf(const control::SnapshotChanges& snapshot) {
  std::vector<std::string> pieces;
  for (const auto& [key, piece] : snapshot.pieces)
    if (piece.has_value()) pieces.push_back(*piece);
  return pieces;
}

class WatchedJournal final : public Journal {
 public:
  WatchedJournal(std::unique_ptr<Journal> journal, Shadow& shadow, uint64_t life,
                 std::function<bool()> counts, std::function<void(const absl::Status&)> violates)
      : shadow_(shadow),
        life_(life),
        counts_(std::move(counts)),
        violates_(std::move(violates)),
        journal_(std::move(journal)) {}

  Recovered TakeRecovered() override {
    Recovered recovered = journal_->TakeRecovered();
    if (counts_()) Check(shadow_.OnRecovered(recovered, life_));
    return recovered;
  }
  absl::Status Start(Durable durable) override {
    return journal_->Start([this, durable](absl::StatusOr<uint64_t> sequence) {
      if (sequence.ok() && counts_()) Check(OnDurable(*sequence));
      durable(std::move(sequence));
    });
  }
  void Append(uint64_t sequence, std::string record) override {
    if (writes()) shadow_.OnAppended(sequence, record);
    journal_->Append(sequence, std::move(record));
  }
  void Snapshot(uint64_t sequence, control::SnapshotChanges changes) override {
    if (writes()) {
      control::Merge(changes, snapshot_);
      Check(shadow_.OnOwnState(sequence, PiecesOf(snapshot_)));
      shadow_.ForgetRecords(sequence);
    }
    journal_->Snapshot(sequence, std::move(changes));
  }
  absl::Status WaitDurable(uint64_t sequence) override { return journal_->WaitDurable(sequence); }
  absl::Status status() const override { return journal_->status(); }
  std::string name() const override { return journal_->name(); }

 private:
  bool writes() const { return counts_() && shadow_.IsWriter(life_); }
  absl::Status OnDurable(uint64_t sequence) {
    return writes() ? shadow_.OnDurable(sequence) : shadow_.OnLateReport(life_, sequence);
  }
  void Check(const absl::Status& status) {
    if (!status.ok()) violates_(status);
  }

  Shadow& shadow_;
  const uint64_t life_;
  const std::function<bool()> counts_;
  const std::function<void(const absl::Status&)> violates_;
  control::SnapshotChanges snapshot_;       // all of this life's, merged
  const std::unique_ptr<Journal> journal_;  // ended first; may still report
};

}  // namespace

absl::Status Shadow::OnRecovered(const Recovered& recovered, uint64_t life) {
  if (life < writer_) {
    successors_[life] = 0;
    return absl::OkStatus();
  }
  successors_[writer_] = recovered.last_sequence();
  writer_ = life;
  const std::deque<std::pair<uint64_t, std::string>> appended = std::exchange(appended_, {});
  if (recovered.last_sequence() < sequence_) {
    return absl::DataLossError(
        absl::StrCat("lost records: records up to ", sequence_,
                     " were reported as durable, but the restarted dispatcher found only those up "
                     "to ",
                     recovered.last_sequence()));
  }
  if (recovered.snapshot_sequence > sequence_) {
    return absl::DataLossError(
        absl::StrCat("the snapshot contains record ", recovered.snapshot_sequence,
                     ", but only records up to ", sequence_, " were reported as durable"));
  }
  ASSIGN_OR_RETURN(const control::State state, StateOf(recovered));
  for (const Recovered::Record& record : recovered.records) {
    if (record.sequence <= sequence_) continue;
    if (std::find(appended.begin(), appended.end(), std::pair(record.sequence, record.bytes)) ==
        appended.end()) {
      return absl::DataLossError(absl::StrCat("the restarted dispatcher found a record ",
                                              record.sequence, " that no dispatcher has appended"));
    }
    RETURN_IF_ERROR(Apply(record.sequence, record.bytes));
  }
  own_states_.clear();  // of records that are lost
  durable_.clear();
  ASSIGN_OR_RETURN(const std::vector<std::string> expected, BytesOf(state_));
  ASSIGN_OR_RETURN(const std::vector<std::string> found, BytesOf(state));
  if (expected == found) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the state that the restarted dispatcher recovered at record ", sequence_,
                   " is not the one that its durable records make"));
}

absl::Status Shadow::OnLateReport(uint64_t life, uint64_t sequence) const {
  const uint64_t found = successors_.at(life);
  if (sequence <= found) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "record ", sequence, " was reported as durable to a dispatcher that had been replaced, but ",
      "its successor found only the records up to ", found));
}

void Shadow::OnAppended(uint64_t sequence, std::string record) {
  appended_.emplace_back(sequence, std::move(record));
}

absl::Status Shadow::OnDurable(uint64_t sequence) {
  while (!appended_.empty() && appended_.front().first <= sequence) {
    const auto [number, record] = std::move(appended_.front());
    appended_.pop_front();
    RETURN_IF_ERROR(Apply(number, record));
  }
  if (sequence <= sequence_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("record ", sequence,
                                          " was reported as durable, but the last record that was "
                                          "appended is ",
                                          sequence_));
}

absl::Status Shadow::OnOwnState(uint64_t sequence, std::vector<std::string> pieces) {
  if (sequence > sequence_) {
    own_states_[sequence] = std::move(pieces);
    return absl::OkStatus();
  }
  return CompareOwnState(sequence, pieces);
}

void Shadow::ForgetRecords(uint64_t sequence) {
  while (!durable_.empty() && durable_.front().first <= sequence) durable_.pop_front();
}

absl::Status Shadow::CompareOwnState(uint64_t sequence, const std::vector<std::string>& pieces) {
  ASSIGN_OR_RETURN(control::State own, control::DecodeState(pieces));
  for (const auto& [number, record] : durable_)
    if (number > sequence) RETURN_IF_ERROR(control::ApplyRecord(record, own));
  ASSIGN_OR_RETURN(const std::vector<std::string> found, BytesOf(own));
  ASSIGN_OR_RETURN(const std::vector<std::string> expected, BytesOf(state_));
  if (expected == found) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the dispatcher's own state at record ", sequence,
                                          " is not the one that its durable records make"));
}

absl::Status Shadow::Apply(uint64_t sequence, const std::string& record) {
  if (sequence != sequence_ + 1) {
    return absl::DataLossError(
        absl::StrCat("record ", sequence, " follows record ", sequence_, " in the journal"));
  }
  RETURN_IF_ERROR(control::ApplyRecord(
      record, state_, [&](const control::Change& change) { NoteChange(sequence, change); }));
  sequence_ = sequence;
  durable_.emplace_back(sequence, record);
  if (on_record_ != nullptr) on_record_(record);
  const auto own = own_states_.extract(sequence);
  return own.empty() ? absl::OkStatus() : CompareOwnState(sequence, own.mapped());
}

namespace {

// Notes a change of a reader's session, a commit or the first end.
struct NoteOfChange {
  uint64_t record;
  bool closed;  // the iteration, before the change
  CommittedIteration& its;

  void operator()(const protocol::ReaderJoined& c) const {
    its.sessions[c.client].began.push_back(record);
  }
  void operator()(const protocol::ReaderReplaced& c) const {
    CommittedIteration::Session& session = its.sessions[c.client];
    session.began.push_back(record);
    session.lost.push_back(record);
    for (const auto& [partition, set] : c.committed) {
      its.commits.push_back({record, c.client, partition, set});
    }
  }
  void operator()(const protocol::ReaderGone& c) const {
    its.sessions[c.client].lost.push_back(record);
  }
  void operator()(const protocol::ReaderCommitted& c) const {
    its.commits.push_back({record, c.client, c.partition, c.added});
  }
  void operator()(const protocol::ReaderEnded& c) const {
    if (closed) its.sessions[c.client].told = record;
  }
  void operator()(const protocol::IterationClosed&) const {
    if (!its.closed_at.has_value()) its.closed_at = record;
  }
  template <class Other>
  void operator()(const Other&) const {}
};

// Returns whether the change removes iterations or their histories from the state.
bool Forgets(const control::Change& change) {
  const auto* altered = std::get_if<control::IterationAltered>(&change);
  return std::holds_alternative<control::JobRemoved>(change) ||
         std::holds_alternative<control::IterationRetired>(change) ||
         (altered != nullptr &&
          std::holds_alternative<protocol::IterationFinished>(altered->change));
}

}  // namespace

// Called before the change is applied.
void Shadow::NoteChange(uint64_t sequence, const control::Change& change) {
  if (Forgets(change)) NoteChanged();
  if (const IterationId id = control::IterationOf(change)) changed_.insert(id);
  const auto* altered = std::get_if<control::IterationAltered>(&change);
  if (altered == nullptr) return;
  const auto iteration = state_.iterations.find(altered->iteration);
  if (iteration == state_.iterations.end()) return;
  const bool closed = iteration->second.record.closed;
  std::visit(NoteOfChange{sequence, closed, iterations_[altered->iteration]}, altered->change);
}

const CommittedIterations& Shadow::iterations() const {
  NoteChanged();
  return iterations_;
}

const CommittedIterations& Shadow::progress() const {
  NoteProgress();
  return iterations_;
}

void Shadow::NoteProgress() const {
  for (const IterationId id : std::exchange(changed_, {})) {
    const auto found = state_.iterations.find(id);
    if (found == state_.iterations.end()) continue;  // created by this record, or gone
    const control::IterationState& iteration = found->second;
    CommittedIteration& its = iterations_[id];
    its.job = iteration.job;
    its.repetition = iteration.repetition;
    its.closed = iteration.record.closed;
    its.finished = iteration.record.finished;
    its.commits_states = iteration.record.commit_policy == protocol::CommitPolicy::kExplicit;
    its.ends.clear();
    for (const protocol::PartitionRecord& partition : iteration.record.partitions) {
      its.ends.push_back(partition.end);
    }
    changed_sets_.insert(id);
  }
}

// A forgotten record has no histories any more. The histories that were noted earlier stay. The
// sets of a long pass have many intervals, so they are not copied at each record.
void Shadow::NoteChanged() const {
  NoteProgress();
  for (const IterationId id : std::exchange(changed_sets_, {})) {
    const auto found = state_.iterations.find(id);
    if (found == state_.iterations.end() || found->second.record.forgotten) continue;
    CommittedIteration& its = iterations_[id];
    its.readers.clear();
    for (const protocol::ReaderRecord& reader : found->second.record.readers) {
      its.readers.push_back({reader.client, reader.committed});
    }
  }
}

Shadow Shadow::Of(std::map<IterationId, CommittedIteration> iterations) {
  Shadow shadow;
  shadow.iterations_ = std::move(iterations);
  return shadow;
}

Shadow Shadow::Only(IterationId id, std::optional<PartitionId> partition) const {
  const auto found = iterations().find(id);
  if (found == iterations_.end()) return Shadow();
  CommittedIteration its = found->second;
  for (size_t p = 0; partition.has_value() && p < its.ends.size(); ++p) {
    if (p + 1 != partition->value()) its.ends[p] = 0;
  }
  for (CommittedIteration::Reader& reader : its.readers) {
    if (!partition.has_value()) break;
    protocol::ReceivedSets only;
    only.Add(*partition, protocol::Of(reader.committed, *partition));
    reader.committed = std::move(only);
  }
  return Of({{id, std::move(its)}});
}

std::unique_ptr<Journal> WatchJournal(std::unique_ptr<Journal> journal, Shadow& shadow,
                                      uint64_t life, std::function<bool()> counts,
                                      std::function<void(const absl::Status&)> violates) {
  return std::make_unique<WatchedJournal>(std::move(journal), shadow, life, std::move(counts),
                                          std::move(violates));
}

}  // namespace penstock::simulator
