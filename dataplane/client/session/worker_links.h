// SPDX-License-Identifier: Apache-2.0
// A session's links to the workers: which links exist, when each link is dialled and closed, and
// how many elements each worker may send. Reason to change: the life cycle of links. Guarded by the
// session's lock (session_parts.h). A method that finds a link to dial or close, or a link whose
// credits are to be granted or recalled, returns that link. The caller then does the work without
// the lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "control/observe/event_log.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/protocol/message_parts.h"
#include "control/stub/membership_view.h"
#include "dataplane/client/delivery/delivery.h"
#include "dataplane/client/delivery/received_element.h"
#include "dataplane/client/session_state/credit_manager.h"
#include "dataplane/client/session_state/reader.h"
#include "dataplane/client/session_state/session_options.h"
#include "dataplane/client/session_state/step_times.h"
#include "dataplane/client/session_state/unacked_receives.h"

namespace penstock::client {

class WorkerLinks {
 public:
  // `options` and `credits` must outlive this object.
  WorkerLinks(const SessionOptions& options, CreditManager& credits)
      : options_(options), credits_(credits) {}

  // Adds links to the workers in `membership` that this client reads. `altered`: the workers that
  // may have become part of it, or have left it, since the last call. The links' events go to
  // `events`, which must outlive the links.
  void OnMembership(const control::MembershipView& membership, absl::Span<const WorkerId> altered,
                    TargetWorkers target, ReaderEvents& events);

  // --- The links' events ---
  void OnOpen(WorkerId worker);
  void OnEvent(WorkerId worker);  // OnReceived() follows for each element or error
  // `here`: this client has the element, from this event or an earlier one.
  void OnReceived(const ReceivedElement& received, bool here);
  void OnRecalled(WorkerId worker, int64_t count);
  void OnFailed(WorkerId worker, const absl::Status& reason);

  // --- Closing and dialling ---

  // Returns a link to close; nullptr: none. `none_wanted`: all links must be closed. The caller
  // calls OnDown() afterwards.
  std::shared_ptr<Reader> NextToClose(bool none_wanted, absl::Time now, absl::Time& wake) const;
  void OnDown(WorkerId worker);
  struct Dial {
    std::shared_ptr<Reader> reader;
    int64_t number;
    std::map<std::string, std::string> given_up;
    transfer::DialOptions options;
  };
  // Returns a link to dial; nullopt: none. The caller then passes the result to OnDialled().
  std::optional<Dial> NextToDial(const control::Welcome& welcome, absl::Time now, absl::Time& wake);
  void OnDialled(WorkerId worker, absl::StatusOr<transfer::TransportSelection> begun);
  // Puts links that have opened into use, and returns events about them for the log.
  std::vector<Event> TakeOpened(IterationId iteration);
  // Closes all links. Call it without the lock, after the agent and the stream have ended.
  void CloseAll();

  // --- Credits ---
  struct Grant {
    std::shared_ptr<Reader> reader;
    int64_t link;
    int64_t count;
  };
  using Grants = absl::InlinedVector<Grant, 4>;
  Grants TakeGrants();
  static void Apply(const Grants& grants);  // without the lock
  // Returns true if both conditions hold:
  // - some of `grants` may have gone to a worker with nothing to send, while another worker waits
  //   for credits;
  // - the agent has no plan yet to look for spare credits.
  bool Misplaced(const Grants& grants) const {
    return !grants.empty() && !recalls_soon_ && credits_.Starving();
  }
  using Readers = std::vector<std::shared_ptr<Reader>>;
  void RecallAllSoon() { recalls_all_ = true; }
  Readers TakeRecallsOfAll();  // empty, except after RecallAllSoon()
  Readers TakeRecalls(absl::Time now, absl::Time& wake);

  // --- Reports ---
  // `none_wanted`: same as for NextToClose().
  std::vector<control::LinkCounts> Count(bool none_wanted, const StepTimes& times) const;
  // Forgets workers without a partition or a link, whose counts have just been reported.
  void ForgetGone(Delivery& delivery);
  // If a worker was out of reach, or the iteration had no worker, for the whole timeout, notes an
  // error for Next() and returns true. `dispatcher`: the dispatcher's address, for messages.
  bool CheckReach(absl::Time now, const std::string& dispatcher, absl::Time& wake);
  absl::Status TakeError() { return std::exchange(error_, absl::OkStatus()); }
  std::string AddressOf(WorkerId worker) const;
  std::string ProtocolOf(WorkerId worker) const;  // of its latest link
  // Returns a description of what is missing, for messages; empty: nothing is missing.
  std::string OutOfReach(const std::string& dispatcher) const;
  std::string Addresses() const;  // of the workers that this client reads

 private:
  enum class Phase : uint8_t {
    kDown,      // there is no link
    kDialling,  // Dial() may be running
    kOpen,
    kBroken,  // the link is over and must be closed before the next one
  };
  struct Link {
    void Fail(const absl::Status& why);
    // Stops using a protocol that has failed several times in a row because it lacks a resource,
    // such as memory, on this host.
    void GiveUpAfterFailures();
    // Forgets failures from before the worker was wanted, which do not count.
    void ForgetFailures() {
      down_since = absl::InfiniteFuture();
      retry_at = absl::InfinitePast();
      backoff = absl::ZeroDuration();
    }

    std::shared_ptr<Reader> reader;
    Phase phase = Phase::kDown;
    bool dialled = false;  // Dial() has returned
    bool opened = false;   // the worker has answered
    bool wanted = true;    // the worker has a partition that this client reads
    bool placed = true;    // the worker has a partition, perhaps one that this client does not read
    absl::Time unwanted_since;
    absl::Time retry_at = absl::InfinitePast();
    absl::Duration backoff;
    absl::Time down_since = absl::InfiniteFuture();
    absl::Status reason;                     // why the link is down
    int64_t number = 0;                      // of the latest link; 0 before the first
    transfer::TransportSelection selection;  // of the link's transport
    bool told_of_fall_back = false;  // an event has reported that the protocol is not the named one
    bool made_progress = false;      // an element was received since the link was dialled
    int consecutive_failures = 0;    // for lack of resources, with nothing received
    std::map<std::string, std::string> given_up;  // protocols that are not tried again, and why
    UnackedReceives unacked_receives;
    int64_t elements = 0;  // received over all links to the worker
    int64_t bytes = 0;
    std::shared_ptr<transfer::FilledCounts> filled = std::make_shared<transfer::FilledCounts>();
  };

  Link* Find(WorkerId worker);
  transfer::DialOptions DialOptionsFor(const Link& link, const control::Welcome& welcome) const;

  const SessionOptions& options_;
  CreditManager& credits_;
  std::map<WorkerId, Link> links_;
  absl::Time no_worker_since_ = absl::InfiniteFuture();
  absl::Status error_;  // Next() returns this error once
  bool recalls_all_ = false;
  bool recalls_soon_ = false;  // the agent will soon look for workers with spare credits
  absl::Time last_recall_;
};

}  // namespace penstock::client
