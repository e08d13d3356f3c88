// SPDX-License-Identifier: Apache-2.0
// The slots of a link as its client sees them. The segments are the client's own, or they are the
// worker's, in which case the client only reads them. The worker chooses the slot of an element. A
// slot is at the worker (free there, or being filled) or here (received, lent). Private memory
// records which side has the slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/device/page_locking.h"
#include "dataplane/memory/slot_segment.h"
#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/word.h"
#include "penstock/loan.h"

namespace penstock::transfer::shm {

// The slots of the client's segments or of the worker's segments; a link has one object for each.
// The object keeps itself alive until the last slot that is here has been returned.
class ReceiveSlots final : public SlotOwner, public std::enable_shared_from_this<ReceiveSlots> {
 public:
  // Returned slots are reported to the worker through `channel`, by a word of kind `given_back`.
  // The client's own segments are page-locked once a device is used; the worker's are not.
  explicit ReceiveSlots(std::shared_ptr<Channel> channel,
                        PageLocking& page_locking = PageLocking::ForProcess(),
                        WordKind given_back = WordKind::kReturn)
      : channel_(std::move(channel)), page_locking_(page_locking), given_back_(given_back) {}
  ~ReceiveSlots();

  struct NewSegment {
    uint32_t number;
    SlotLayout layout;
    int fd;  // open until the segment is retired
  };
  // Makes a segment with `count` slots, or fewer, for blocks of `bytes`. All slots start at the
  // worker. ResourceExhausted if there is no memory for it.
  absl::StatusOr<NewSegment> Add(uint64_t bytes, uint64_t count);
  // Maps a segment of the worker for reading. DataLoss if the segment does not have the size that
  // the worker announced, ResourceExhausted if this process cannot map it. Keeps `hold`, a socket,
  // in place of the previous one, and shuts it down once this object is closed and no slot is here.
  absl::Status Adopt(uint64_t number, uint64_t slots, uint64_t body_bytes,
                     const Descriptor& segment, Descriptor hold);
  // Releases a segment that the worker no longer uses. DataLoss if there is no such segment or one
  // of its slots is here.
  absl::Status Retire(uint64_t number);

  // A slot that the worker has given to the client.
  struct Arrived {
    Loan loan;
    const std::byte* shared;    // its body, which the worker may still write
    std::byte* body = nullptr;  // same as `shared`, with kHeadRoom private bytes before it
    size_t body_bytes = 0;
  };
  // DataLoss for a slot that does not exist, is not the worker's, or has a different generation.
  absl::StatusOr<Arrived> Arrive(const SlotWord& word);

  // After this call, no slot arrives, and nothing more is reported to the worker.
  void Close();

  void TakeBack(Slot* slot) noexcept override;

 private:
  struct SharedSlot : Slot {
    uint32_t number = 0;
    uint32_t generation = 0;
    bool here = false;
    const SlotView* drop_written = nullptr;  // call DropWritten() on return
  };
  struct Segment {
    SharedSegment memory;
    SlotView view;
    std::unique_ptr<PageLock> page_lock;  // of the view; none for the worker's segments
    SlotLayout layout;
    std::unique_ptr<SharedSlot[]> slots;
    uint32_t here = 0;  // number of slots
  };

  void Insert(uint32_t number, Segment segment) REQUIRES(mu_);
  void LetGoOfHold() REQUIRES(mu_);

  const ForkGuard in_creator_;
  const std::shared_ptr<Channel> channel_;
  PageLocking& page_locking_;
  const WordKind given_back_;

  Mutex mu_;
  std::map<uint32_t, Segment> segments_ GUARDED_BY(mu_);  // by number
  bool closed_ GUARDED_BY(mu_) = false;
  int64_t here_ GUARDED_BY(mu_) = 0;  // number of slots, of all segments
  Descriptor hold_ GUARDED_BY(mu_);
  // Set while this object is closed and slots are still here.
  std::shared_ptr<ReceiveSlots> self_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer::shm
