// SPDX-License-Identifier: Apache-2.0
// The two rings of a link, one each way, and who must be woken when something
// was put into one: a side that sleeps says so first and then looks once more; a
// side that writes looks at that after it has written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/shared_segment.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/shm/ring.h"
#include "dataplane/transfer/shm/socket.h"

namespace penstock::transfer {

// What one side says of itself. In shared memory.
struct SideMemory {
  alignas(kApart) std::atomic<uint32_t> sleeps;   // nobody has rung since it went to its socket
  alignas(kApart) std::atomic<uint32_t> blocked;  // it waits for room in the ring it writes
};

// At the beginning of the segment that the client brings along; behind it lies
// its Hello. All zero at first.
struct ControlMemory {
  RingMemory to_client;
  RingMemory to_worker;
  SideMemory client;
  SideMemory worker;
};

class Channel {
 public:
  enum class Side { kClient, kWorker };
  // REQUIRES: the segment takes a ControlMemory.
  Channel(SharedSegment control, Side side);

  // Any thread. What finds no room waits in private memory, in order, for Flush().
  void Send(uint64_t word);
  void Flush();
  // Nothing waits for room.
  bool flushed() const;
  // The link's socket, by which the other side is rung when it sleeps; rung at once, for what was
  // sent before. REQUIRES: it lives until ClearDoorbell().
  void SetDoorbell(const PacketSocket& socket);
  void ClearDoorbell();

  // One thread. Whether the other side has written nothing more; its next word.
  bool empty() { return reader_.empty(); }
  RingReader::Found Read(uint64_t& word);
  // Before sleeping, with another look behind it; and after.
  void SetSleeps(bool sleeps) { own_.sleeps.store(sleeps, std::memory_order_seq_cst); }

  const SharedSegment& control() const { return control_; }

 private:
  void WriteWaiting() REQUIRES(mu_);  // as many as there is room for
  void RingIfAsleep();
  void RingDoorbell();

  const SharedSegment control_;
  SideMemory& own_;
  SideMemory& other_;
  RingReader reader_;

  mutable Mutex mu_;
  RingWriter writer_ GUARDED_BY(mu_);
  Fifo<uint64_t> waiting_ GUARDED_BY(mu_);
  std::atomic<bool> has_waiting_ = false;

  Mutex doorbell_mu_;
  const PacketSocket* doorbell_ GUARDED_BY(doorbell_mu_) = nullptr;
};

}  // namespace penstock::transfer
