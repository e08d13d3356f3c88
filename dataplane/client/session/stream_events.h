// SPDX-License-Identifier: Apache-2.0
// The actions of a session on each message from the dispatcher. Reason to change: these messages.
// The methods are called from the stream's thread, one call at a time. They do not wait.
#pragma once

#include <vector>

#include "control/stub/dispatcher_stub.h"
#include "dataplane/client/session/session_parts.h"
#include "dataplane/client/session_state/reader.h"

namespace penstock::client {

class StreamEvents final : public control::ReconnectingClientEvents {
 public:
  // All arguments must outlive this object.
  StreamEvents(SessionParts& parts, ReaderEvents& links) : parts_(parts), link_events_(links) {}

  control::ClientUp Hello() override;
  void OnMessage(control::ClientDown message, uint64_t sequence) override;
  void OnLost(const absl::Status& status) override;
  void OnGivenUp(const absl::Status& status) override;

 private:
  void Handle(const control::Welcome& welcome) REQUIRES(parts_.mu);
  void Handle(const control::ClientHeartbeatAnswer& answer) REQUIRES(parts_.mu);
  void Handle(const control::Membership& membership) REQUIRES(parts_.mu);
  void Handle(const control::Fence& fence) REQUIRES(parts_.mu);
  void Handle(const control::ReportAtOnce&) REQUIRES(parts_.mu);
  void Handle(const control::Committed& committed) REQUIRES(parts_.mu);
  void Handle(const control::End& end) REQUIRES(parts_.mu);
  void Handle(const control::Left&) REQUIRES(parts_.mu);
  void Handle(const control::Agreed& agreed) REQUIRES(parts_.mu);
  void Handle(const control::ConsumersLost& lost) REQUIRES(parts_.mu);
  void Handle(const control::SessionError& error) REQUIRES(parts_.mu);
  // Takes out received elements of `partition` for other readers that wait, and returns the
  // indices: of all these elements if nobody has called Next() for a while, else of the later half.
  IndexSet GiveBack(PartitionId partition) REQUIRES(parts_.mu);

  SessionParts& parts_;
  ReaderEvents& link_events_;
  // The elements given back because of the present message; destroyed without the lock.
  std::vector<ReceivedElement> given_back_;
};

}  // namespace penstock::client
