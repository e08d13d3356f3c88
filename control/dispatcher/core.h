// SPDX-License-Identifier: Apache-2.0
// The dispatcher without a network: it takes requests and streams, answers the requests, and sends
// messages on the streams. Under its lock it checks an event, decides (control/protocol,
// control/policy), applies the changes and appends them to the journal. Messages leave in the order
// of the decisions, each as soon as the record that it depends on is durable. Under the lock, the
// core does no I/O, never waits, and reads no clock but CoreOptions::now.
//
// Each event is one Transaction (transaction.h). The core's parts handle the event. Each part has
// one subject. The parts that a client's heartbeat needs have locks of their own, so that a
// heartbeat does not wait for an event. These locks are taken after the core's, and under them no
// other lock is taken except the lock of a metric (docs/threads.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/dispatcher/consumer_monitor.h"
#include "control/dispatcher/dataset_registry.h"
#include "control/dispatcher/job_registry.h"
#include "control/dispatcher/link_monitor.h"
#include "control/dispatcher/liveness.h"
#include "control/dispatcher/lives.h"
#include "control/dispatcher/membership_sender.h"
#include "control/dispatcher/messages/replies.h"
#include "control/dispatcher/monitoring/status_summary.h"
#include "control/dispatcher/partition_placer.h"
#include "control/dispatcher/session_manager.h"
#include "control/dispatcher/shared_state.h"
#include "control/dispatcher/worker_manager.h"
#include "control/journal/journal.h"
#include "control/policy/scaling.h"
#include "control/protocol/principal.h"
#include "control/protocol/saved_reading.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::control {

// The dispatcher's state and its handling of events. Any thread may call any method, but the
// messages of one stream, and its end, come one at a time. Callbacks run in order and one at a
// time, on the journal's thread or inside a call. They must not block.
class Core {
 public:
  template <class Answer>
  using Done = std::function<void(absl::StatusOr<Answer>)>;
  using DoneEmpty = std::function<void(absl::Status)>;

  // Recovers the state from the journal and begins a new term. DataLoss if a record cannot be
  // applied; the error of CoreOptions::job_tokens.
  static absl::StatusOr<std::unique_ptr<Core>> Open(CoreOptions options,
                                                    std::unique_ptr<Journal> journal);
  ~Core();  // answers Unavailable to all requests that still wait

  // --- Requests ---
  // PermissionDenied if `caller` may not do this (control/policy/authorization.h).
  void RegisterDataset(const RegisterDatasetRequest& request, Done<RegisterDatasetAnswer> done,
                       const Caller& caller = {});
  // Edition 0: the dataset that the id has now. All answers for a dataset share its record.
  void GetDataset(const std::string& id, uint64_t edition,
                  Done<std::shared_ptr<const DatasetRecord>> done, const Caller& caller = {});
  void UnregisterDataset(const std::string& id, DoneEmpty done, const Caller& caller = {});
  void GetOrCreateJob(const GetOrCreateJobRequest& request, Done<JobAnswer> done,
                      const Caller& caller = {});
  void RestoreJob(const RestoreJobRequest& request, Done<JobAnswer> done,
                  const Caller& caller = {});
  void GetReading(const GetReadingRequest& request, Done<SavedRepetition> done,
                  const Caller& caller = {});
  void CancelJob(const std::string& name_or_id, DoneEmpty done, const Caller& caller = {});
  void RemoveJob(const std::string& name_or_id, DoneEmpty done, const Caller& caller = {});
  // Lists the jobs and datasets on which the caller may act.
  void GetStatus(const StatusRequest& request, Done<DispatcherStatus> done,
                 const Caller& caller = {});
  void GetStatus(Done<DispatcherStatus> done) { GetStatus({}, std::move(done)); }

  // --- Streams ---
  // A stream keeps the caller with which it was opened. Its hello is checked.
  std::shared_ptr<ClientPeer> OpenClient(std::shared_ptr<ClientStreamWriter> writer,
                                         Caller caller = {});
  void OnMessage(const std::shared_ptr<ClientPeer>& peer, ClientUp message);
  void OnClosed(const std::shared_ptr<ClientPeer>& peer);
  // Called when a message on the stream cannot be read, for the reason `why`. Ends the session.
  void OnUnreadable(const std::shared_ptr<ClientPeer>& peer, const absl::Status& why);
  // Announces that the dispatcher is stopping. No client whose stream ends after this call is
  // suspected.
  void BeginToLeave();
  std::shared_ptr<WorkerPeer> OpenWorker(std::shared_ptr<WorkerStreamWriter> writer,
                                         Caller caller = {});
  void OnMessage(const std::shared_ptr<WorkerPeer>& peer, WorkerUp message);
  void OnClosed(const std::shared_ptr<WorkerPeer>& peer);
  // Called when a message on the stream cannot be read, for the reason `why`. Ends the stream, but
  // not the session. The worker opens another stream and repeats its messages.
  void OnUnreadable(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& why);

  // --- Time ---
  // Finds dead clients and workers, and jobs that no process needs. Called several times a second,
  // by one thread.
  void Sweep();
  // Finds dead workers before their leases expire. Called as often as Sweep(), but by another
  // thread, because port_refuses() may block, and meanwhile the sweeps must go on.
  void ProbeBrokenWorkers();

  int NumWorkers() const;  // connected
  uint64_t sequence() const;

 private:
  friend class Transaction;
  // Makes statuses (core_status.cc). Counts elements for about a millisecond at a time under the
  // lock, if readers may have lost some, and then holds it once for the items of the page.
  class StatusMaker {
   public:
    explicit StatusMaker(Core& core) : core_(core) {}
    absl::StatusOr<DispatcherStatus> Make(const StatusRequest& request, const Caller& caller);

   private:
    void CountElements();
    Core& core_;
  };

  Core(CoreOptions options, std::unique_ptr<Journal> journal);
  absl::Status Recover() REQUIRES(mu_);
  void OnDurable(absl::StatusOr<uint64_t> sequence);
  void Deliver();
  void OnHeartbeat(const std::shared_ptr<ClientPeer>& peer, ClientHeartbeat heartbeat);

  const CoreOptions options_;
  std::unique_ptr<Journal> journal_;  // constant until the end
  std::atomic<uint64_t> durable_ = 0;

  mutable Mutex mu_;
  SharedState shared_ GUARDED_BY(mu_);
  Replies replies_ GUARDED_BY(mu_);
  // The parts. If a part uses other parts, these are passed to its constructor or its methods.
  Scaling scaling_;    // thread-safe
  Liveness liveness_;  // thread-safe
  LinkMonitor links_;  // thread-safe
  Lives lives_ GUARDED_BY(mu_);
  ConsumerMonitor consumers_ GUARDED_BY(mu_);
  MembershipSender membership_ GUARDED_BY(mu_);
  PartitionPlacer placer_ GUARDED_BY(mu_);
  DatasetRegistry datasets_ GUARDED_BY(mu_);
  JobRegistry jobs_ GUARDED_BY(mu_);
  SessionManager sessions_ GUARDED_BY(mu_);
  WorkerManager workers_ GUARDED_BY(mu_);
  IterationSummaries summaries_ GUARDED_BY(mu_);

  // The open transactions, including transactions that wait for mu_. While a transaction is open,
  // received messages may still be unread.
  struct OpenTransactions {
    std::atomic<int> count = 0;
    std::atomic<uint64_t> ends = 0;  // how often `count` has dropped to 0
  };
  OpenTransactions transactions_;
  std::atomic<ThreadId> appending_{};  // the thread that is in journal_->Append, under mu_
};

}  // namespace penstock::control
