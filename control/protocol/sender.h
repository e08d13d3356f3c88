// SPDX-License-Identifier: Apache-2.0
// The worker's side of one placement of one partition. It decides which index goes to which reader,
// so that each index goes to one reader, once. A value; used by one thread at a time.
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

  // Returns whether a produced index must be sent to a reader: it is outside skip and was not sent
  // yet. The runner produces indices in order and calls OnPassed for an index that no reader gets.
  bool Wants(Index index) const;
  // The indices that must be sent again because they were not received. Send these before new
  // indices.
  const IndexSet& again() const { return again_; }
  // Returns whether `client` is a reader of this placement whose link is up.
  bool MaySendTo(ClientId client) const;
  // `index` is sent on the link to `client`. REQUIRES: MaySendTo(client), and Wants(index) or
  // again() contains the index.
  void OnSent(ClientId client, Index index);
  // The link refused the index, which must be sent again, to any reader.
  void OnRefused(ClientId client, Index index);
  // The producer has passed `index`, which need not be sent.
  void OnPassed(Index index);
  // The producer has reached the end of the partition, which has `end` elements.
  void OnEnd(Index end);
  // Returns the lowest index that the producer has not reached yet.
  Index next() const { return next_; }

  // --- Links ---

  // A link of this client opened, or was open when the placement arrived. `received`: the client's
  // indices of this partition, or at least the indices that were sent on the client's earlier link
  // and not confirmed. The client must have reported them after that link was gone. Indices that
  // were sent on that link, and are neither confirmed nor in `received`, are sent again. Returns
  // false if the client is not, or not yet, a reader of this placement: then close the link.
  bool OnLinkUp(ClientId client, Incarnation incarnation, const IndexSet& received);
  // The link broke. Indices that were sent on it and not confirmed are in doubt: they are not sent
  // again until the client has reported its indices.
  void OnLinkBroken(ClientId client);
  // `client` confirms that it has received `indices`.
  void OnReceived(ClientId client, const IndexSet& indices);
  // Adds a reader. Returns true if the reader is new here: then, if its link is up, call OnLinkUp
  // with an empty `received`. A restarted dispatcher names all readers again.
  bool OnAddReader(const Reader& reader);

  // --- The end ---

  // Returns whether all indices outside skip have been sent and none is in doubt. Once this was
  // true and reported, the report remains valid even if a link breaks later.
  bool ended() const;
  std::optional<Index> end() const { return end_; }

  // Returns the indices that are in a reader's slots or on the way there. The worker must keep the
  // bytes of these elements.
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
