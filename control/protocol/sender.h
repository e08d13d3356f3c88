// SPDX-License-Identifier: Apache-2.0
// The worker's side of one placement of one partition: which index goes to
// whom, once. A value; one thread at a time.
#pragma once

#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "control/protocol/messages.h"
#include "control/protocol/rules.h"

namespace penstock::protocol {

class Sender {
 public:
  struct Served {
    Reader reader;
    bool linked = false;
    IndexSet unconfirmed;  // sent and not confirmed; in doubt while not linked
  };

  explicit Sender(const Assign& assign, Broken broken = Broken::kNone);

  PartitionId partition() const { return partition_; }
  Placement placement() const { return placement_; }
  const IndexSet& skip() const { return skip_; }
  absl::Span<const Served> readers() const { return readers_; }

  // --- What to send ---

  // Whether a produced index goes to anyone: outside skip and not yet sent. The
  // runner produces indices in order and calls Passed for one nobody wants.
  bool Wants(Index index) const;
  // Indices to be sent a second time (they were never received); before new ones.
  const IndexSet& again() const { return again_; }
  // Whether `client` may be sent to: a reader of this placement whose link is up.
  bool MaySendTo(ClientId client) const;
  // `index` leaves on the link to `client`. REQUIRES: MaySendTo(client), and
  // Wants(index) or again() has it.
  void OnSent(ClientId client, Index index);
  // It did not leave after all: the link refused it. To be sent again, to anyone.
  void OnRefused(ClientId client, Index index);
  // The producer is past `index`, which need not be sent.
  void OnPassed(Index index);
  // The producer is at the end: `end` elements.
  void OnEnd(Index end);
  // The lowest index the producer has still to come to.
  Index next() const { return next_; }

  // --- Links ---

  // A link of this client opened, or was open when the placement came;
  // `received`: what it has of this partition, at least of what was sent on its
  // earlier link and not confirmed; said after that link was gone. What was sent
  // on it, and is neither confirmed nor in `received`, is to be sent again. False: not
  // a reader of this placement (yet); close the link.
  bool OnLinkUp(ClientId client, Incarnation incarnation, const IndexSet& received);
  // The link broke: what was sent on it and not confirmed is in doubt, offered to
  // nobody until the client says what it has.
  void OnLinkBroken(ClientId client);
  // `client` confirms that it received these.
  void OnReceived(ClientId client, const IndexSet& indices);
  // One reader more. True if it is new here: then call OnLinkUp with empty
  // received elements if its link is up. (A dispatcher that restarted names all again.)
  bool OnAddReader(const Reader& reader);

  // --- The end ---

  // Everything outside skip was sent and nothing is in doubt. What is said once
  // stays said, even if a link breaks later.
  bool ended() const;
  std::optional<Index> end() const { return end_; }

  // In a reader's slots or on the way to it: what the worker must still have the
  // bytes of.
  IndexSet unconfirmed() const;

 private:
  Served* Find(ClientId client);
  const Served* Find(ClientId client) const;

  PartitionId partition_;
  Placement placement_;
  Broken broken_;
  Index next_ = 0;
  std::optional<Index> end_;
  IndexSet skip_;
  IndexSet again_;
  absl::InlinedVector<Served, 2> readers_;
};

}  // namespace penstock::protocol
