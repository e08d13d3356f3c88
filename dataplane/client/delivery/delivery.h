// SPDX-License-Identifier: Apache-2.0
// Turns received elements into the results of Next(). There is one class for each kind of reading:
// shared and cached (unordered_delivery.h), in a fixed order (ordered_delivery.h), in rounds
// (rounds_delivery.h). Virtual methods express most of the differences between these classes.
// Reason to change: a new difference between the kinds. Guarded by the session's lock
// (session/session_parts.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/receiver.h"
#include "dataplane/client/delivery/other_consumers.h"
#include "dataplane/client/delivery/received_element.h"
#include "dataplane/client/session_state/credit_manager.h"
#include "dataplane/client/session_state/dispatcher_session.h"
#include "dataplane/client/session_state/receive_ledger.h"
#include "dataplane/client/session_state/session_options.h"
#include "dataplane/client/session_state/step_times.h"

namespace penstock::client {

class Delivery {
 public:
  // Parts of the session, which outlive the Delivery.
  struct Parts {
    const SessionOptions& options;
    DispatcherSession& dispatcher;
    ReceiveLedger& ledger;
    CreditManager& credits;
    OtherConsumers& others;
  };
  static std::unique_ptr<Delivery> Make(const Parts& parts);
  virtual ~Delivery() = default;

  // --- Receiving ---

  // Sets the element's position, and returns whether to keep the element. Also returns
  // kOldPlacement for an element that cannot be for this client.
  virtual protocol::ReceiveResult OnElement(ReceivedElement& received) = 0;
  // Keeps an accepted element, and counts it in the credits.
  virtual void Keep(ReceivedElement&& received) = 0;
  virtual size_t held() const = 0;  // number of elements that are kept

  // --- Returning ---
  // Returns true if Take() may be called.
  virtual bool ready() const = 0;
  // Returns true if Take() would return an element or an error.
  virtual bool ReturnsNext() const { return ready(); }
  virtual bool HasSome() const = 0;  // has a result that Next() has not returned
  struct Taken {
    ReceivedElement received;     // names no worker if this consumer gets no element in the round
    std::optional<int64_t> step;  // set if there are several consumers
    absl::Status error;           // returned in place of the element
    bool ends = false;            // the error ends the reading
    bool skipped = false;         // Next() returns the following round
    bool pending = false;         // later nodes get the element, and it is delivered later
  };
  // Takes the next result. `pending`: the element is delivered later, if this kind of reading
  // allows that.
  virtual Taken Take(bool pending) = 0;
  // Returns true if the session must report to the dispatcher now that an element has been taken.
  virtual bool MustReportTaken(const StepTimes& times) const;
  // Returns the name of the next result, for messages.
  virtual std::string NextName() const { return "the next element of the order"; }

  // --- Sharing with other readers ---
  // True if any reader of the job may get any element (IterationRecord::shared()).
  virtual bool shared() const { return false; }
  // Takes out elements of `partition` for other readers that wait: all of them, or the later half.
  virtual std::vector<ReceivedElement> GiveBack(PartitionId, bool /*all*/) { return {}; }
  // Forgets a worker that no longer sends. Returns false while elements of that worker are kept
  // here; then call this again later.
  virtual bool Forget(WorkerId) { return true; }

  // --- The dispatcher's messages ---
  virtual void OnConnected() {}  // called before the first report on a new stream
  virtual absl::Status OnWelcome(const control::Welcome&) { return absl::OkStatus(); }
  virtual void OnMembership(const control::Membership&) {}  // the whole, or what has changed
  virtual absl::Status OnAgreed(const control::Agreed&) { return absl::OkStatus(); }
  virtual void OnEnd(const control::End& end) { end_ = end; }
  const std::optional<control::End>& end() const { return end_; }  // nullopt: no end yet
  bool over() const { return end_.has_value() && !HasSome(); }
  // True if the dispatcher may send End before it knows of all that Next() has returned, and would
  // give the rest to a later process.
  virtual bool EndMayMissDeliveries() const { return false; }

  // --- Rounds ---
  // True if every report also covers rounds, and received elements are reported without deliveries.
  virtual bool reports_rounds() const { return false; }
  // The maximum time for which Next() waits before deliveries are reported.
  static constexpr std::chrono::nanoseconds kLongestUnreported = std::chrono::milliseconds(2);
  // Returns true if a report is due, because the next step may wait for the report, or because
  // there is much to report.
  virtual bool MustReport(const StepTimes&) const { return false; }
  virtual absl::Time reported_at() const { return absl::InfiniteFuture(); }
  // Returns the part about rounds for a report that is being sent.
  virtual std::optional<protocol::RoundsReport> TakeRounds() { return std::nullopt; }
  virtual std::vector<control::StepMark> Marks() const { return {}; }

 protected:
  explicit Delivery(const Parts& parts) : parts_(parts) {}
  // Records that the element was received, at `position`.
  protocol::ReceiveResult RecordReceived(ReceivedElement& received, Index position);
  // Records that Next() returns the element.
  void RecordTaken(Taken& taken, bool pending);

  const Parts parts_;

 private:
  std::optional<control::End> end_;
};

// Returns a CreditManager with the limits that the options set.
CreditManager MakeCredits(const SessionOptions& options);
// Returns the element that Next() gives this consumer. Needs no lock. REQUIRES: `taken` has no
// error and was not skipped.
absl::StatusOr<Element> ElementOf(Delivery::Taken&& taken, const SessionOptions& options);

}  // namespace penstock::client
