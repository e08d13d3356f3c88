// SPDX-License-Identifier: Apache-2.0
// Monitors the consumers of coordinated reads: finds consumers that are no longer heard from, and
// checks that all consumers return elements of the same row in the same step. The core's lock
// guards it.
#pragma once

#include "control/dispatcher/liveness.h"
#include "control/dispatcher/monitoring/step_audit.h"
#include "control/dispatcher/monitoring/suspicions.h"
#include "control/dispatcher/shared_state.h"

namespace penstock::control {

class ConsumerMonitor {
 public:
  ConsumerMonitor(const SharedState& shared, const Liveness& liveness)
      : shared_(shared), liveness_(liveness) {}

  // Tells the other consumers that the consumer with the session `key` is no longer heard from,
  // unless it has been silent for less than `bound`.
  void Suspect(Transaction& txn, const SessionKey& key, const Suspicions::Cause& cause,
               absl::Duration bound = absl::ZeroDuration());
  void SuspectSilent(Transaction& txn, absl::Time now);
  void DeclareDead(Transaction& txn, const SessionKey& key, absl::Time heard);
  void Heard(Transaction& txn, const ClientPeer& peer);
  // Called when the consumer of `peer` has joined. Forgets the steps that all consumers of the
  // iteration have reported, because this consumer's process may have restarted at an earlier step.
  // Sends this consumer the list of lost consumers.
  void Joined(Transaction& txn, const std::shared_ptr<ClientPeer>& peer);
  bool IsLost(const ClientPeer& peer) const {
    return suspicions_.Knows(peer.iteration, peer.consumer);
  }
  ConsumersLost Lost(IterationId iteration, absl::Time now) const {
    return suspicions_.Of(iteration, now);
  }

  // Returns a description of how the consumers' steps differ; empty if they do not.
  std::string AuditSteps(const ClientPeer& peer, const std::vector<StepMark>& marks);
  // Closes the sessions of all consumers with the same final error.
  void EndTornReading(Transaction& txn, IterationId iteration, const std::string& torn);

 private:
  void NotifyLost(Transaction& txn, IterationId iteration);
  void CountLost();

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  const Liveness& liveness_;
  Suspicions suspicions_;
  StepAudit audit_;
};

}  // namespace penstock::control
