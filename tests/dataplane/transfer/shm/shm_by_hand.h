// SPDX-License-Identifier: Apache-2.0
// Receives packets and words in a test that plays one end of a shm link by hand.
#pragma once

#include <cstdint>
#include <utility>

#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/ring.h"
#include "dataplane/transfer/shm/socket.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::transfer::shm {

// Returns the next packet that is not kRing; kGoodbye if the peer is gone or sends none.
inline Packet Await(const PacketSocket& socket) {
  Packet next;
  EXPECT_TRUE(Eventually([&] {
    absl::StatusOr<Packet> packet = socket.Receive();
    if (packet.ok() ? packet->kind == PacketKind::kRing : absl::IsNotFound(packet.status())) {
      return false;
    }
    if (packet.ok()) next = *std::move(packet);
    return true;
  })) << "no packet came";
  return next;
}

// Returns the next word; 0 if none comes.
inline uint64_t NextWordOf(Channel& channel) {
  uint64_t word = 0;
  EXPECT_TRUE(Eventually([&] { return channel.Read(word) == RingReader::Found::kWord; }))
      << "no word came";
  return word;
}

}  // namespace penstock::transfer::shm
