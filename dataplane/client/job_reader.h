// SPDX-License-Identifier: Apache-2.0
// A running Distribute node: joins the job, reads the job through sessions (job_sessions.h), and
// saves and commits the node's state. All passes of a Repeat after Distribute share one reader, so
// that one state covers all passes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "dataplane/client/job_connection.h"
#include "dataplane/client/job_sessions.h"
#include "dataplane/client/registration.h"
#include "dataplane/client/saved_states.h"
#include "dataplane/client/session/session.h"
#include "dataplane/client/session_state/delivery_fields.h"
#include "dataplane/client/session_state/state.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/state_sections.h"
#include "penstock/distribute.h"
#include "penstock/element.h"

namespace penstock::client {

class JobReader {
 public:
  // Returns the reader of the node at `site`. The running dataset keeps the reader.
  static std::shared_ptr<JobReader> Of(const BuildSite& site);

  // Returns the next element of `pass`. The first call registers and joins the job. Only one thread
  // at a time may be in Next(), Save() or Restore(). `pass` counts the passes of this running
  // dataset. For a named job each pass is the next repetition that no iterator over the same
  // Dataset has begun in this process. A job of a cross-trainer cache has only one repetition.
  absl::StatusOr<std::optional<Element>> Next(int64_t pass);
  // Returns true if Next() would not wait. False before the first Next() of `pass`.
  bool Ready(int64_t pass);
  // Returns true if `pass` has ended without an element, because other readers got all elements.
  bool OthersTookAll(int64_t pass);
  // Returns FailedPrecondition for a job whose elements are committed on delivery. If the state may
  // be committed, passes its contents to the run's StateExchange.
  absl::Status Save(int64_t pass, StateWriter& writer);
  // REQUIRES: no element of `pass` has been read.
  absl::Status Restore(int64_t pass, StateReader& reader);

  // Commits the state that Save() wrote as number `save`, or the restored state. REQUIRES: the
  // caller has made the state durable. Joins the job if nothing has been read since the restore.
  // Also returns OK if a later state is committed. Returns FailedPrecondition for a state that this
  // reader does not know, or no longer keeps. Any thread.
  absl::Status Commit(uint64_t save);
  // Called when the running dataset is at its end: waits until the deliveries of passes that were
  // read to their ends are durable. Errors as those of Next(). Any thread.
  absl::Status AwaitEnd();
  // Stops reading: reports the deliveries to the dispatcher, so that other readers get the
  // remaining elements. Any thread. Returns when the dispatcher has confirmed the report, or after
  // `bound`.
  void Stop(absl::Duration bound);

 private:
  explicit JobReader(const BuildSite& site);

  absl::Status EnsureJoined();
  // Returns the message for a Commit() of `save`; nullopt if there is nothing to commit, because
  // the state has no part of this node, or because this state or a later one is committed.
  absl::StatusOr<std::optional<control::Commit>> CommitOf(uint64_t save);
  static std::optional<control::Commit> CommitOf(uint64_t save, const ReaderState& state);
  // Returns the session on `repetition`, which it begins if there is none.
  absl::StatusOr<std::shared_ptr<Session>> SessionOf(int64_t repetition) REQUIRES(mu_);
  JobSessions::Sessions Sessions();  // all
  ReaderState StateNow(int64_t repetition) REQUIRES(mu_);
  // Adds `state` to the state that is being written. A position that a node above keeps is added
  // later, to the state that will contain this position.
  absl::Status Put(JobState state, StateWriter& writer);
  // Returns true if elements that are sent again come in the same order. A node above that has read
  // ahead may then continue from the position that it has kept.
  bool ComesAgainInOrder() const;
  // Asks the dispatcher for the dispatcher's part of the state, and returns the complete section.
  absl::StatusOr<std::string> SectionOf(JobState state);
  absl::Status TakeUp(int64_t pass, JobState state);
  // Restores the states of all ranks, for a job under another service or launch.
  absl::Status TakeUpAll(int64_t pass, const StateExchange::TakenUp& taken_up);
  // Ends the sessions, forgets states and the job, and begins a new incarnation. Destroy the result
  // without the lock.
  JobSessions::Sessions BeginAnew() REQUIRES(joining_mu_, mu_);

  const NodePtr node_;
  const int number_;  // the node's number in its graph
  const DistributeOptions options_;
  const DeliveryFields delivery_;                // from options_, with OfMember()
  const bool commits_states_;                    // the job's terms: only states are committed
  const std::shared_ptr<StateExchange> states_;  // nullptr: a state is only a position
  const bool delivers_later_;  // elements that later nodes hold are not delivered yet
  const std::stop_token stop_;
  Pool& pool_;                // for received elements
  JobConnection connection_;  // open once there is a job_; outlives the sessions

  Mutex joining_mu_;  // held while the job is joined; acquired before mu_
  Mutex mu_;          // not held during any wait
  std::optional<control::JobAnswer> job_ GUARDED_BY(mu_);
  std::atomic<bool> joined_ = false;  // true if there is a job_
  struct Process {                    // this reader, as the dispatcher knows it
    ClientId client{RandomId()};
    Incarnation incarnation{RandomId()};
    // Present, but empty, if this reader continues for a process that died. The reader's sessions
    // report `state` in every repetition that the reader joins. The reader has no element of a
    // repetition that the restored state does not name.
    std::optional<IndicesByPartition> state;
  };
  Process process_ GUARDED_BY(mu_);
  std::optional<JobState> restored_ GUARDED_BY(mu_);  // until the state's sessions have begun
  std::optional<MergedStates> merged_states_ GUARDED_BY(mu_);  // until the job is joined with them
  JobSessions sessions_ GUARDED_BY(mu_);
  SavedStates saves_ GUARDED_BY(mu_);
  bool advised_ = false;  // for Next()'s thread: the first result has been examined
};

}  // namespace penstock::client
