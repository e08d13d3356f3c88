// SPDX-License-Identifier: Apache-2.0
// The memory in which a partition's last node makes its elements. If the client that is likely to
// get an element offers memory through its link, the element is made there, so that it need not be
// copied later.
#pragma once

#include "dataplane/memory/pool.h"
#include "dataplane/worker/iteration_sink.h"

namespace penstock::worker {

// If an element's index does not determine its client, the client is chosen when the element is
// sent; an element that was made in another client's memory is then copied. Thread-safe. `sink` and
// `otherwise` must outlive the pool; the pool's loans may outlive all three.
class OutputPool : public Pool {
 public:
  OutputPool(PartitionSink& sink, Pool& otherwise) : sink_(sink), otherwise_(otherwise) {}

  absl::StatusOr<Loan> Lend(size_t bytes) override { return otherwise_.Lend(bytes); }
  absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) override {
    return LendBlockAt(kNoPlace, head_bytes, body_bytes);
  }
  // A place is an index.
  int64_t PlaceOf(int64_t ahead) const override { return sink_.ProducesAfter(ahead); }
  absl::StatusOr<Loan> LendBlockAt(int64_t place, size_t head_bytes, size_t body_bytes) override {
    // Smaller elements travel in frames.
    if (head_bytes + body_bytes < kFrameBelow) return otherwise_.LendBlock(head_bytes, body_bytes);
    const std::shared_ptr<Pool> slots =
        sink_.SlotsFor(place == kNoPlace ? sink_.ProducesAfter(0) : place);
    return (slots != nullptr ? *slots : otherwise_).LendBlock(head_bytes, body_bytes);
  }
  PoolCounters counters() const override { return otherwise_.counters(); }

 private:
  PartitionSink& sink_;
  Pool& otherwise_;
};

}  // namespace penstock::worker
