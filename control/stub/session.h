// SPDX-License-Identifier: Apache-2.0
// A bidirectional stream to the dispatcher, and one that reconnects by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock::control {

// The events of a stream. They are called one at a time, in order, on a thread of the RPC library.
// They must not block, and may call Send and Stop of their session.
template <class Down>
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  // `sequence`: of the last record of the dispatcher's journal that the message depends on.
  virtual void OnMessage(Down message, uint64_t sequence) = 0;
  // The stream is over; no event follows.
  virtual void OnClosed(const absl::Status& status) = 0;
};

// A stream that is being opened or is open. Destroying it stops it.
template <class Up>
class Session {
 public:
  virtual ~Session() = default;
  // Sends messages in the order of the calls. Any thread, never blocks. Drops the message once the
  // stream is over.
  virtual void Send(Up message) = 0;
  // Breaks the stream. After it returns, no event is running (unless it was called from one), and
  // none follows, not even OnClosed. Idempotent; returns in bounded time.
  virtual void Stop() = 0;
};

// Opens a stream whose events go to `events`, which must outlive it.
template <class Up, class Down>
using OpenSession = std::function<std::unique_ptr<Session<Up>>(SessionEvents<Down>* events)>;

struct ReconnectOptions {
  std::string address = {};  // of the dispatcher, for messages
  // OnGivenUp follows after this time without a message from the dispatcher.
  absl::Duration timeout = absl::Seconds(60);
  absl::Duration first_backoff = absl::Milliseconds(20);
  absl::Duration max_backoff = absl::Seconds(2);  // each wait is 50 to 100 % of its step
};

// The events of a ReconnectingSession. They are called one at a time, in order. They must not
// block; they may call Send, but not Stop.
template <class Up, class Down>
class ReconnectingEvents {
 public:
  virtual ~ReconnectingEvents() = default;
  // Returns the first message of each new stream.
  virtual Up Hello() = 0;
  virtual void OnMessage(Down message, uint64_t sequence) = 0;  // as in SessionEvents
  // The stream broke and is being opened again. Messages sent on it may be lost: after the
  // dispatcher's welcome, repeat those that still need an answer.
  virtual void OnLost(const absl::Status& status) = 0;
  // The last event. Either the stream's end was final (its status, never OK), or the dispatcher was
  // out of reach for `timeout` (Unavailable, with its address and the last reason), or the process
  // has no memory for the stream (ResourceExhausted).
  virtual void OnGivenUp(const absl::Status& status) = 0;
};

// Keeps one stream open through breaks and dispatcher restarts. A stream is not opened again if the
// dispatcher itself refused it. Any other stream of a worker is opened again. A client's stream is
// opened again if it ended with OK, Unavailable, Aborted, Cancelled, Unknown, Internal,
// DeadlineExceeded, or with a code that a proxy may send (ResourceExhausted, PermissionDenied,
// Unauthenticated, Unimplemented). Any other code is final, such as InvalidArgument for a message
// that cannot be read.
//
// The pause before the next stream is `first_backoff` if the last stream was welcomed and then
// broke, or lasted for `max_backoff`; otherwise it is twice the last pause. So a peer that sends an
// unreadable message on each stream costs one stream every two seconds, and not one every few
// milliseconds.
template <class Up, class Down>
class ReconnectingSession {
 public:
  virtual ~ReconnectingSession() = default;  // stops it
  // Sends on the present stream; drops the message while there is none. Any thread, never waits.
  virtual void Send(Up message) = 0;
  // After it returns, no event is running and none follows. Returns in bounded time. Must not be
  // called from an event.
  virtual void Stop() = 0;
};

// ResourceExhausted if the session's thread cannot be started; nothing has been opened then.
template <class Up, class Down>
absl::StatusOr<std::unique_ptr<ReconnectingSession<Up, Down>>> KeepOpen(
    OpenSession<Up, Down> open, ReconnectingEvents<Up, Down>* events,
    ReconnectOptions options = {});

}  // namespace penstock::control
