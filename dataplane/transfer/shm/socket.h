// SPDX-License-Identifier: Apache-2.0
// The socket of a link: how worker and client find each other, pass descriptors,
// and learn of each other's end. What happens for every element does not go
// through here, but through the rings (channel.h).
//
// Unix sockets in the abstract namespace: no file is left behind. Only processes
// of the same user are spoken to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/memory/descriptor.h"

namespace penstock::transfer {

// Never used again for another packet.
enum class PacketKind : uint32_t {
  // Client to worker.
  // a: kShmVersion; b: bytes of the Hello; c: what it can do besides, bits of Ability.
  // Descriptor: control segment
  kGreeting = 1,
  kSegment = 2,  // a: its number; b: slots; c: bytes of a body. Descriptor: the segment
  kGoodbye = 3,  // the client closes on purpose
  kMapped = 4,   // a: number of a kShared; b: a status code; text: its message. Not OK: it is
                 // not mapped, and nothing of that kind is wanted on this link any more
  // Worker to client.
  kWelcome = 16,
  kNeed = 17,    // a: bytes of a block, or of a frame, that finds no slot; b: how many slots
  kRetire = 18,  // a: the number of a segment that the worker has let go of
  kClosed = 19,  // a: a status code; text: its message. All that was sent is in the ring
  // a: a number; b: slots; c: bytes of a body. Descriptors: a segment of the worker's, to be
  // mapped for reading, and a pipe's end to be written to and closed when the link is over and no
  // slot of such segments is read any more
  kShared = 20,
  kGiveUp = 21,  // a: the number of such a segment, none of whose slots the client has
  // Either way. There are words in the ring for one who sleeps. A packet of the link's own socket,
  // since the state of what several processes hold (an eventfd is blocking, or full) is any one's
  // to change
  kRing = 32,
};

// Never used again for another ability.
enum Ability : uint64_t {
  kReadsShared = 1,  // answers kShared
};

struct Packet {
  PacketKind kind = PacketKind::kGoodbye;
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t c = 0;
  std::string text;                     // at most kMaxPacketText
  std::vector<Descriptor> descriptors;  // at most kMaxDescriptors
};

inline constexpr size_t kMaxPacketText = 16 << 10;
inline constexpr int kPacketsAtOnce = 16;  // received before other links get their turn
inline constexpr size_t kMaxDescriptors = 2;

// One end. Never waits.
class PacketSocket {
 public:
  PacketSocket() = default;
  explicit PacketSocket(Descriptor fd) : fd_(std::move(fd)) {}

  // Connects to that name. Unavailable if nobody listens, PermissionDenied if
  // it is a process of another user.
  static absl::StatusOr<PacketSocket> Connect(std::string_view name);

  int fd() const { return fd_.get(); }
  // Unavailable if the other side is gone, or reads nothing.
  absl::Status Send(PacketKind kind, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                    std::string_view text = {}, std::initializer_list<int> descriptors = {}) const;
  // NotFound if there is none now, Unavailable if the other side is gone, DataLoss
  // for what is no packet.
  absl::StatusOr<Packet> Receive() const;

  // A descriptor that becomes readable when the other process ends, even if
  // a child of its own keeps the socket; none where the system cannot tell.
  Descriptor OpenPeerPidfd() const;
  absl::Status CheckPeerUser() const;

 private:
  Descriptor fd_;
};

// A socket that listens at that name.
absl::StatusOr<Descriptor> ListenAt(std::string_view name);
// The next connection, of a process of the same user; NotFound if there is none, ResourceExhausted
// if this process or machine has no room for it, which stays for later; PermissionDenied for
// another user's, which is closed.
absl::StatusOr<PacketSocket> AcceptFrom(int listener);

}  // namespace penstock::transfer
