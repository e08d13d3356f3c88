// SPDX-License-Identifier: Apache-2.0
// A second state of the dispatcher, made only from records that its journal has reported as
// durable. After each restart the dispatcher's recovered state must equal it. It also keeps what
// each reader has committed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "control/journal/journal.h"
#include "control/protocol/iteration_record.h"
#include "control/state/state.h"
#include "penstock/ids.h"

namespace penstock::simulator {

// The durable record of one iteration, without what is needed to run it.
struct CommittedIteration {
  struct Reader {
    ClientId client;
    protocol::ReceivedSets committed;
  };
  std::vector<Reader> readers;
  std::vector<std::optional<Index>> ends;  // by partition
  bool finished = false;
};

// Outlives all lives of the dispatcher.
class Shadow {
 public:
  // Compares the state with what a new life found in its journal. Takes over records that were
  // durable before the last life could report it. Returns an error that says what differs.
  absl::Status OnRecovered(const control::Recovered& recovered);
  // REQUIRES: `sequence` is the next one.
  absl::Status OnDurable(uint64_t sequence, const std::string& record);

  uint64_t sequence() const { return sequence_; }
  const std::map<IterationId, CommittedIteration>& iterations() const { return iterations_; }

 private:
  void NoteCommitted();

  control::State state_;
  uint64_t sequence_ = 0;
  std::map<IterationId, CommittedIteration> iterations_;
};

// Returns a journal that passes everything on to `journal`, and tells `shadow` what is durable
// while `counts` returns true. `violates` gets what does not fit.
std::unique_ptr<control::Journal> WatchJournal(std::unique_ptr<control::Journal> journal,
                                               Shadow& shadow, std::function<bool()> counts,
                                               std::function<void(const absl::Status&)> violates);

}  // namespace penstock::simulator
