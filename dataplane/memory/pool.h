// SPDX-License-Identifier: Apache-2.0
// Slots by size class, lent and returned. They are in heap memory or, if a link offers a pool
// (transfer/transport.h), in memory shared with a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/element/block.h"
#include "dataplane/element/frame.h"
#include "penstock/element.h"
#include "penstock/loan.h"
#include "penstock/spec.h"

#pragma GCC visibility push(default)
namespace penstock {

struct PoolOptions {
  // The maximum total size of the pool's slots in bytes, both lent and free. 0: no bound.
  size_t max_bytes = 0;
};

// Counts of a pool since it was made. In a steady state, segments_allocated and registrations do
// not grow.
struct PoolCounters {
  int64_t segments_allocated = 0;
  int64_t registrations = 0;
  int64_t slots_lent = 0;
  int64_t slots_returned = 0;
  int64_t bytes_reserved = 0;  // in segments now
  int64_t bytes_lent = 0;      // in slots now
};

// The result of Pool::PlaceOf() if there is no place.
inline constexpr int64_t kNoPlace = -1;

// Lends slots. Thread-safe. Stays alive until its last slot has returned, even after its owner has
// released it, so that elements may outlive the pool's owner.
class Pool {
 public:
  static std::shared_ptr<Pool> Create(PoolOptions options = {});
  virtual ~Pool() = default;

  // Lends a slot of at least `bytes`, 64 B aligned, with its previous contents. Free slots of the
  // size class are reused before a new segment is made. ResourceExhausted, with the sizes, if the
  // pool would exceed max_bytes. Does not wait.
  virtual absl::StatusOr<Loan> Lend(size_t bytes) = 0;
  // Does the same for a block with a head and a body of these sizes. The block must begin where the
  // loan's bytes begin, because a pool may need the body to start on a page boundary.
  virtual absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) {
    return Lend(head_bytes + body_bytes);
  }
  // For pools that choose the memory by the element. Returns the place of the element that the
  // pool's user will return `ahead` elements after the element that is being requested. Call it on
  // the thread that serves that request. The place remains valid forever, on any thread. kNoPlace
  // if all elements are treated alike.
  virtual int64_t PlaceOf(int64_t /*ahead*/) const { return kNoPlace; }
  // Same as LendBlock(head_bytes, body_bytes), for the element at a place that PlaceOf() returned.
  virtual absl::StatusOr<Loan> LendBlockAt(int64_t /*place*/, size_t head_bytes,
                                           size_t body_bytes) {
    return LendBlock(head_bytes, body_bytes);
  }
  virtual PoolCounters counters() const = 0;
};

// Returns the process's pool, for elements that were given no other pool.
Pool& DefaultPool();

// A block in a slot of a pool, ready to be written.
struct OpenBlock {
  Loan loan;
  BlockWriter writer;
  // Returns the finished element. REQUIRES: every leaf has been written.
  Element Seal(const Spec& spec) &&;
};
// ResourceExhausted for a block that is larger than an element may be (element_limit.h). `place`
// comes from Pool::PlaceOf().
absl::StatusOr<OpenBlock> NewBlock(Pool& pool, const BlockLayout& layout, const Spec& spec,
                                   int64_t place = kNoPlace);

// Returns an element with copies of `tensors`, whose leaves `spec` describes. `place`: same as for
// NewBlock().
absl::StatusOr<Element> MakeElement(Pool& pool, absl::Span<const Tensor> tensors, const Spec& spec,
                                    int64_t place = kNoPlace);

// Returns an error in place of an element; dataplane/element/error_block.h reads it.
absl::StatusOr<Element> MakeErrorBlock(Pool& pool, const Identity& identity,
                                       const absl::Status& error);

// Returns the same values in a slot of `pool`, independent of the memory that holds `element` now.
// Element::Copy() does this with the default pool.
absl::StatusOr<Element> CopyInto(Pool& pool, const Element& element);

// Returns `element` itself, or a copy if it holds a slot of four times its size or more. This is
// how small elements leave their frame.
absl::StatusOr<Element> CopyOutOfFrame(Pool& pool, Element element);

}  // namespace penstock
#pragma GCC visibility pop
