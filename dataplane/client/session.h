// SPDX-License-Identifier: Apache-2.0
// One client's session on one iteration: its stream to the dispatcher, its links to the workers,
// and the received elements. docs/threads.md, "A client".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/observe/event_log.h"
#include "control/observe/wait_lines.h"
#include "control/protocol/receiver.h"
#include "control/protocol/round_queue.h"
#include "control/stub/dispatcher_stub.h"
#include "control/sync/mutex.h"
#include "dataplane/client/credit_manager.h"
#include "dataplane/client/merge.h"
#include "dataplane/client/reader.h"
#include "dataplane/client/receive_limits.h"
#include "dataplane/client/state.h"
#include "dataplane/client/step_marks.h"
#include "dataplane/client/step_times.h"
#include "dataplane/dataset/engine/pending_deliveries.h"
#include "dataplane/transfer/polling.h"
#include "penstock/distribute.h"
#include "penstock/element.h"
#include "penstock/lost_consumers.h"
#include "penstock/spec.h"

namespace penstock::client {

struct SessionOptions {
  DistributeOptions distribute;
  transfer::TransportPreference transport_preference;  // the protocol of the links
  TlsConfig tls;                                       // for grpc links
  transfer::TcpOptions tcp;
  Spec spec;
  control::JobAnswer job;
  int64_t repetition = 0;
  ClientId client;
  Incarnation incarnation;
  std::optional<IndicesByPartition> state;  // delivered before a restore
  control::Heard heard;                     // when that state was saved
  // Claims what `state` holds and leaves: nobody will call Next().
  bool claims_only = false;
  // An element of Next() is delivered when PendingDeliveries report it, if the calling thread has
  // some.
  bool delivers_later = false;
  // For received elements, if the protocol can use it; outlives the session. nullptr:
  // DefaultPool().
  Pool* pool = nullptr;
  // Set from any thread: reading ends, and what was delivered is reported. May be null.
  const std::atomic<bool>* cancelled = nullptr;
  std::shared_ptr<EventLog> events = StderrEventLog();  // about links
};

class Session final : private control::ReconnectingClientEvents,
                      private ReaderEvents,
                      private GivesElements {
 public:
  // Does not wait. `stub` outlives the session. ResourceExhausted if the process gets no thread for
  // it; the dispatcher has heard nothing then.
  static absl::StatusOr<std::unique_ptr<Session>> Begin(SessionOptions options,
                                                        control::DispatcherStub& stub);
  // Says goodbye, so that nobody waits for this session, and waits briefly for the answer. Under
  // keep = committed, what is not committed stays this session's until its lease runs out: another
  // process may come with its state.
  ~Session();

  int64_t repetition() const { return options_.repetition; }

  // Returns the next element, nullopt at the end and ever after. Waits. An element's error is
  // returned in its place. Unavailable if a worker with a part of the data, or every worker, was
  // out of reach for options.timeout and still is; the next call waits again. FailedPrecondition
  // and refusals of the dispatcher are final. One thread at a time.
  absl::StatusOr<std::optional<Element>> Next();
  // Returns true if Next() would not wait.
  bool Ready();

  IndicesByPartition delivered() const;
  control::Heard heard() const;  // the last that was heard of the dispatcher
  bool ended() const;            // Next() has returned nullopt, and all it returned is delivered
  // Returns how many elements others got if the end came before Next() returned any, else 0.
  int64_t others_took_all() const;

  // Returns true when `commit` is durable at the dispatcher. Returns false if nothing was sent,
  // since this session has left, or its stream is over and it owes nothing. Its deliveries are
  // committed then, and the sessions of the other repetitions in `commit` must commit them.
  // Cancelled when the reading is, DeadlineExceeded after options.timeout. Any thread; calls run
  // one after another.
  absl::StatusOr<bool> Commit(const control::Commit& commit);

  // Ends reading: Next() returns Cancelled. Commits what was delivered, if it may be (not under
  // keep = committed, unless all of it is committed). Waits for the dispatcher's answer, at most
  // `bound`. Any thread.
  void Leave(absl::Duration bound);

  // The session will be destroyed without a goodbye: another incarnation takes its place.
  void Abandon();

 private:
  Session(SessionOptions options, control::DispatcherStub& stub);

  // Defined in session.cc; called from the stream's thread.
  control::ClientUp Hello() override;
  void OnMessage(control::ClientDown message, uint64_t sequence) override;
  void OnLost(const absl::Status& status) override;
  void OnGivenUp(const absl::Status& status) override;
  void Handle(const control::Welcome& welcome) REQUIRES(mu_);
  void Handle(const control::ClientHeartbeatAnswer& answer) REQUIRES(mu_);
  void Handle(const control::Membership& membership) REQUIRES(mu_);
  void NoteWhetherServed(const control::Membership& membership) REQUIRES(mu_);
  void Handle(const control::Fence& fence) REQUIRES(mu_);
  // Takes out the received elements of `partition` that others wait for, and returns their indices:
  // all if nobody has called Next() for a while, else the later half.
  IndexSet GiveBack(PartitionId partition) REQUIRES(mu_);
  void Handle(const control::ReportAtOnce&) REQUIRES(mu_);
  void Handle(const control::Committed& committed) REQUIRES(mu_);
  void Handle(const control::End& end) REQUIRES(mu_);
  void Handle(const control::Left&) REQUIRES(mu_);
  void Handle(const control::Agreed& agreed) REQUIRES(mu_);
  void Handle(const control::ConsumersLost& lost) REQUIRES(mu_);
  // Marks as silent the consumers whose connection ended. Without the dispatcher nobody knows
  // whether they are back.
  void DoubtEnded() REQUIRES(mu_);
  void Handle(const control::SessionError& error) REQUIRES(mu_);

  // Defined in session_rounds.cc, for a coordinated read.
  bool coordinated() const { return options_.distribute.num_consumers.has_value() && !ordered(); }
  // Returns the index as a Receiver counts: the row, where each index belongs to one consumer.
  Index PositionOf(const Identity& identity) const REQUIRES(mu_);
  // Returns the identity for this member. A worker sends the same index to all members of a group,
  // for an element or an error, and each member has an index of its own.
  Identity ToThisMember(Identity identity) const;
  void KeepForRound(ReceivedElement received) REQUIRES(mu_);
  // Returns the element of the next round, or an error; nullopt if the element is dropped.
  absl::StatusOr<std::optional<Element>> DeliverRound() REQUIRES(mu_);
  absl::Status ErrorOf(const protocol::Agreed::Round& round, int64_t number) const REQUIRES(mu_);
  protocol::RoundsReport SayRounds() REQUIRES(mu_);
  void ReportReceived() REQUIRES(mu_);
  // Returns true if a report is due: the next step may wait for it, or there is much to report.
  bool MustSay() const REQUIRES(mu_);
  // How long Next() waits, at most, before what was delivered is reported.
  static constexpr std::chrono::nanoseconds kLongestUnsaid = std::chrono::milliseconds(2);
  int64_t ReceiveBudget() const REQUIRES(mu_);  // elements that may be received and undelivered
  void CheckConsumers(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void NoteBlocked() REQUIRES(mu_);                  // since when it waits for other consumers
  std::string BlockingReason() const REQUIRES(mu_);  // for messages
  bool HasSome() const REQUIRES(mu_);                // something that Next() has not returned
  bool IsOver() const REQUIRES(mu_);                 // everything was returned
  // Returns true if any reader of the job may get any element (IterationRecord::shared()).
  bool shared() const { return !coordinated() && !ordered() && !reads_window(); }

  // Returns true if elements come in an order of their own. A delivery makes room for more then.
  bool ordered() const { return options_.distribute.order == MergeOrder::kDeterministic; }
  void OpenOrdered(const control::Welcome& welcome) REQUIRES(mu_);
  void SendReceiveLimit(PartitionId partition) REQUIRES(mu_);
  // Returns the element that Next() gives this consumer at that step or round.
  absl::StatusOr<Element> AtStep(int64_t step, ReceivedElement received) const;

  // Marks elements that Next() returned earlier as delivered. Like Next(), it waits while the lease
  // is not known to hold: others may get the elements.
  absl::Status OnDelivered(absl::Span<const PendingDelivery> deliveries) override;

  // Defined in session_links.cc; called from the links' threads.
  void OnLinkOpen(WorkerId worker) override;
  void OnElements(WorkerId worker, absl::Span<Element> elements) override;
  void OnElementError(WorkerId worker, const Identity& identity,
                      const absl::Status& error) override;
  void OnRecalled(WorkerId worker, int64_t count) override;
  void OnLinkClosed(WorkerId worker, const absl::Status& reason) override;
  // Called around the elements of one event.
  bool BeginReceive(WorkerId worker) REQUIRES(mu_);  // true if Next() may wait for it
  void Receive(ReceivedElement received) REQUIRES(mu_);
  void EndReceive(bool waited_for) REQUIRES(mu_);

  // Runs the agent's thread: heartbeats, reports, dialling, recalls, leaving.
  void Run();
  // The parts of a pass of the agent. Links are dialled and closed without the lock. Each part
  // moves `wake` to the time when it must run again.
  using Lock = MutexLock;
  void ReopenStream() REQUIRES(mu_);
  void TendStream(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void TendLinks(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  bool CloseOneLink(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  bool DialOneLink(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void TendCredits(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  transfer::DialOptions DialOptionsFor(const Reader::Progress& progress) const REQUIRES(mu_);
  // Gives up a protocol that lacks the means here, such as memory, after some failures.
  void GiveUpAfterFailures(Reader::Progress& progress) REQUIRES(mu_);
  void LinkFailed(Reader& reader, const absl::Status& reason) REQUIRES(mu_);
  void CheckReach(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void CheckServed(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void TendWaiting(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void SayWaits() REQUIRES(mu_);               // in session_waits.cc, as WaitsFor()
  std::string WaitsFor() const REQUIRES(mu_);  // for messages
  void RecallAll() REQUIRES(mu_);

  protocol::Receiver& ReceiverOf(PartitionId partition) REQUIRES(mu_);
  // Returns true if the dispatcher has named the partition, or may be about to. A worker may name
  // any number.
  bool Known(PartitionId partition) const REQUIRES(mu_);
  void SendReport(bool waits = false) REQUIRES(mu_);
  void Beat() REQUIRES(mu_);
  // Forgets workers without a partition or a link, whose counts have just been reported.
  void ForgetGone() REQUIRES(mu_);
  std::vector<control::LinkCounts> CountLinks() const REQUIRES(mu_);
  void SayGoodbye(Lock& lock, absl::Duration bound) REQUIRES(mu_);
  void SendLeave() REQUIRES(mu_);
  bool MayLeave() const REQUIRES(mu_);
  bool Owes() const REQUIRES(mu_);  // something is delivered that a Commit() must commit
  // Returns true if elements come from windows that trainers share: with gaps, and perhaps
  // repeated.
  bool reads_window() const { return options_.distribute.cross_trainer_cache.has_value(); }
  bool LeaseHolds() const REQUIRES(mu_);
  bool IsCancelled() const REQUIRES(mu_);
  void Fail(const absl::Status& status) REQUIRES(mu_);
  IndicesByPartition DeliveredLocked() const REQUIRES(mu_);
  void WakeAgent() REQUIRES(mu_);
  void WakeWaiting() REQUIRES(mu_);  // all except the agent
  Reader* FindReader(WorkerId worker) REQUIRES(mu_);
  std::string AddressOf(WorkerId worker) const REQUIRES(mu_);
  std::string ProtocolOf(WorkerId worker) const REQUIRES(mu_);  // of its latest link

  struct ToGrant {
    std::shared_ptr<Reader> reader;
    int64_t link;
    int64_t count;
  };
  using ToGrants = absl::InlinedVector<ToGrant, 4>;
  ToGrants TakeGrants() REQUIRES(mu_);
  static void Apply(const ToGrants& grants);  // without the lock

  const SessionOptions options_;
  control::DispatcherStub& stub_;

  Mutex committing_mu_;  // held by Commit(); acquired before mu_
  mutable Mutex mu_;
  transfer::PollingCondition received_;  // for Next()
  std::condition_variable changed_;      // for Commit() and the destructor
  std::condition_variable agent_;

  // The stream.
  bool welcomed_ GUARDED_BY(mu_) = false;                    // on the present stream
  std::optional<control::Welcome> welcome_ GUARDED_BY(mu_);  // the latest
  control::Heard heard_ GUARDED_BY(mu_);
  uint64_t heartbeats_ GUARDED_BY(mu_) = 0;
  std::map<uint64_t, absl::Time> unanswered_ GUARDED_BY(mu_);  // when each was sent
  absl::Time hello_sent_ GUARDED_BY(mu_);
  absl::Time renewed_ GUARDED_BY(mu_);  // when the lease was renewed
  absl::Time next_heartbeat_ GUARDED_BY(mu_);
  bool report_at_once_ GUARDED_BY(mu_) = false;
  bool news_ GUARDED_BY(mu_) = false;  // something to report since the last report
  bool end_ GUARDED_BY(mu_) = false;   // as the dispatcher reported
  bool end_seen_ GUARDED_BY(mu_) = false;
  bool leaving_ GUARDED_BY(mu_) = false;
  bool for_good_ GUARDED_BY(mu_) = false;    // the destructor runs: nobody will call Commit()
  bool leave_sent_ GUARDED_BY(mu_) = false;  // on the present stream
  bool last_beat_sent_ GUARDED_BY(mu_) = false;
  bool left_ GUARDED_BY(mu_) = false;
  bool over_ GUARDED_BY(mu_) = false;      // there is no stream any more
  absl::Status given_up_ GUARDED_BY(mu_);  // the error that ended the stream
  // The agent is about to reopen the stream: the dispatcher was away, and something is owed.
  bool reopens_ GUARDED_BY(mu_) = false;
  bool abandoned_ GUARDED_BY(mu_) = false;
  absl::Status error_ GUARDED_BY(mu_);                         // final
  std::optional<control::Commit> committing_ GUARDED_BY(mu_);  // while Commit() waits
  int64_t committed_ GUARDED_BY(mu_) = 0;                      // number of the last commit
  IndicesByPartition committed_indices_ GUARDED_BY(mu_);       // in this repetition

  // The elements.
  std::map<PartitionId, protocol::Receiver> receivers_ GUARDED_BY(mu_);
  // Partitions are numbered from 1. The highest number that the dispatcher has named.
  uint64_t partitions_ GUARDED_BY(mu_) = 0;
  Merge merge_ GUARDED_BY(mu_);
  int64_t handed_ GUARDED_BY(mu_) = 0;  // elements that Next() returned and that are not delivered
  protocol::RoundQueue rounds_ GUARDED_BY(mu_);  // of a coordinated read
  std::map<std::pair<PartitionId, int64_t>, ReceivedElement> for_rounds_
      GUARDED_BY(mu_);                                              // received elements, by row
  std::vector<protocol::RoundError> round_errors_ GUARDED_BY(mu_);  // the latest received
  size_t round_errors_said_ GUARDED_BY(mu_) = 0;
  int64_t received_unsaid_ GUARDED_BY(mu_) = 0;  // since the last report
  int64_t delivered_unreported_ GUARDED_BY(mu_) = 0;
  absl::Time said_ GUARDED_BY(mu_) = absl::InfinitePast();  // time of the last report
  int64_t rounds_in_all_ GUARDED_BY(mu_) = 0;  // sent with the end, as is elements_in_all_
  int64_t elements_in_all_ GUARDED_BY(mu_) = 0;
  // Why no consumer gets anything, as the dispatcher sees it.
  std::string waits_for_ GUARDED_BY(mu_);
  std::map<int64_t, LostConsumer> lost_ GUARDED_BY(mu_);             // other consumers, by number
  bool heard_of_lost_ GUARDED_BY(mu_) = false;                       // even that none is lost
  absl::Time waits_since_ GUARDED_BY(mu_) = absl::InfiniteFuture();  // wait for other consumers
  StepMarks marks_ GUARDED_BY(mu_);
  CreditManager credits_ GUARDED_BY(mu_);
  ReceiveLimits receive_limits_ GUARDED_BY(mu_);  // for an ordered merge
  std::map<WorkerId, std::shared_ptr<Reader>> readers_ GUARDED_BY(mu_);
  // Errors that Next() returns once. unreachable_: a worker made the present call wait. blocked_:
  // other consumers did.
  absl::Status unreachable_ GUARDED_BY(mu_);
  absl::Status blocked_ GUARDED_BY(mu_);
  absl::Time no_worker_since_ GUARDED_BY(mu_) = absl::InfiniteFuture();
  absl::Time last_recall_ GUARDED_BY(mu_);
  StepTimes times_ GUARDED_BY(mu_);
  WaitLines wait_lines_ GUARDED_BY(mu_){options_.events, {{"job", options_.job.name}}};
  bool recalls_soon_ GUARDED_BY(mu_) =
      false;                           // the agent will soon look for workers with spare credits
  int64_t calls_ GUARDED_BY(mu_) = 0;  // of Next()
  int64_t calls_seen_ GUARDED_BY(mu_) = 0;  // when the agent last looked
  absl::Time called_ GUARDED_BY(mu_) =
      absl::InfinitePast();  // about when Next() was last called or waiting
  // Nobody calls Next(), so the received elements went to others. Nothing more is asked for until
  // somebody calls it.
  bool idle_ GUARDED_BY(mu_) = false;
  // The agent is about to recall all credits.
  bool recalls_all_ GUARDED_BY(mu_) = false;
  std::vector<ReceivedElement> given_back_ GUARDED_BY(mu_);      // to be destroyed without the lock
  absl::Time say_waits_ GUARDED_BY(mu_) = absl::InfinitePast();  // when to report next
  absl::Duration between_waits_ GUARDED_BY(mu_);

  bool stopping_ GUARDED_BY(mu_) = false;
  // Only the agent replaces it.
  std::unique_ptr<control::ReconnectingClientSession> stream_
      GUARDED_BY(mu_);  // nullptr: it never began
  std::thread thread_;
};

control::PartitionReport ToMessage(protocol::Report report);

}  // namespace penstock::client
