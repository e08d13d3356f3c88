// SPDX-License-Identifier: Apache-2.0
// The actions of a session on each event of its links. Reason to change: the rules of receiving.
// The methods are called from the links' threads. They do not wait, and do not open or close links.
#pragma once

#include "dataplane/client/session/session_parts.h"
#include "dataplane/client/session_state/reader.h"

namespace penstock::client {

class LinkEvents final : public ReaderEvents {
 public:
  explicit LinkEvents(SessionParts& parts) : parts_(parts) {}  // `parts` outlives this object

  void OnLinkOpen(WorkerId worker) override;
  void OnElements(WorkerId worker, absl::Span<Element> elements) override;
  void OnElementError(WorkerId worker, const Identity& identity,
                      const absl::Status& error) override;
  void OnRecalled(WorkerId worker, int64_t count) override;
  void OnLinkClosed(WorkerId worker, const absl::Status& reason) override;

 private:
  // Returns the identity that the element or error has for this member of a group. A worker sends
  // one index to all members, but each member counts it under an index of its own.
  Identity ToThisMember(Identity identity) const;
  // BeginReceive() and EndReceive() enclose the Receive() calls for the elements of one event.
  bool BeginReceive(WorkerId worker) REQUIRES(parts_.mu);  // true if Next() may wait for this event
  void Receive(ReceivedElement&& received) REQUIRES(parts_.mu);
  void EndReceive(bool waited_for) REQUIRES(parts_.mu);

  SessionParts& parts_;
};

}  // namespace penstock::client
