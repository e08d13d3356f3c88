// SPDX-License-Identifier: Apache-2.0
// A second state of the dispatcher, made only from records that its journal has reported as
// durable. It must equal what a restarted dispatcher finds in its journal, and the state that the
// dispatcher itself has: at each snapshot, after each restart and at the end. It also keeps what
// each reader has committed.
//
// Taken on trust:
// - The second state is made by the product's own ApplyRecord(). A change that is applied wrongly
//   in the same way on both sides is not seen here; what trainers got may show it.
// - A record that became durable without a report, because the process was killed first, counts as
//   durable once a restarted dispatcher has found it. It must be the record that the killed process
//   appended under that number.
// - States are compared as a recovery would read them: data that it drops are not compared.
// - Between two comparisons the dispatcher's own state may differ.
//
// If there are standbys, the leader of the latest term that has read the journal writes it. Records
// that an earlier leader appends after that are never durable, and its own state is not compared.
// It may still get reports of earlier records, which its successor must have found.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "control/journal/journal.h"
#include "control/protocol/iteration_record.h"
#include "control/state/state.h"
#include "penstock/ids.h"

namespace penstock::simulator {

// The facts about one iteration in the durable records, without those that are needed to run it.
struct CommittedIteration {
  struct Reader {
    ClientId client;
    protocol::ReceivedSets committed;
  };
  // The numbers of the records that changed a reader's session, ascending.
  struct Session {
    std::vector<uint64_t> began;   // a process joined, or continued from a state
    std::vector<uint64_t> lost;    // the reader lost all that it had not committed
    std::optional<uint64_t> told;  // the last record by which it was told the end
  };
  struct Commit {
    uint64_t record = 0;
    ClientId client;
    PartitionId partition;
    IndexSet added;
  };
  JobId job;
  int64_t repetition = 0;
  std::vector<Reader> readers;
  std::vector<std::optional<Index>> ends;  // by partition
  bool closed = false;                     // its readers may be told the end
  bool finished = false;
  bool commits_states = false;  // only states are committed
  std::map<ClientId, Session> sessions;
  std::vector<Commit> commits;        // in order
  std::optional<uint64_t> closed_at;  // the record by which it was closed for the first time
};
using CommittedIterations = std::map<IterationId, CommittedIteration>;

// Outlives all lives of the dispatcher. An error says what does not fit.
class Shadow {
 public:
  // Compares the state with what a new life found in its journal. Takes over records that were
  // durable before the last life could report it. `life`: a later one has a greater number. It is
  // the writer from now on, and the calls up to ForgetRecords() are about its records. A life that
  // reads the journal when a later one has read it already is replaced, and nothing is compared.
  absl::Status OnRecovered(const control::Recovered& recovered, uint64_t life = 0);
  bool IsWriter(uint64_t life) const { return life == writer_; }
  // A life that is the writer no more gets the report that its records up to `sequence` are
  // durable.
  absl::Status OnLateReport(uint64_t life, uint64_t sequence) const;
  // The dispatcher has appended a record, which is not durable yet.
  void OnAppended(uint64_t sequence, std::string record);
  // All appended records up to `sequence` are durable.
  absl::Status OnDurable(uint64_t sequence);
  // `pieces` is the dispatcher's own state after the record `sequence` (control::EncodeState).
  // Compares it once that record is durable; never, if the record is lost.
  absl::Status OnOwnState(uint64_t sequence, std::vector<std::string> pieces);
  // Further own states are of `sequence` or of later records.
  void ForgetRecords(uint64_t sequence);

  // `on_record` is called with each further durable record, once.
  void Watch(std::function<void(const std::string& record)> on_record) {
    on_record_ = std::move(on_record);
  }

  // Returns a shadow that knows only one iteration, and of this only one partition, if it is given:
  // the other partitions are then empty.
  Shadow Only(IterationId id, std::optional<PartitionId> partition = std::nullopt) const;
  // Makes a shadow for tests of checks.
  static Shadow Of(std::map<IterationId, CommittedIteration> iterations);

  uint64_t sequence() const { return sequence_; }
  const CommittedIterations& iterations() const;
  // Like iterations(), except that the committed sets may be of an earlier record. To copy the sets
  // of long passes takes time.
  const CommittedIterations& progress() const;

 private:
  absl::Status Apply(uint64_t sequence, const std::string& record);
  // Compares the state after the record `sequence`, with the later durable records applied.
  absl::Status CompareOwnState(uint64_t sequence, const std::vector<std::string>& pieces);
  void NoteChange(uint64_t sequence, const control::Change& change);
  // Copies to `iterations_` what the records of the changed iterations contain.
  void NoteChanged() const;
  void NoteProgress() const;  // without the committed sets

  std::function<void(const std::string&)> on_record_;
  control::State state_;
  uint64_t sequence_ = 0;
  uint64_t writer_ = 0;                      // the life that has read the journal last
  std::map<uint64_t, uint64_t> successors_;  // by earlier life: the last record that the next found
  std::deque<std::pair<uint64_t, std::string>> appended_;  // and not yet durable
  // The durable records that own states may lack: those after ForgetRecords() or a restart.
  std::deque<std::pair<uint64_t, std::string>> durable_;
  // The dispatcher's own states that wait for their record, by its number.
  std::map<uint64_t, std::vector<std::string>> own_states_;
  mutable CommittedIterations iterations_;  // complete, except for those in the next two sets
  mutable std::set<IterationId> changed_;
  mutable std::set<IterationId> changed_sets_;  // except for the committed sets
};

// Returns a journal that passes everything on to `journal`, and tells `shadow` what is appended,
// what is durable and what is in a snapshot, while `counts` returns true. `life`: as in
// OnRecovered(). `violates` gets what does not fit.
std::unique_ptr<control::Journal> WatchJournal(std::unique_ptr<control::Journal> journal,
                                               Shadow& shadow, uint64_t life,
                                               std::function<bool()> counts,
                                               std::function<void(const absl::Status&)> violates);

}  // namespace penstock::simulator
