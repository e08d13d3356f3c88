// SPDX-License-Identifier: Apache-2.0
// One worker that a session reads from: its link, and the next attempt at one.
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

// What happens on the links of a session; one call at a time per worker. From
// the transport's threads: must not block, nor open or close links.
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
  // Where the link is. Belongs to the session and is guarded by its lock.
  enum class Phase : uint8_t {
    kDown,      // there is none
    kDialling,  // begun; Dial() may be running
    kOpen,
    kBroken,  // over, to be closed before the next
  };
  struct Progress {
    Phase phase = Phase::kDown;
    bool dialled = false;  // Dial() has returned
    bool opened = false;   // the worker has answered
    bool wanted = true;    // it has a partition
    bool placed = true;    // a partition is placed there, though it may not be there to be read
    absl::Time unwanted_since;
    absl::Time retry_at = absl::InfinitePast();
    absl::Duration backoff;
    absl::Time down_since = absl::InfiniteFuture();
    absl::Status reason;                     // why it is down
    int64_t link = 0;                        // the number of the latest; 0 before the first
    transfer::TransportSelection selection;  // of its transport
    bool made_progress = false;              // an element was received since it was dialled
    int consecutive_failures =
        0;  // links in a row that ended for want of means, with nothing received
    // Protocols that are tried no more, and why.
    std::map<std::string, std::string> given_up;
    UnackedReceives unacked_receives;
    int64_t elements = 0;  // that came over all its links
    int64_t bytes = 0;
    std::shared_ptr<transfer::FilledCounts> filled = std::make_shared<transfer::FilledCounts>();

    // It was down while nobody asked for it.
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

  // Begins the link of that number over the transport that is to be taken
  // (negotiation.cc) of those not given up, and says which and why. The error is that of the
  // negotiation; all else comes as OnLinkClosed.
  absl::StatusOr<transfer::TransportSelection> Dial(
      int64_t number, const transfer::TransportPreference& preference,
      const std::map<std::string, std::string>& given_up, transfer::DialOptions dial);
  // No event behind this.
  void Close();
  // On the link of that number; without one, nothing.
  void Grant(int64_t link, int64_t count);
  // Without a link, nothing.
  void Recall();

 private:
  class Events;

  const control::Membership::Worker worker_;
  ReaderEvents& events_;
  Progress progress_;

  Mutex mu_;                            // never taken inside an event
  int64_t number_ GUARDED_BY(mu_) = 0;  // of link_
  std::unique_ptr<transfer::ReceiveLink> link_ GUARDED_BY(mu_);
};

}  // namespace penstock::client
