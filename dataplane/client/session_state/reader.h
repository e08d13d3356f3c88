// SPDX-License-Identifier: Apache-2.0
// A handle on a session's present link to one worker. Any thread may use it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/message_parts.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/transport.h"
#include "penstock/ids.h"

namespace penstock::client {

// Receives the events of a session's links, one call at a time per worker. The calls come from the
// transport's threads, so implementations must not block, and must not open or close links.
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
  // `events` must outlive this object.
  Reader(control::Membership::Worker worker, ReaderEvents& events)
      : worker_(std::move(worker)), events_(events) {}

  const control::Membership::Worker& worker() const { return worker_; }

  // Begins link `number` over a transport that this client has not given up on (negotiation.cc),
  // and returns the transport and the reason for choosing it. Returns the error of the negotiation,
  // or of the transport's Dial(). OnLinkClosed() reports all later errors.
  absl::StatusOr<transfer::TransportSelection> Dial(
      int64_t number, const transfer::TransportPreference& preference,
      const std::map<std::string, std::string>& given_up, transfer::DialOptions dial);
  // Closes the link. Once this has returned, there are no more events.
  void Close();
  // Does nothing unless link number `link` is the present link.
  void Grant(int64_t link, int64_t count);
  // Does nothing if there is no link.
  void Recall();

 private:
  class Events;

  const control::Membership::Worker worker_;
  ReaderEvents& events_;

  Mutex mu_;                            // never acquired inside an event
  int64_t number_ GUARDED_BY(mu_) = 0;  // of link_
  std::unique_ptr<transfer::ReceiveLink> link_ GUARDED_BY(mu_);
};

}  // namespace penstock::client
