// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/shadow.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

using control::Journal;
using control::Recovered;
using control::State;

// Returns the bytes of a state as a recovery would read them. A recovery drops some data that are
// no longer needed.
absl::StatusOr<std::vector<std::string>> BytesOf(const State& state) {
  ASSIGN_OR_RETURN(const std::vector<std::string> pieces, control::EncodeState(state));
  ASSIGN_OR_RETURN(const State decoded, control::DecodeState(pieces));
  return control::EncodeState(decoded);
}

absl::StatusOr<State> StateOf(const Recovered& recovered) {
  State state;
  if (!recovered.snapshot.empty()) {
    ASSIGN_OR_RETURN(state, control::DecodeState(recovered.snapshot));
  }
  for (const Recovered::Record& record : recovered.records) {
    RETURN_IF_ERROR(control::ApplyRecord(record.bytes, state));
  }
  return state;
}

class WatchedJournal final : public Journal {
 public:
  WatchedJournal(std::unique_ptr<Journal> journal, Shadow& shadow, std::function<bool()> counts,
                 std::function<void(const absl::Status&)> violates)
      : shadow_(shadow),
        counts_(std::move(counts)),
        violates_(std::move(violates)),
        journal_(std::move(journal)) {}

  Recovered TakeRecovered() override {
    Recovered recovered = journal_->TakeRecovered();
    if (counts_()) Check(shadow_.OnRecovered(recovered));
    return recovered;
  }
  absl::Status Start(Durable durable) override {
    return journal_->Start([this, durable](absl::StatusOr<uint64_t> sequence) {
      if (sequence.ok() && counts_()) OnDurable(*sequence);
      durable(std::move(sequence));
    });
  }
  void Append(uint64_t sequence, std::string record) override {
    appended_.emplace_back(sequence, record);
    journal_->Append(sequence, std::move(record));
  }
  void Snapshot(uint64_t sequence, std::vector<std::string> pieces) override {
    journal_->Snapshot(sequence, std::move(pieces));
  }
  absl::Status WaitDurable(uint64_t sequence) override { return journal_->WaitDurable(sequence); }
  absl::Status status() const override { return journal_->status(); }
  std::string name() const override { return journal_->name(); }

 private:
  void OnDurable(uint64_t sequence) {
    while (!appended_.empty() && appended_.front().first <= sequence) {
      Check(shadow_.OnDurable(appended_.front().first, appended_.front().second));
      appended_.pop_front();
    }
  }
  void Check(const absl::Status& status) {
    if (!status.ok()) violates_(status);
  }

  Shadow& shadow_;
  const std::function<bool()> counts_;
  const std::function<void(const absl::Status&)> violates_;
  std::deque<std::pair<uint64_t, std::string>> appended_;  // and not yet durable
  const std::unique_ptr<Journal> journal_;                 // ended first; may still report
};

}  // namespace

absl::Status Shadow::OnRecovered(const Recovered& recovered) {
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
  ASSIGN_OR_RETURN(const State state, StateOf(recovered));
  for (const Recovered::Record& record : recovered.records) {
    if (record.sequence > sequence_) RETURN_IF_ERROR(OnDurable(record.sequence, record.bytes));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> expected, BytesOf(state_));
  ASSIGN_OR_RETURN(const std::vector<std::string> found, BytesOf(state));
  if (expected == found) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the state that the restarted dispatcher recovered at record ", sequence_,
                   " is not the one that its durable records make"));
}

absl::Status Shadow::OnDurable(uint64_t sequence, const std::string& record) {
  if (sequence != sequence_ + 1) {
    return absl::DataLossError(
        absl::StrCat("record ", sequence, " follows record ", sequence_, " in the journal"));
  }
  RETURN_IF_ERROR(control::ApplyRecord(record, state_, [this](const control::Change& change) {
    // The histories are forgotten with the same change.
    const auto* altered = std::get_if<control::IterationAltered>(&change);
    if (altered != nullptr && std::holds_alternative<protocol::IterationFinished>(altered->change))
      NoteCommitted();
  }));
  sequence_ = sequence;
  NoteCommitted();
  return absl::OkStatus();
}

// A forgotten record has no histories any more. The histories that were noted earlier stay.
void Shadow::NoteCommitted() {
  for (const auto& [id, iteration] : state_.iterations) {
    CommittedIteration& its = iterations_[id];
    its.finished = iteration.record.finished;
    its.ends.clear();
    for (const protocol::PartitionRecord& partition : iteration.record.partitions) {
      its.ends.push_back(partition.end);
    }
    if (iteration.record.forgotten) continue;
    its.readers.clear();
    for (const protocol::ReaderRecord& reader : iteration.record.readers) {
      its.readers.push_back({reader.client, reader.committed});
    }
  }
}

std::unique_ptr<Journal> WatchJournal(std::unique_ptr<Journal> journal, Shadow& shadow,
                                      std::function<bool()> counts,
                                      std::function<void(const absl::Status&)> violates) {
  return std::make_unique<WatchedJournal>(std::move(journal), shadow, std::move(counts),
                                          std::move(violates));
}

}  // namespace penstock::simulator
