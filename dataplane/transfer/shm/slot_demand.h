// SPDX-License-Identifier: Apache-2.0
// Decides how many slots a worker requests from the client of a shm link. With too few slots,
// elements wait or are copied; each slot takes memory of the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "dataplane/transfer/shm/send_slots.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/shm/word.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::shm {

// The space that a message takes in a slot, and the kind of word that announces the message.
struct SlotRoom {
  WordKind kind = WordKind::kBlock;
  size_t bytes = 0;         // from the body's position on
  uint32_t head_bytes = 0;  // before the body
};

// Not thread-safe.
class SlotDemand {
 public:
  // Slots that the worker has requested but the client has not made yet. The client may make fewer
  // at a time.
  struct Asked {
    SlotRoom room;
    uint64_t slots = 0;
    size_t most_bytes = 0;  // of the next segment
  };

  // `socket` and `slots` belong to the link, and outlive this object.
  SlotDemand(const PacketSocket& socket, SendSlots& slots) : socket_(socket), slots_(slots) {}

  void NoteCredits(int64_t credits);
  // Call this when a message has found no free slot with space for `room`, and `queued` more
  // messages wait. Asks for as many slots as may be in transit, unless the client has not answered
  // an earlier request yet.
  void Ask(const SlotRoom& room, size_t queued);
  // Asks for more slots if elements that are sent were made elsewhere because no slot was free.
  // Call this for each element that is sent.
  void AskForMissed(const Sent& sent);

  const std::optional<Asked>& asked() const { return asked_; }
  // Call this when the client has made a segment with some of the requested slots. AskForRest()
  // asks for the rest, unless something else was requested meanwhile.
  void Answered() { asked_.reset(); }
  void AskForRest(const Asked& asked, uint64_t made);

 private:
  void AskForWanted(const SlotRoom& room, uint64_t wanted);
  void AskFor(const SlotRoom& room, uint64_t slots);

  const PacketSocket& socket_;
  SendSlots& slots_;
  std::optional<Asked> asked_;
  uint64_t most_credits_ = 0;           // the most that the client has had at a time
  std::map<size_t, int> asks_on_miss_;  // by bytes of a body
};

}  // namespace penstock::transfer::shm
