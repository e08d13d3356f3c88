// SPDX-License-Identifier: Apache-2.0
// The socket of a link. Through it, worker and client find each other, pass descriptors, and learn
// when the other process ends. The traffic of each element goes through the rings (channel.h), not
// through the socket.
//
// The sockets are Unix sockets in the abstract namespace, so that no file remains. Only connections
// from processes of the same user are accepted.
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
#include "control/env/descriptor.h"

namespace penstock::transfer::shm {

// Numbers are never reused for a different packet.
enum class PacketKind : uint32_t {
  // Client to worker.
  // a: kShmVersions (Pack()); b: bytes of the Hello; c: further abilities, bits of Ability.
  // Descriptor:
  // control segment
  kGreeting = 1,
  kSegment = 2,  // a: its number; b: slots; c: bytes of a body. Descriptor: the segment
  kGoodbye = 3,  // the client closes the link on purpose
  kMapped = 4,   // a: number of a kShared; b: a status code; text: its message. Not OK: not
                 // mapped, and no more kShared are wanted on this link
  // Worker to client.
  kWelcome = 16,
  kNeed = 17,    // a: bytes of a block or a frame that finds no slot; b: how many slots
  kRetire = 18,  // a: the number of a segment that the worker has released
  kClosed = 19,  // a: a status code; text: its message. All that was sent is in the ring
  // a: a number; b: slots; c: bytes of a body. Descriptors: a segment of the worker, to be mapped
  // for reading, and one end of a socket pair, to be shut down when the link is over and slots of
  // such segments are no longer read
  kShared = 20,
  kGiveUp = 21,  // a: the number of a kShared segment of which the client has no slot
  // Both directions. Wakes a side that sleeps while its ring has words. This is a packet and not an
  // eventfd, because any process that holds an eventfd can make the eventfd blocking or full
  kRing = 32,
};

// Numbers are never reused for a different ability.
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
inline constexpr int kPacketsAtOnce = 16;  // received before other links are served
inline constexpr size_t kMaxDescriptors = 2;

// One end of the socket. Never waits.
class PacketSocket {
 public:
  PacketSocket() = default;
  explicit PacketSocket(Descriptor fd) : fd_(std::move(fd)) {}

  // Connects to the socket with that name. Unavailable if nothing listens there, PermissionDenied
  // if the process belongs to a different user.
  static absl::StatusOr<PacketSocket> Connect(std::string_view name);

  int fd() const { return fd_.get(); }
  Descriptor Release() && { return std::move(fd_); }
  // Unavailable if the other side is gone or does not read.
  absl::Status Send(PacketKind kind, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                    std::string_view text = {}, std::initializer_list<int> descriptors = {}) const;
  // Returns the next packet. NotFound if there is none now, Unavailable if the other side is gone,
  // DataLoss if the packet is malformed.
  absl::StatusOr<Packet> Receive() const;

  // Returns a descriptor that becomes readable when the other process ends, even if a child of that
  // process keeps the socket; empty if the system has no such descriptor.
  Descriptor OpenPeerPidfd() const;
  absl::Status CheckPeerUser() const;

 private:
  Descriptor fd_;
};

// Returns a socket that listens under the name `name`.
absl::StatusOr<Descriptor> ListenAt(std::string_view name);
// Returns the next connection, from a process of the same user. NotFound if there is none.
// ResourceExhausted if this process or machine has no descriptor or memory for the connection,
// which then stays queued. PermissionDenied for another user's connection, which is closed.
absl::StatusOr<PacketSocket> AcceptFrom(int listener);

}  // namespace penstock::transfer::shm
