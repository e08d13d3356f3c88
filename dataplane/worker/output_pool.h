// SPDX-License-Identifier: Apache-2.0
// The memory in which a partition's last node makes its elements. If the client that is likely to
// get them offers memory through its link, that memory is used, so that the elements need not be
// copied later.
#pragma once

#include "dataplane/memory/pool.h"
#include "dataplane/worker/iteration_sink.h"

namespace penstock::worker {

// An element's index may determine its client. Otherwise the client is chosen when the element is
// sent, and an element made for a different client is copied then. Thread-safe. `sink` and
// `otherwise` must outlive the pool; its loans may outlive all of them.
class OutputPool : public Pool {
 public:
  OutputPool(PartitionSink& sink, Pool& otherwise) : sink_(sink), otherwise_(otherwise) {}

  absl::StatusOr<Loan> Lend(size_t bytes) override { return otherwise_.Lend(bytes); }
  absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) override {
    return LendBlockAt(kNoPlace, head_bytes, body_bytes);
  }
  // Places are indices.
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
