// SPDX-License-Identifier: Apache-2.0
// One client's session on one iteration: its stream to the dispatcher, its links
// to the workers, and what was received. docs/threads.md, "A client".
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
#include "dataplane/dataset/pending_deliveries.h"
#include "dataplane/transfer/polling.h"
#include "penstock/distribute.h"
#include "penstock/element.h"
#include "penstock/lost_consumers.h"
#include "penstock/spec.h"

namespace penstock::client {

struct SessionOptions {
  DistributeOptions distribute;
  transfer::TransportPreference transport_preference;  // of the links' protocol
  TlsConfig tls;                                       // of grpc links
  transfer::TcpOptions tcp;
  Spec spec;
  control::JobAnswer job;
  int64_t repetition = 0;
  ClientId client;
  Incarnation incarnation;
  std::optional<IndicesByPartition> state;  // what was delivered before a restore
  control::Heard heard;                     // as that state was saved
  // Says what `state` holds and leaves: nobody will call Next().
  bool claims_only = false;
  // What Next() returns is delivered when PendingDeliveries say so, where its thread has some.
  bool delivers_later = false;
  // Where elements are received, as far as the protocol lets them; outlives the session. nullptr:
  // DefaultPool().
  Pool* pool = nullptr;
  // Set from any thread: reading ends, and what was delivered is reported. May be null.
  const std::atomic<bool>* cancelled = nullptr;
  std::shared_ptr<EventLog> events = StderrEventLog();  // of links
};

class Session final : private control::ReconnectingClientEvents,
                      private ReaderEvents,
                      private GivesElements {
 public:
  // Nothing is waited for. `stub` outlives it. ResourceExhausted where the process gets no thread
  // for it; the dispatcher has heard of nothing then.
  static absl::StatusOr<std::unique_ptr<Session>> Begin(SessionOptions options,
                                                        control::DispatcherStub& stub);
  // Says goodbye, so that nobody waits for it, and waits for the answer a little. What is not
  // committed under keep = committed stays its own until its lease runs out: another process may
  // come with its state.
  ~Session();

  int64_t repetition() const { return options_.repetition; }

  // The next element; nullopt at the end and ever after. Waits. An error stands
  // at its element's place, or says that a worker with a part of the data, or every
  // one, was out of reach for options.timeout and still is (Unavailable; the next
  // call waits again); FailedPrecondition
  // and what the dispatcher refuses with are for good. One thread at a time.
  absl::StatusOr<std::optional<Element>> Next();
  // Whether Next() has what it gives now.
  bool Ready();

  IndicesByPartition delivered() const;
  control::Heard heard() const;  // of the dispatcher, last
  bool ended() const;            // Next() has returned nullopt, and all it returned is delivered
  // How many elements others got, where the end came before Next() returned any.
  int64_t others_took_all() const;

  // `commit` is durable at the dispatcher when this returns true. False: nothing was said, since
  // this one has left, or could not; its deliveries are committed, and what `commit` names of other
  // repetitions is for their sessions to commit. Cancelled when the reading is, DeadlineExceeded
  // after options.timeout. Any thread; one call waits for another.
  absl::StatusOr<bool> Commit(const control::Commit& commit);

  // Ends reading: Next() is Cancelled, and what was delivered is committed, if it may be
  // (not under keep = committed, unless all of it is committed). Waits for the
  // dispatcher's answer, at most `bound`. Any thread.
  void Leave(absl::Duration bound);

  // It will be destroyed without a goodbye: another incarnation takes its place.
  void Abandon();

 private:
  Session(SessionOptions options, control::DispatcherStub& stub);

  // Of session.cc; from the stream's thread.
  control::ClientUp Hello() override;
  void OnMessage(control::ClientDown message, uint64_t sequence) override;
  void OnLost(const absl::Status& status) override;
  void OnGivenUp(const absl::Status& status) override;
  void Handle(const control::Welcome& welcome) REQUIRES(mu_);
  void Handle(const control::ClientHeartbeatAnswer& answer) REQUIRES(mu_);
  void Handle(const control::Membership& membership) REQUIRES(mu_);
  void NoteWhetherServed(const control::Membership& membership) REQUIRES(mu_);
  void Handle(const control::Fence& fence) REQUIRES(mu_);
  // What others wait for, of what was received of the partition: all if nobody called Next() for
  // a while, else the later half.
  IndexSet GiveBack(PartitionId partition) REQUIRES(mu_);
  void Handle(const control::ReportAtOnce&) REQUIRES(mu_);
  void Handle(const control::Committed& committed) REQUIRES(mu_);
  void Handle(const control::End& end) REQUIRES(mu_);
  void Handle(const control::Left&) REQUIRES(mu_);
  void Handle(const control::Agreed& agreed) REQUIRES(mu_);
  void Handle(const control::ConsumersLost& lost) REQUIRES(mu_);
  // Without the dispatcher nobody knows whether those whose connection ended are back.
  void DoubtEnded() REQUIRES(mu_);
  void Handle(const control::SessionError& error) REQUIRES(mu_);

  // Of session_rounds.cc, a coordinated read.
  bool coordinated() const { return options_.distribute.num_consumers.has_value() && !ordered(); }
  // The index as a Receiver counts: the row, where an index is some consumer's.
  Index PositionOf(const Identity& identity) const REQUIRES(mu_);
  // Of an element, or an error, that a worker sent: to the members of a group it says the same
  // index, and each has one of its own.
  Identity ToThisMember(Identity identity) const;
  void KeepForRound(ReceivedElement received) REQUIRES(mu_);
  // The element of the next round, an error, or nullopt: one that is dropped.
  absl::StatusOr<std::optional<Element>> DeliverRound() REQUIRES(mu_);
  absl::Status ErrorOf(const protocol::Agreed::Round& round, int64_t number) const REQUIRES(mu_);
  protocol::RoundsReport SayRounds() REQUIRES(mu_);
  void ReportReceived() REQUIRES(mu_);
  // Whether there is a report to make: the next step may wait for it, or it is much.
  bool MustSay() const REQUIRES(mu_);
  // How long Next() waits, at most, before what was delivered is reported.
  static constexpr std::chrono::nanoseconds kLongestUnsaid = std::chrono::milliseconds(2);
  int64_t ReceiveBudget() const REQUIRES(mu_);  // elements to be held, received and not delivered
  void CheckConsumers(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void NoteBlocked() REQUIRES(mu_);                  // since when it waits for other consumers
  std::string BlockingReason() const REQUIRES(mu_);  // in words
  bool HasSome() const REQUIRES(mu_);                // that Next() has not returned
  bool IsOver() const REQUIRES(mu_);                 // all that will ever come has been returned
  // Any reader of the job may get any element (IterationRecord::shared()).
  bool shared() const { return !coordinated() && !ordered() && !reads_window(); }

  // Elements come in an order of their own: what was delivered makes room for more.
  bool ordered() const { return options_.distribute.order == MergeOrder::kDeterministic; }
  void OpenOrdered(const control::Welcome& welcome) REQUIRES(mu_);
  void SendReceiveLimit(PartitionId partition) REQUIRES(mu_);
  // What Next() returns at that step, or in that round, of a consumer.
  absl::StatusOr<Element> AtStep(int64_t step, ReceivedElement received) const;

  // What Next() returned is delivered only now. Like Next(), it waits while the lease is not known
  // to hold: others may be given it.
  absl::Status OnDelivered(absl::Span<const PendingDelivery> deliveries) override;

  // Of session_links.cc; from the links' threads.
  void OnLinkOpen(WorkerId worker) override;
  void OnElements(WorkerId worker, absl::Span<Element> elements) override;
  void OnElementError(WorkerId worker, const Identity& identity,
                      const absl::Status& error) override;
  void OnRecalled(WorkerId worker, int64_t count) override;
  void OnLinkClosed(WorkerId worker, const absl::Status& reason) override;
  // Around what is received in one event.
  bool BeginReceive(WorkerId worker) REQUIRES(mu_);  // whether Next() may wait for it
  void Receive(ReceivedElement received) REQUIRES(mu_);
  void EndReceive(bool waited_for) REQUIRES(mu_);

  // The agent's thread: heartbeats, reports, dialling, recalls, leaving.
  void Run();
  // The parts of a turn; links are dialled and closed without the lock. Each moves `wake` to when
  // it must run again.
  using Lock = MutexLock;
  void ReopenStream() REQUIRES(mu_);
  void TendStream(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void TendLinks(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  bool CloseOneLink(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  bool DialOneLink(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void TendCredits(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  transfer::DialOptions DialOptionsFor(const Reader::Progress& progress) const REQUIRES(mu_);
  // A protocol that lacks the means here, such as memory, is not tried for ever.
  void GiveUpAfterFailures(Reader::Progress& progress) REQUIRES(mu_);
  void LinkFailed(Reader& reader, const absl::Status& reason) REQUIRES(mu_);
  void CheckReach(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void CheckServed(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void TendWaiting(absl::Time now, absl::Time& wake) REQUIRES(mu_);
  void SayWaits() REQUIRES(mu_);               // of session_waits.cc, as the next
  std::string WaitsFor() const REQUIRES(mu_);  // in words
  void RecallAll() REQUIRES(mu_);

  protocol::Receiver& ReceiverOf(PartitionId partition) REQUIRES(mu_);
  // Whether it is one that the dispatcher has named, or may be about to: a worker may name any.
  bool Known(PartitionId partition) const REQUIRES(mu_);
  void SendReport(bool waits = false) REQUIRES(mu_);
  void Beat() REQUIRES(mu_);
  // Workers without a partition or a link, whose counts have just been told.
  void ForgetGone() REQUIRES(mu_);
  std::vector<control::LinkCounts> CountLinks() const REQUIRES(mu_);
  void SayGoodbye(Lock& lock, absl::Duration bound) REQUIRES(mu_);
  void SendLeave() REQUIRES(mu_);
  bool MayLeave() const REQUIRES(mu_);
  bool Owes() const REQUIRES(mu_);  // something delivered, to be committed by a Commit()
  // Elements come from windows that trainers share: with gaps, and perhaps again.
  bool reads_window() const { return options_.distribute.cross_trainer_cache.has_value(); }
  bool LeaseHolds() const REQUIRES(mu_);
  bool IsCancelled() const REQUIRES(mu_);
  void Fail(const absl::Status& status) REQUIRES(mu_);
  IndicesByPartition DeliveredLocked() const REQUIRES(mu_);
  void WakeAgent() REQUIRES(mu_);
  void WakeWaiting() REQUIRES(mu_);  // all but the agent
  Reader* FindReader(WorkerId worker) REQUIRES(mu_);
  std::string AddressOf(WorkerId worker) const REQUIRES(mu_);
  std::string ProtocolOf(WorkerId worker) const REQUIRES(mu_);  // of the latest link to it

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
  absl::Time renewed_ GUARDED_BY(mu_);  // the lease
  absl::Time next_heartbeat_ GUARDED_BY(mu_);
  bool report_at_once_ GUARDED_BY(mu_) = false;
  bool news_ GUARDED_BY(mu_) = false;  // something to report since the last report
  bool end_ GUARDED_BY(mu_) = false;   // said by the dispatcher
  bool end_seen_ GUARDED_BY(mu_) = false;
  bool leaving_ GUARDED_BY(mu_) = false;
  bool for_good_ GUARDED_BY(mu_) = false;    // the destructor runs: nobody will call Commit()
  bool leave_sent_ GUARDED_BY(mu_) = false;  // on the present stream
  bool last_beat_sent_ GUARDED_BY(mu_) = false;
  bool left_ GUARDED_BY(mu_) = false;
  bool over_ GUARDED_BY(mu_) = false;      // no stream any more
  absl::Status given_up_ GUARDED_BY(mu_);  // with which it ended
  // The agent is about to: the dispatcher was away, and something is owed.
  bool reopens_ GUARDED_BY(mu_) = false;
  bool abandoned_ GUARDED_BY(mu_) = false;
  absl::Status error_ GUARDED_BY(mu_);                         // for good
  std::optional<control::Commit> committing_ GUARDED_BY(mu_);  // while Commit() waits
  int64_t committed_ GUARDED_BY(mu_) = 0;                      // number
  IndicesByPartition committed_indices_ GUARDED_BY(mu_);       // of this repetition

  // The elements.
  std::map<PartitionId, protocol::Receiver> receivers_ GUARDED_BY(mu_);
  // Numbered from 1, as far as the dispatcher has named them.
  uint64_t partitions_ GUARDED_BY(mu_) = 0;
  Merge merge_ GUARDED_BY(mu_);
  int64_t handed_ GUARDED_BY(mu_) = 0;  // elements that Next() returned and that are not delivered
  protocol::RoundQueue rounds_ GUARDED_BY(mu_);  // of a coordinated read
  std::map<std::pair<PartitionId, int64_t>, ReceivedElement> for_rounds_
      GUARDED_BY(mu_);                                              // what was received, by row
  std::vector<protocol::RoundError> round_errors_ GUARDED_BY(mu_);  // received, the latest
  size_t round_errors_said_ GUARDED_BY(mu_) = 0;
  int64_t received_unsaid_ GUARDED_BY(mu_) = 0;  // since the last report
  int64_t delivered_unreported_ GUARDED_BY(mu_) = 0;
  absl::Time said_ GUARDED_BY(mu_) = absl::InfinitePast();  // the last report
  int64_t rounds_in_all_ GUARDED_BY(mu_) = 0;               // told with the end, as the next
  int64_t elements_in_all_ GUARDED_BY(mu_) = 0;
  // Why nothing is given to any consumer, as the dispatcher sees it.
  std::string waits_for_ GUARDED_BY(mu_);
  std::map<int64_t, LostConsumer> lost_ GUARDED_BY(mu_);             // of the others, by number
  bool heard_of_lost_ GUARDED_BY(mu_) = false;                       // also that nobody is
  absl::Time waits_since_ GUARDED_BY(mu_) = absl::InfiniteFuture();  // for other consumers
  StepMarks marks_ GUARDED_BY(mu_);
  CreditManager credits_ GUARDED_BY(mu_);
  ReceiveLimits receive_limits_ GUARDED_BY(mu_);  // of an ordered merge
  std::map<WorkerId, std::shared_ptr<Reader>> readers_ GUARDED_BY(mu_);
  // To be returned once: what of the workers made the present call of Next() wait, and what of
  // the other consumers.
  absl::Status unreachable_ GUARDED_BY(mu_);
  absl::Status blocked_ GUARDED_BY(mu_);
  absl::Time no_worker_since_ GUARDED_BY(mu_) = absl::InfiniteFuture();
  absl::Time last_recall_ GUARDED_BY(mu_);
  StepTimes times_ GUARDED_BY(mu_);
  WaitLines wait_lines_ GUARDED_BY(mu_){options_.events, {{"job", options_.job.name}}};
  bool recalls_soon_ GUARDED_BY(mu_) =
      false;                                // the agent is about to look who has credits to spare
  int64_t calls_ GUARDED_BY(mu_) = 0;       // of Next()
  int64_t calls_seen_ GUARDED_BY(mu_) = 0;  // when the agent last looked
  absl::Time called_ GUARDED_BY(mu_) =
      absl::InfinitePast();  // about when the last was made or waited
  // What was received went to others, as nobody calls Next(): no more is asked for until one does.
  bool idle_ GUARDED_BY(mu_) = false;
  // The agent is about to ask back what workers may send.
  bool recalls_all_ GUARDED_BY(mu_) = false;
  std::vector<ReceivedElement> given_back_ GUARDED_BY(mu_);      // to be let go of without the lock
  absl::Time say_waits_ GUARDED_BY(mu_) = absl::InfinitePast();  // again
  absl::Duration between_waits_ GUARDED_BY(mu_);

  bool stopping_ GUARDED_BY(mu_) = false;
  // Replaced by the agent alone.
  std::unique_ptr<control::ReconnectingClientSession> stream_
      GUARDED_BY(mu_);  // nullptr: it never began
  std::thread thread_;
};

control::PartitionReport ToMessage(protocol::Report report);

}  // namespace penstock::client
