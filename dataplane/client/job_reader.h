// SPDX-License-Identifier: Apache-2.0
// A node Distribute at work: the job, and a session for each repetition that is
// read or not yet wholly committed. All passes of a Repeat behind Distribute share
// one, so that one state holds them all.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "control/stub/dispatcher_stub.h"
#include "control/sync/mutex.h"
#include "dataplane/client/session.h"
#include "dataplane/client/state.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/state_sections.h"
#include "penstock/distribute.h"
#include "penstock/element.h"

namespace penstock::client {

class JobReader {
 public:
  // That of the node at `site` in its running dataset; made at the first call.
  static std::shared_ptr<JobReader> Of(const BuildSite& site);
  ~JobReader();

  // Registers and joins the job at the first call. One thread at a time, as
  // Save() and Restore(). `pass` counts the passes of this running dataset; each
  // is the next repetition of a named job that no iterator over the same Dataset
  // has begun in this process. A job of a cross-trainer cache has one only.
  absl::StatusOr<std::optional<Element>> Next(int64_t pass);
  // Whether Next() has what it gives. False before the first Next() of `pass`.
  bool Ready(int64_t pass);
  // Whether nothing came in `pass`, which has ended, since others took what there was.
  bool OthersTookAll(int64_t pass);
  // FailedPrecondition for a job whose elements are committed on delivery. What a
  // state that may be committed contains goes to the run's StateExchange.
  absl::Status Save(int64_t pass, StateWriter& writer);
  // REQUIRES: nothing of `pass` was read.
  absl::Status Restore(int64_t pass, StateReader& reader);

  // The state of that Save(), or the one restored, is durable; joins the job if
  // nothing was read since it was restored. OK also if a later one is. Any thread.
  // FailedPrecondition for a state that is not known here (any more).
  absl::Status Commit(uint64_t save);
  // Reading has been stopped: tells the dispatcher what was delivered, so that the
  // rest goes to others. Any thread; returns when that is known, or after `bound`.
  void Stop(absl::Duration bound);

 private:
  explicit JobReader(const BuildSite& site);

  // Registers the dataset and joins the job; ends early when cancelled.
  absl::StatusOr<control::JobAnswer> Join(std::stop_token stop);
  absl::Status EnsureJoined();
  // What a Commit() of `save` says; nullopt if there is nothing to say. Then
  // nothing of this node is in that state, or it or a later one is committed.
  absl::StatusOr<std::optional<control::Commit>> CommitOf(uint64_t save);
  static std::optional<control::Commit> CommitOf(uint64_t save, const ReaderState& state);
  bool CountsRepetitions() const;
  int64_t RepetitionOf(int64_t pass) REQUIRES(mu_);
  std::shared_ptr<Session> SessionIn(int64_t pass) const
      REQUIRES(mu_);  // nullptr: it was not begun
  // The session on `repetition`, begun if there is none.
  absl::StatusOr<std::shared_ptr<Session>> SessionOf(int64_t repetition) REQUIRES(mu_);
  ReaderState StateNow(int64_t repetition) REQUIRES(mu_);
  // `state` is part of the one being written, or of one saved to be part of another.
  absl::Status Put(JobState state, StateWriter& writer);
  // Whether elements come again as they came: a node above that has read ahead may go
  // on from where it read.
  bool ComesAgainInOrder() const;
  // With what the dispatcher knows, which is asked for.
  absl::StatusOr<std::string> SectionOf(JobState state);
  absl::Status TakeUp(int64_t pass, JobState state);
  // What all ranks' states contain, of a job under another service or launch.
  absl::Status TakeUpAll(int64_t pass, const StateExchange::TakenUp& taken_up);
  // Ends the sessions, forgets states and job; a new incarnation begins.
  void BeginAnew() REQUIRES(joining_mu_, mu_);
  bool CommitsStates() const;
  bool AllEnded() const REQUIRES(mu_);

  const NodePtr node_;
  const int number_;  // of the node in its graph
  const DistributeOptions options_;
  const std::shared_ptr<StateExchange> states_;  // nullptr: states are positions and nothing else
  const bool delivers_later_;  // than it gives, where nodes behind it hold elements
  const std::atomic<bool>* const cancelled_;
  Pool& pool_;                                          // where elements are received
  TlsConfig tls_;                                       // as transport_preference_
  transfer::TcpOptions tcp_;                            // as transport_preference_
  transfer::TransportPreference transport_preference_;  // set before the first session begins
  std::unique_ptr<control::DispatcherStub> stub_;       // set with it

  Mutex joining_mu_;  // held while the job is joined; taken before mu_
  Mutex mu_;          // not held while anything is waited for
  struct Pass {
    int64_t pass = 0;
    int64_t repetition = 0;
  };
  std::optional<Pass> present_ GUARDED_BY(mu_);  // nullopt: none was begun or restored
  std::optional<control::JobAnswer> job_ GUARDED_BY(mu_);
  std::atomic<bool> joined_ = false;  // whether there is a job_
  ClientId client_ GUARDED_BY(mu_);
  Incarnation incarnation_ GUARDED_BY(mu_);
  std::optional<JobState> restored_ GUARDED_BY(mu_);  // until its sessions have begun
  // Of all ranks: asked for when the job is joined; the job's name and seed with it.
  struct MergedStates {
    control::Restoration restoration;
    std::string job_name;
    std::string run_id;
    uint64_t seed = 0;
  };
  std::optional<MergedStates> merged_states_ GUARDED_BY(mu_);
  // Goes on for a process that died, and says so in every repetition it joins:
  // of those that its state does not know it has nothing.
  bool took_up_ GUARDED_BY(mu_) = false;
  std::map<int64_t, std::shared_ptr<Session>> sessions_ GUARDED_BY(mu_);  // by repetition
  std::map<uint64_t, ReaderState> saves_ GUARDED_BY(mu_);  // not committed, by number
  uint64_t newest_save_ GUARDED_BY(mu_) = 0;
  bool read_ahead_ GUARDED_BY(mu_) = false;  // a node above takes more than it has given on
  bool advised_ = false;                     // of Next()'s thread: its first answer was looked at
  uint64_t committed_save_ GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::client
