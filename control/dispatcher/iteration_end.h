// SPDX-License-Identifier: Apache-2.0
// Ends an iteration before its readers have all elements, or forgets it. Its one reason to change:
// the set of things that end together with an iteration.
#pragma once

#include <map>

#include "control/dispatcher/link_monitor.h"
#include "control/dispatcher/partition_placer.h"
#include "control/dispatcher/session_manager.h"
#include "control/dispatcher/shared_state.h"

namespace penstock::control {

// Made by Transaction::EndOf(). Must not outlive the transaction.
class IterationEnd {
 public:
  struct Parts {
    Transaction& txn;
    const SharedState& shared;
    std::map<IterationId, protocol::IterationContext>& contexts;
    SessionManager& sessions;
    LinkMonitor& links;
    PartitionPlacer& placer;
  };
  // REQUIRES: the iteration exists.
  IterationEnd(const Parts& parts, const IterationState& iteration)
      : parts_(parts), iteration_(iteration) {}

  void TakeFromWorkers();
  // Ends the sessions of all clients of the iteration.
  void CloseSessions(const absl::Status& reason);
  // Ends the iteration for good. All its clients get `reason`.
  void Fail(const absl::Status& reason);
  // Forgets all data about the iteration except its record.
  void Forget();

 private:
  void ForgetLeases();

  const Parts parts_;
  const IterationState& iteration_;
};

}  // namespace penstock::control
