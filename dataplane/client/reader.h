// SPDX-License-Identifier: Apache-2.0
// One worker that a session reads from: its link, and the next attempt to open one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/session_messages.h"
#include "control/sync/mutex.h"
#include "dataplane/client/unacked_receives.h"
#include "dataplane/transfer/transport.h"
#include "penstock/ids.h"

namespace penstock::client {

// Receives the events of a session's links, one call at a time per worker. Calls come from the
// transport's threads: they must not block, nor open or close links.
class ReaderEvents {
 public:
  virtual void OnLinkOpen(WorkerId worker) = 0;
  virtual void OnElements(WorkerId worker, absl::Span<Element> elements) = 0;
  virtual void OnElementError(WorkerId worker, const Identity& identity,
                              const absl::Status& error) = 0;
  virtual void OnRecalled(WorkerId worker, int64_t count) = 0;
  virtual void OnLinkClosed(WorkerId worker, const absl::Status& reason) = 0;

 protected:
  ~ReaderEvents() = default;
};

class Reader {
 public:
  // The phase of the link. Belongs to the session, whose lock guards it.
  enum class Phase : uint8_t {
    kDown,      // there is no link
    kDialling,  // begun; Dial() may be running
    kOpen,
    kBroken,  // over; must be closed before the next one
  };
  struct Progress {
    Phase phase = Phase::kDown;
    bool dialled = false;  // Dial() has returned
    bool opened = false;   // the worker has answered
    bool wanted = true;    // it has a partition that this client reads
    bool placed = true;    // it has a partition, perhaps one that this client does not read
    absl::Time unwanted_since;
    absl::Time retry_at = absl::InfinitePast();
    absl::Duration backoff;
    absl::Time down_since = absl::InfiniteFuture();
    absl::Status reason;                     // why it is down
    int64_t link = 0;                        // the number of the latest link; 0 before the first
    transfer::TransportSelection selection;  // of the link's transport
    bool made_progress = false;              // an element was received since it was dialled
    int consecutive_failures =
        0;  // links in a row that failed for lack of resources and received nothing
    // Protocols that are not tried again, and why.
    std::map<std::string, std::string> given_up;
    UnackedReceives unacked_receives;
    int64_t elements = 0;  // received over all its links
    int64_t bytes = 0;
    std::shared_ptr<transfer::FilledCounts> filled = std::make_shared<transfer::FilledCounts>();

    // Failures from before, while nobody asked for the worker, do not count.
    void ForgetFailures() {
      down_since = absl::InfiniteFuture();
      retry_at = absl::InfinitePast();
      backoff = absl::ZeroDuration();
    }
  };

  // `events` outlives it.
  Reader(control::Membership::Worker worker, ReaderEvents& events)
      : worker_(std::move(worker)), events_(events) {}

  const control::Membership::Worker& worker() const { return worker_; }
  Progress& progress() { return progress_; }

  // Begins link `number` over one of the transports not given up (negotiation.cc), and returns
  // which and why. Returns the error of the negotiation, or of the transport's Dial(). All later
  // errors come as OnLinkClosed.
  absl::StatusOr<transfer::TransportSelection> Dial(
      int64_t number, const transfer::TransportPreference& preference,
      const std::map<std::string, std::string>& given_up, transfer::DialOptions dial);
  // No event comes after this.
  void Close();
  // Does nothing unless link number `link` is the present one.
  void Grant(int64_t link, int64_t count);
  // Does nothing without a link.
  void Recall();

 private:
  class Events;

  const control::Membership::Worker worker_;
  ReaderEvents& events_;
  Progress progress_;

  Mutex mu_;                            // never acquired inside an event
  int64_t number_ GUARDED_BY(mu_) = 0;  // of link_
  std::unique_ptr<transfer::ReceiveLink> link_ GUARDED_BY(mu_);
};

}  // namespace penstock::client
