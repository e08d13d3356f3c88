// SPDX-License-Identifier: Apache-2.0
// All work of a worker: the partitions placed on this worker, by iteration, and the clients' links
// to the iterations. Executes the dispatcher's orders; does not depend on RPC.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/worker_messages.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/worker/iteration_sink.h"
#include "dataplane/worker/partition_runner.h"
#include "dataplane/worker/worker_context.h"

namespace penstock::worker {

// Thread-safe; only Stop() waits.
class Tasks {
 public:
  explicit Tasks(std::shared_ptr<WorkerContext> context) : context_(std::move(context)) {}
  ~Tasks();  // same as Stop(), but does not wait

  // --- Orders ---------------------------------------------------------------------

  // Each order may arrive twice. An order with a placement below the current one is ignored. If the
  // token of an order differs from the token of the local iteration with the same number, the order
  // is from another dispatcher, so the local iteration ends.

  void Do(const control::Assign& assign);
  void Do(const control::AddReader& order);
  void Do(const control::RemoveReader& order);
  void Do(const control::Unassign& order);
  void Do(const control::AllowRows& order);
  void Do(const control::Splits& answer);
  // Sends again the messages that may have been lost with the old stream. Call this after the
  // dispatcher has welcomed the worker on a new stream.
  void SayAgain();
  // Drops all work, because the dispatcher that assigned the work is gone: partitions end, and
  // links close with `reason`.
  void Drop(const absl::Status& reason);

  // --- Links ------------------------------------------------------------------------

  // Accepts a link, for every Listener. Unavailable while no partition of the iteration is placed
  // on this worker.
  absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
      const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link);

  // Releases partitions and iterations that have ended since the last order. An iteration is kept
  // until its last partition's thread and its last link are gone. Call this regularly.
  void ForgetIdle();

  std::vector<control::PlacedPartition> held() const;
  // Returns the work of the partitions placed on this worker, by iteration.
  std::vector<control::IterationWork> Work() const;
  int size() const;  // partitions

  // Ends all partitions and closes all links. DeadlineExceeded if a runner is still inside a
  // function of the dataset at `deadline`; this runner ends in the background.
  absl::Status Stop(absl::Time deadline);

 private:
  struct Iteration {
    std::string token;
    std::shared_ptr<IterationSink> sink;
    std::map<PartitionId, std::shared_ptr<PartitionRunner>> runners;
  };
  using Runners = std::vector<std::shared_ptr<PartitionRunner>>;

  std::shared_ptr<PartitionRunner> Find(const control::PlacedPartition& of) const;
  void RetireLocked(std::shared_ptr<PartitionRunner> runner) REQUIRES(mu_);
  std::vector<std::shared_ptr<IterationSink>> RetireAllLocked() REQUIRES(mu_);
  void ForgetDoneLocked() REQUIRES(mu_);
  void ForgetIdleLocked() REQUIRES(mu_);

  const std::shared_ptr<WorkerContext> context_;
  mutable Mutex mu_;
  std::map<IterationId, Iteration> iterations_ GUARDED_BY(mu_);
  Runners retired_ GUARDED_BY(mu_);  // cancelled, perhaps still running
  bool stopped_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::worker
