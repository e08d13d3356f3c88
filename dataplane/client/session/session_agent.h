// SPDX-License-Identifier: Apache-2.0
// A session's own thread, which does slow and timed work: heartbeats, reports,
// dialling and closing links, recalls, leaving. Reason to change: the order or the times of this
// work.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "control/sync/thread.h"
#include "dataplane/client/session/session_parts.h"

namespace penstock::client {

class SessionAgent {
 public:
  // `parts` and `stream_events` must outlive this object.
  SessionAgent(SessionParts& parts, control::ReconnectingClientEvents& stream_events)
      : parts_(parts), stream_events_(stream_events) {}

  // ResourceExhausted if the process gets no thread.
  absl::Status Start();
  // Waits for the end of the thread. REQUIRES: parts.stopping was set.
  void Join();

 private:
  void Run();
  // The steps of one round of the thread's loop. Links are dialled and closed without the lock.
  // Each step with a `wake` moves it to the time when the step must run again, if that is earlier.
  void ReopenStream() REQUIRES(parts_.mu);
  void TendStream(absl::Time now, absl::Time& wake) REQUIRES(parts_.mu);
  void Beat() REQUIRES(parts_.mu);
  void TendLinks(absl::Time now, absl::Time& wake) REQUIRES(parts_.mu);
  bool CloseOneLink(absl::Time now, absl::Time& wake) REQUIRES(parts_.mu);
  bool DialOneLink(absl::Time now, absl::Time& wake) REQUIRES(parts_.mu);
  void TendCredits(absl::Time now, absl::Time& wake) REQUIRES(parts_.mu);
  void Recall(const WorkerLinks::Readers& readers) REQUIRES(parts_.mu);
  void TendWaiting(absl::Time now, absl::Time& wake) REQUIRES(parts_.mu);
  void CheckReach(absl::Time now, absl::Time& wake) REQUIRES(parts_.mu);
  std::string WaitsFor() const REQUIRES(parts_.mu);  // for messages

  SessionParts& parts_;
  control::ReconnectingClientEvents& stream_events_;
  Thread thread_;
};

}  // namespace penstock::client
