// SPDX-License-Identifier: Apache-2.0
// How many slots a worker asks the client of a shm link for. Too few make elements wait or be
// copied; each one takes memory of the client's.
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

// The room that a message takes in a slot, and the kind of word that announces it.
struct SlotRoom {
  WordKind kind = WordKind::kBlock;
  size_t bytes = 0;         // in the body's place
  uint32_t head_bytes = 0;  // before the body
};

// Not thread-safe.
class SlotDemand {
 public:
  // Slots that the client was asked for but has not made yet. It may make fewer at a time.
  struct Asked {
    SlotRoom room;
    uint64_t slots = 0;
    size_t most_bytes = 0;  // of the next segment
  };

  // `socket` and `slots` are the link's, and outlive this.
  SlotDemand(const PacketSocket& socket, SendSlots& slots) : socket_(socket), slots_(slots) {}

  void NoteCredits(int64_t credits);
  // A message of this room found no free slot, and `queued` more wait. Asks for as many slots as
  // may be in transit, unless the client has not answered yet.
  void Ask(const SlotRoom& room, size_t queued);
  // Asks for more if elements that are sent were made elsewhere because no slot was free. Call it
  // with each one.
  void AskForMissed(const Sent& sent);

  const std::optional<Asked>& asked() const { return asked_; }
  // The client has made a segment of those. The rest is asked for by AskForRest(), unless something
  // else was asked for meanwhile.
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
