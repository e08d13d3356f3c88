// SPDX-License-Identifier: Apache-2.0
// One bidirectional stream to the dispatcher, and one that comes back by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock::control {

// What happens on a stream. One call at a time, in order, from a thread of the
// RPC library: must not block, and may call Send and Stop of its session.
template <class Down>
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  // `sequence`: of the last record of the dispatcher's journal that the message rests on.
  virtual void OnMessage(Down message, uint64_t sequence) = 0;
  // The stream is over; no further call.
  virtual void OnClosed(const absl::Status& status) = 0;
};

// A stream that is being opened or open. Destroying it stops it.
template <class Up>
class Session {
 public:
  virtual ~Session() = default;
  // Sends in the order of the calls; any thread, never blocks. Dropped once the
  // stream is over.
  virtual void Send(Up message) = 0;
  // Breaks the stream. When it returns, no event is running (unless called from
  // one) and none will follow, OnClosed included. Idempotent, bounded.
  virtual void Stop() = 0;
};

// Opens a stream whose events go to `events`, which must outlive it.
template <class Up, class Down>
using OpenSession = std::function<std::unique_ptr<Session<Up>>(SessionEvents<Down>* events)>;

struct ReconnectOptions {
  std::string address = {};  // of the dispatcher, for messages
  // How long without a message from the dispatcher before OnGivenUp.
  absl::Duration timeout = absl::Seconds(60);
  absl::Duration first_backoff = absl::Milliseconds(20);
  absl::Duration max_backoff = absl::Seconds(2);  // each wait is 50 to 100 % of its step
};

// The events of a ReconnectingSession: one call at a time, in order; must not
// block; may call Send, but not Stop.
template <class Up, class Down>
class ReconnectingEvents {
 public:
  virtual ~ReconnectingEvents() = default;
  // The first message of each new stream.
  virtual Up Hello() = 0;
  virtual void OnMessage(Down message, uint64_t sequence) = 0;  // as of SessionEvents
  // The stream broke and is being opened again. What was sent may be lost:
  // after the dispatcher's welcome, say again what still needs an answer.
  virtual void OnLost(const absl::Status& status) = 0;
  // No further event: the stream's end was final (its status, never OK), or the dispatcher out of
  // reach for `timeout` (Unavailable, naming it and the last reason), or the process has no memory
  // for the stream (ResourceExhausted).
  virtual void OnGivenUp(const absl::Status& status) = 0;
};

// Keeps one stream open through breaks and dispatcher restarts. A stream on which the dispatcher
// has refused is final. Any other stream of a worker is opened again. So is a client's that ends
// with OK, Unavailable, Aborted, Cancelled, Unknown, Internal, DeadlineExceeded, or with what a
// proxy may say (ResourceExhausted, PermissionDenied, Unauthenticated, Unimplemented); another code
// is final, such as the InvalidArgument of a message that cannot be read.
//
// The pause before the next stream is `first_backoff` again where the one before was welcomed and
// broke, or lasted for `max_backoff`; else twice the last one. So a peer that says on each stream
// what cannot be read costs a stream every two seconds, and not one every few milliseconds.
template <class Up, class Down>
class ReconnectingSession {
 public:
  virtual ~ReconnectingSession() = default;  // stops it
  // To the present stream; dropped while there is none. Any thread, no wait.
  virtual void Send(Up message) = 0;
  // When it returns no event is running and none will follow. Bounded; not from
  // an event.
  virtual void Stop() = 0;
};

// ResourceExhausted where the process gets no thread for it; nothing was opened then.
template <class Up, class Down>
absl::StatusOr<std::unique_ptr<ReconnectingSession<Up, Down>>> KeepOpen(
    OpenSession<Up, Down> open, ReconnectingEvents<Up, Down>* events,
    ReconnectOptions options = {});

}  // namespace penstock::control
