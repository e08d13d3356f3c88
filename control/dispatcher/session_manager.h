// SPDX-License-Identifier: Apache-2.0
// Keeps track of client sessions, and handles the messages that clients send, except the part of a
// heartbeat that Core::OnHeartbeat() handles. The core's lock guards it. Its one reason to change:
// the protocol between clients and the dispatcher.
#pragma once

#include "absl/types/span.h"
#include "control/dispatcher/consumer_monitor.h"
#include "control/dispatcher/job_registry.h"
#include "control/dispatcher/link_monitor.h"
#include "control/dispatcher/liveness.h"
#include "control/dispatcher/lives.h"
#include "control/dispatcher/partition_placer.h"
#include "control/dispatcher/shared_state.h"
#include "control/policy/scaling.h"

namespace penstock::control {

class SessionManager {
 public:
  // `sessions`: a reference to shared.sessions, through which the manager changes it.
  SessionManager(const SharedState& shared, Sessions& sessions, Liveness& liveness,
                 LinkMonitor& links, Scaling& scaling, ConsumerMonitor& consumers,
                 PartitionPlacer& placer, Lives& lives, JobRegistry& jobs)
      : shared_(shared),
        sessions_(sessions),
        liveness_(liveness),
        links_(links),
        scaling_(scaling),
        consumers_(consumers),
        placer_(placer),
        lives_(lives),
        jobs_(jobs) {}

  void OnMessage(Transaction& txn, const std::shared_ptr<ClientPeer>& peer,
                 const ClientUp& message);  // other than a heartbeat
  void OnClosed(Transaction& txn, const std::shared_ptr<ClientPeer>& peer);
  void OnUnreadable(Transaction& txn, const std::shared_ptr<ClientPeer>& peer,
                    const absl::Status& why);
  // Announces that the dispatcher is stopping. No client whose stream ends after this call is
  // suspected.
  void BeginToLeave() { leaving_ = true; }
  // Ends the sessions whose lease has expired. The client of a finished iteration has nothing to
  // lose: its stream ends, and it may open another.
  void Expire(Transaction& txn, absl::Time now);
  void ForgetLease(const SessionKey& key);

  // The consequences of a consumer's heartbeat. Most heartbeats have none, and need no transaction.
  struct ConsumerNews {
    bool back = false;    // the client is a lost consumer that is back
    IterationId torn_in;  // the iteration whose consumers differ; `torn` says how
    std::string torn;
  };
  ConsumerNews OnConsumerBeat(const ClientPeer& peer, const std::vector<StepMark>& marks);
  // Called if the news says that consumers differ, or that a lost consumer is back.
  void OnConsumerNews(Transaction& txn, const ClientPeer& peer, const ConsumerNews& news);
  // Called if the answer is due.
  void AnswerHeartbeat(Transaction& txn, const ClientPeer& peer, uint64_t counter);

 private:
  void Handle(Transaction& txn, const std::shared_ptr<ClientPeer>& peer, const ClientUp& message);
  // Ends the stream in a way that makes the client open another, and shows it that the dispatcher
  // is up.
  static void SendBack(Transaction& txn, const ClientPeer& peer, const absl::Status& why);

  // --- Hellos (session_hello.cc) ---

  void OnHello(Transaction& txn, const std::shared_ptr<ClientPeer>& peer, const ClientHello& hello);
  absl::StatusOr<const JobRecord*> CheckHello(Transaction& txn, const ClientPeer& peer,
                                              const ClientHello& hello);
  absl::Status CheckLimit(const JobRecord& job, const ClientHello& hello) const;
  // Returns why the hello of another repetition of the state would be refused. If none would be,
  // commits the state in all of them, as each hello does in its own.
  absl::Status ResumeOthers(Transaction& txn, const JobRecord& job, const ClientHello& hello);
  // Commits elements of one repetition for the client's present process, without an answer.
  void CommitOne(Transaction& txn, IterationId iteration, ClientId client,
                 const protocol::Commit& commit);
  // Returns the iteration, and recalls it if it is past; null if it never began.
  const IterationState* FindOrRecall(Transaction& txn, JobId job, int64_t repetition);
  // `with_state`: whether to use the restored state in the hello.
  // ResourceExhausted if the job has too many iterations that are not closed.
  absl::Status CheckOpenIterations(const JobRecord& job) const;
  static absl::StatusOr<protocol::Connect> ConnectOf(const JobRecord& job,
                                                     const IterationState& iteration,
                                                     const ClientHello& hello, bool with_state);
  // InvalidArgument if a partition does not exist: the numbers are not trusted.
  static absl::StatusOr<protocol::ReceivedSets> ToReceivedSets(
      const std::vector<PartitionIndices>& from, const IterationState& iteration);
  // Replaces the session's earlier stream, if it has one.
  void TakeStream(Transaction& txn, const SessionKey& key, const std::shared_ptr<ClientPeer>& peer,
                  const ClientHello& hello);

  // --- Elements (session_reports.cc) ---

  // Handles all reports of one message together, so that their consequences are computed only once.
  // `complete`: Report::complete.
  void OnReports(Transaction& txn, const ClientPeer& peer,
                 absl::Span<const PartitionReport> reports, bool complete);
  void OnCommit(Transaction& txn, const std::shared_ptr<ClientPeer>& peer, const Commit& commit);
  void OnLeave(Transaction& txn, const ClientPeer& peer, const Leave& leave);
  void OnReceiveLimit(Transaction& txn, const ClientPeer& peer, const ReceiveLimit& limit);

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  Sessions& sessions_;
  Liveness& liveness_;
  LinkMonitor& links_;
  Scaling& scaling_;
  ConsumerMonitor& consumers_;
  PartitionPlacer& placer_;
  Lives& lives_;
  JobRegistry& jobs_;
  uint64_t streams_ = 0;  // number of the last stream of a session
  bool leaving_ = false;
};

}  // namespace penstock::control
