// SPDX-License-Identifier: Apache-2.0
// The two rings of a link, one each way, and the wake-ups between its sides. A side announces that
// it will sleep and then checks its ring once more. A side that writes checks afterwards for an
// announcement of the other side.
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

namespace penstock::transfer::shm {

// The state that one side announces, in shared memory.
struct SideMemory {
  alignas(kApart) std::atomic<uint32_t> sleeps;   // the side sleeps and has not been rung since
  alignas(kApart) std::atomic<uint32_t> blocked;  // waits for space in the ring that it writes
};

// The beginning of the segment that the client makes; the Hello follows it. All zero at first.
struct ControlMemory {
  RingMemory to_client;
  RingMemory to_worker;
  SideMemory client;
  SideMemory worker;
};

class Channel {
 public:
  enum class Side { kClient, kWorker };
  // REQUIRES: the segment is large enough for a ControlMemory.
  Channel(SharedSegment control, Side side);

  // Any thread. If the ring is full, words wait in private memory, in order, for Flush().
  void Send(uint64_t word);
  void Flush();
  // Returns true if no word waits for space in the ring.
  bool flushed() const;
  // Sets the link's socket, which rings the other side when that side sleeps; also rings
  // immediately, for words sent earlier. REQUIRES: `socket` lives until ClearDoorbell().
  void SetDoorbell(const PacketSocket& socket);
  void ClearDoorbell();

  // One thread. empty() returns true if there is no further word; Read() returns the next one.
  bool empty() { return reader_.empty(); }
  RingReader::Found Read(uint64_t& word);
  // Set this before sleeping, then check the ring again; clear it afterwards.
  void SetSleeps(bool sleeps) { own_.sleeps.store(sleeps, std::memory_order_seq_cst); }

  const SharedSegment& control() const { return control_; }

 private:
  void WriteWaiting() REQUIRES(mu_);  // as many as the ring has space for
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

}  // namespace penstock::transfer::shm
