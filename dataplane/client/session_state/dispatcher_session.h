// SPDX-License-Identifier: Apache-2.0
// A session's stream to the dispatcher: its beginning, its end, and the latest messages received on
// it. Reason to change: the messages that open, keep open and end a session. Guarded by the
// session's lock (session/session_parts.h), except where noted; session/stream_events.h handles the
// stream's events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "control/stub/dispatcher_stub.h"
#include "dataplane/client/session_state/lease.h"
#include "dataplane/client/session_state/session_options.h"

namespace penstock::client {

class DispatcherSession {
 public:
  // `options` and `stub` must outlive this object.
  DispatcherSession(const SessionOptions& options, control::DispatcherStub& stub);

  using Stream = std::unique_ptr<control::ReconnectingClientSession>;
  // Opens a stream. Returns the stream that the new one replaces, if any; destroy the result
  // without the lock.
  absl::StatusOr<Stream> Open(control::ReconnectingClientEvents& events);
  void Stop();  // call it without the lock, after the agent has ended
  // Sends `message`, or drops the message while the stream is broken. REQUIRES: Open() has
  // succeeded.
  void Send(control::ClientUp message) { stream_->Send(std::move(message)); }
  // Makes the session open a new stream, because the messages of the present one do not fit
  // together. REQUIRES: Open() has succeeded.
  void BreakOff(absl::Status why) { stream_->BreakOff(std::move(why)); }
  const std::string& address() const { return stub_.address(); }

  // --- The stream's events ---
  control::ClientUp Hello();
  absl::Status OnWelcome(const control::Welcome& welcome);
  void OnSequence(uint64_t sequence) { heard_.sequence = std::max(heard_.sequence, sequence); }
  void OnLost() { welcomed_ = false; }
  void OnLeft() { left_ = true; }
  void OnOver(absl::Status reason);
  // Makes the agent open a new stream. Call this if the dispatcher was away and the session still
  // owes it a report or a commit.
  void ReopenSoon() { reopens_ = true; }
  bool TakeReopens() { return std::exchange(reopens_, false); }

  bool welcomed() const { return welcomed_; }  // on the present stream
  const std::optional<control::Welcome>& welcome() const { return welcome_; }  // the latest
  control::Heard heard() const { return heard_; }
  Lease& lease() { return lease_; }
  bool left() const { return left_; }  // the dispatcher has confirmed the goodbye
  bool over() const { return over_; }  // there is no longer a stream
  const absl::Status& over_reason() const { return reason_; }

  // --- Leaving ---
  void BeginLeaving() { leaving_ = true; }
  bool leaving() const { return leaving_; }
  // Call this when the session's destructor runs, because nobody can call Commit() from then on.
  void LeaveForGood() { for_good_ = true; }
  bool for_good() const { return for_good_; }
  void Abandon() { abandoned_ = true; }
  bool IsOpen() const { return !left_ && !over_ && !abandoned_ && welcome_.has_value(); }
  bool TakeLastBeat() { return !std::exchange(last_beat_sent_, true); }  // true for the first call
  bool leave_sent() const { return leave_sent_; }                        // on the present stream
  void SendLeave(const IndicesByPartition& delivered);

 private:
  const SessionOptions& options_;
  control::DispatcherStub& stub_;
  Stream stream_;  // nullptr: none yet. Only the agent replaces a stream.
  bool welcomed_ = false;
  std::optional<control::Welcome> welcome_;
  control::Heard heard_;
  Lease lease_;
  bool leaving_ = false;
  bool for_good_ = false;
  bool abandoned_ = false;
  bool last_beat_sent_ = false;
  bool leave_sent_ = false;
  bool left_ = false;
  bool over_ = false;
  absl::Status reason_;  // the error that ended the stream
  bool reopens_ = false;
};

}  // namespace penstock::client
