// SPDX-License-Identifier: Apache-2.0
// What a link has to send. Small elements are copied together into frames
// (docs/element.md), and their own slots are free again at once; larger ones and
// errors go as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "dataplane/element/frame.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

// What is sent, in parcels: one frame, one element or one error each. A parcel
// is kept until all in it has landed. Not thread-safe.
class Outgoing {
 public:
  // Frames take slots of `frame_bytes` from `frames`, which outlives this.
  Outgoing(Pool& frames, size_t frame_bytes) : frames_(frames), frame_bytes_(frame_bytes) {}

  // What one message carries.
  struct Parcel {
    absl::Span<const std::byte> bytes;  // of the frame or the block; none of an error
    Loan loan;                          // keeps `bytes`
    std::optional<ErrorMessage> error;  // a copy: what waits here moves as more is sent
    bool is_frame = false;
    int64_t count = 1;  // elements, or the error
  };

  void Push(Sent&& sent);
  // Parcels that nothing more goes into and that were not taken yet.
  size_t ready() const { return parcels_.size() - written_ - filling(); }
  // A frame waits for company; frame() changes with each.
  bool filling() const { return frame_.has_value(); }
  uint64_t frame() const { return opened_; }
  // Lets go of that: it is ready.
  void Seal();
  // The next parcel. REQUIRES: ready() > 0.
  Parcel Take();

  // The `count` oldest elements and errors have landed, which are put behind `landed`. False if so
  // many were not taken.
  bool OnLanded(int64_t count, std::vector<Acknowledged>& landed);
  // All that has not landed, in the order of sending. What comes from frames is shared.
  std::vector<Sent> TakeUnconfirmed();

 private:
  struct Kept {
    Sent alone;  // unless a frame
    Loan frame;
    size_t bytes = 0;  // of the frame
    Spec spec;         // of all in the frame
    int64_t count = 1;
    int64_t landed = 0;
  };

  // Copies it into the open frame, or into a new one; false if there is no room for one.
  bool Pack(const Element& element);
  void Unpack(const Kept& kept, std::vector<Sent>& sent);

  Pool& frames_;
  const size_t frame_bytes_;
  Fifo<Kept> parcels_;          // not landed; the last is the open frame, if there is one
  Fifo<Acknowledged> members_;  // of all parcels, but for what has landed
  size_t written_ = 0;          // of parcels_, from the front: taken
  std::optional<FrameWriter> frame_;
  uint64_t opened_ = 0;  // frames so far
};

}  // namespace penstock::transfer
