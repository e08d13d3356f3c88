// SPDX-License-Identifier: Apache-2.0
// A bidirectional stream to the dispatcher, and a session that opens such streams again when they
// break.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/stub/addresses.h"

namespace penstock::control {

// The events of a stream. The methods are called one at a time, in order, on a thread of the RPC
// library. They must not block. They may call Send and Stop of their session.
template <class Down>
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  // `sequence`: the number of the last record of the dispatcher's journal on which the message
  // depends.
  virtual void OnMessage(Down message, uint64_t sequence) = 0;
  // The stream is over; no event follows.
  virtual void OnClosed(const absl::Status& status) = 0;
};

// A stream that is being opened or is open. The destructor stops it.
template <class Up>
class Session {
 public:
  virtual ~Session() = default;
  // Sends messages in the order of the calls. Drops messages once the stream is over. Any thread
  // may call it. Never blocks.
  virtual void Send(Up message) = 0;
  // Breaks the stream. After Stop() returns, no event follows, not even OnClosed, and none is
  // running, except the event from which Stop() was called. Idempotent; returns in bounded time.
  virtual void Stop() = 0;
};

// Opens a stream to the dispatcher at `address`. Its events go to `events`, which must outlive the
// session.
template <class Up, class Down>
using OpenSession = std::function<std::unique_ptr<Session<Up>>(const std::string& address,
                                                               SessionEvents<Down>* events)>;

struct ReconnectOptions {
  // OnGivenUp is called after this time without a message from the dispatcher.
  absl::Duration timeout = absl::Seconds(60);
  absl::Duration first_backoff = absl::Milliseconds(20);
  absl::Duration max_backoff = absl::Seconds(2);  // each wait is 50 to 100 % of its back-off
};

// The events of a ReconnectingSession. The methods are called one at a time, in order. They must
// not block. They may call Send and BreakOff, but not Stop.
template <class Up, class Down>
class ReconnectingEvents {
 public:
  virtual ~ReconnectingEvents() = default;
  // Returns the first message of each new stream.
  virtual Up Hello() = 0;
  virtual void OnMessage(Down message, uint64_t sequence) = 0;  // as in SessionEvents
  // The stream broke, and a new one is being opened. Messages sent on the broken stream may be
  // lost. After the dispatcher's welcome, repeat the messages that still need an answer.
  virtual void OnLost(const absl::Status& status) = 0;
  // The last event. `status` is never OK. It is the stream's status if the stream's end was final;
  // Unavailable, with the addresses and the last reason at each, if the dispatcher was out of reach
  // for `timeout`; or ResourceExhausted if the process has no memory for the stream.
  virtual void OnGivenUp(const absl::Status& status) = 0;
};

// Keeps one stream open through breaks and dispatcher restarts, and follows the leader from address
// to address. If no leader answers at an address, the next one is tried at once, and OnLost is
// called for each; a pause follows when all addresses have been tried. A dispatcher is no leader if
// a newer one was heard of (Addresses::Accept): its welcome or refusal is dropped.
//
// A stream is not opened again if the
// dispatcher itself refused it. Any other stream of a worker is opened again. A client's stream is
// opened again if it ended with OK, Unavailable, Aborted, Cancelled, Unknown, Internal,
// DeadlineExceeded, or with a code that a proxy may send (ResourceExhausted, PermissionDenied,
// Unauthenticated, Unimplemented). Any other code is final, such as InvalidArgument for a message
// that cannot be read.
//
// The pause before the next stream is `first_backoff` if the last stream was welcomed and then
// broke, or lasted for `max_backoff`; otherwise it is twice the last pause. If each stream brings
// an unreadable message, a stream is therefore opened only about every two seconds, and not every
// few milliseconds.
template <class Up, class Down>
class ReconnectingSession {
 public:
  virtual ~ReconnectingSession() = default;  // stops the session
  // Sends on the present stream, which begins when its Hello() is called. Drops the message while
  // there is no stream. Any thread may call it. Never waits.
  virtual void Send(Up message) = 0;
  // Ends the present stream as if it had ended with `why`. Events of this stream may still follow
  // until OnLost. Does nothing while there is no stream. Any thread may call it. Never waits.
  virtual void BreakOff(absl::Status why) = 0;
  // After Stop() returns, no event is running and none follows. Returns in bounded time. Must not
  // be called from an event.
  virtual void Stop() = 0;
};

// Starts a session. `addresses` must outlive it. ResourceExhausted if the session's thread cannot
// be started; then no stream has been opened.
template <class Up, class Down>
absl::StatusOr<std::unique_ptr<ReconnectingSession<Up, Down>>> KeepOpen(
    OpenSession<Up, Down> open, Addresses& addresses, ReconnectingEvents<Up, Down>* events,
    ReconnectOptions options = {});

}  // namespace penstock::control
