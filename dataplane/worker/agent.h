// SPDX-License-Identifier: Apache-2.0
// A worker's side of the session with the dispatcher. The agent introduces the worker, renews its
// lease with heartbeats, passes on the dispatcher's orders, and reconnects when the connection
// breaks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/observe/event_log.h"
#include "control/observe/wait_lines.h"
#include "control/protocol/worker_messages.h"
#include "control/stub/dispatcher_stub.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/worker/tasks.h"
#include "dataplane/worker/worker_context.h"

namespace penstock::worker {

struct AgentOptions {
  control::WorkerHello hello;  // `held` is filled in each time before it is sent
  // Or the dispatcher's interval, if that is shorter. A dispatcher with many workers asks for
  // fewer.
  absl::Duration heartbeat_interval;
  absl::Duration dispatcher_timeout;  // gives up after this time without a dispatcher
};

// Thread-safe.
class Agent final : private control::ReconnectingWorkerEvents {
 public:
  // Opens the session. `stub` and `tasks` must outlive the agent. ResourceExhausted if the process
  // gets no thread for the agent.
  static absl::StatusOr<std::unique_ptr<Agent>> Start(control::DispatcherStub* stub,
                                                      std::shared_ptr<WorkerContext> context,
                                                      Tasks* tasks, AgentOptions options);
  ~Agent() override;

  // Waits until the dispatcher has welcomed the worker. Otherwise returns the reason why the agent
  // gave up.
  absl::Status AwaitWelcome();
  // Waits until Stop(), or until the agent has given up.
  void AwaitOver();
  absl::Status status() const;  // OK, or the reason why the agent gave up
  // Asks the dispatcher to move all partitions to other workers, and waits for this until
  // `deadline`.
  absl::Status Drain(absl::Time deadline);
  // Reports that the worker is leaving, and ends the session. Idempotent. Waits, but only for a
  // bounded time. Must not be called from an event.
  void Stop();

 private:
  Agent(std::string dispatcher, std::shared_ptr<WorkerContext> context, Tasks* tasks,
        AgentOptions options);
  absl::Status Begin(control::DispatcherStub& stub);

  control::WorkerUp Hello() override;
  void OnMessage(control::WorkerDown message, uint64_t sequence) override;
  void OnLost(const absl::Status& status) override;
  void OnGivenUp(const absl::Status& status) override;

  // Notes which dispatcher sent the message. If its journal is not that of the previous dispatcher,
  // drops the partitions that the previous dispatcher assigned.
  void Follow(const control::WorkerDown& message, uint64_t sequence);
  void OnWelcome(const control::WorkerWelcome& welcome);
  void OnAnswer(const control::WorkerHeartbeatAnswer& answer);
  void Send(control::WorkerUp message);
  void Beat();

  const std::shared_ptr<WorkerContext> context_;
  Tasks* const tasks_;
  const AgentOptions options_;
  const std::string dispatcher_;  // its address

  mutable Mutex mu_;
  Condition changed_;
  bool connected_ GUARDED_BY(mu_) = false;        // welcomed on the current stream
  bool welcomed_ GUARDED_BY(mu_) = false;         // welcomed at least once
  absl::Time lost_ GUARDED_BY(mu_) = BootTime();  // end of the last connection, or the start
  WaitLines wait_lines_ GUARDED_BY(mu_){StderrEventLog()};
  bool draining_ GUARDED_BY(mu_) = false;
  control::Heard heard_ GUARDED_BY(mu_);  // last heard from the dispatcher
  bool drained_ GUARDED_BY(mu_) = false;
  bool stopping_ GUARDED_BY(mu_) = false;
  absl::Duration shortest_interval_ GUARDED_BY(mu_);  // between heartbeats, by the settings
  absl::Duration interval_ GUARDED_BY(mu_);           // between heartbeats
  std::optional<absl::Status> given_up_ GUARDED_BY(mu_);

  Mutex session_mu_;  // acquired last; guards only the pointer
  std::shared_ptr<control::ReconnectingWorkerSession> session_ GUARDED_BY(session_mu_);
  Thread heart_;
};

}  // namespace penstock::worker
