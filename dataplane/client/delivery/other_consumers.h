// SPDX-License-Identifier: Apache-2.0
// Tracks the other consumers of a coordinated read or of order kDeterministic, which this session
// may have to wait for. Reason to change: the reports about lost consumers. Guarded by the
// session's lock (session/session_parts.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/protocol/client_messages.h"
#include "dataplane/client/session_state/session_options.h"
#include "penstock/lost_consumers.h"

namespace penstock::client {

class OtherConsumers {
 public:
  // `options` must outlive this object.
  explicit OtherConsumers(const SessionOptions& options) : options_(options) {}
  ~OtherConsumers();

  // `waits_for`: the reason that the dispatcher gives if no consumer gets an element; empty:
  // nothing blocks.
  void OnWaits(const std::string& waits_for);
  // `next`: the name of the next result of Next(). Returns true if a consumer died.
  bool OnLost(const control::ConsumersLost& lost, const std::string& next);
  // Marks as silent those consumers whose connection has ended. Without the dispatcher, this
  // session cannot know whether they are back.
  void DoubtEnded();
  // Ends the present wait, so that missing consumers are reported again.
  void ForgetWait() { waits_since_ = absl::InfiniteFuture(); }

  // If Next() has waited for other consumers for the whole timeout, notes an error that Next()
  // returns, and returns true. `waiting`: the time for which Next() has waited so far.
  bool Check(absl::Time now, absl::Duration waiting, const std::string& next, absl::Time& wake);
  absl::Status TakeError() { return std::exchange(error_, absl::OkStatus()); }
  std::string BlockingReason() const;  // for messages; empty: nothing blocks

 private:
  void NoteBlocked();
  void Tell(const char* event, const LostConsumer& its, bool notify) const;

  const SessionOptions& options_;
  std::string waits_for_;
  std::map<int64_t, LostConsumer> lost_;  // by number
  bool heard_of_lost_ = false;            // true even if the report was that no consumer is lost
  absl::Time waits_since_ = absl::InfiniteFuture();
  absl::Status error_;  // Next() returns this error once
};

}  // namespace penstock::client
