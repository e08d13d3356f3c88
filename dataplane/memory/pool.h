// SPDX-License-Identifier: Apache-2.0
// Slots by size class, lent out and taken back. On heap memory, or, where a link
// offers such a pool (transfer/transport.h), in memory shared with a client.
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

namespace penstock {

struct PoolOptions {
  // Bytes that all slots of the pool may take together; what is lent counts,
  // and so does what lies free. 0: no bound.
  size_t max_bytes = 0;
};

// What a pool did since it was made. A steady state adds nothing to the first two.
struct PoolCounters {
  int64_t segments_allocated = 0;
  int64_t registrations = 0;
  int64_t slots_lent = 0;
  int64_t slots_returned = 0;
  int64_t bytes_reserved = 0;  // in segments now
  int64_t bytes_lent = 0;      // in slots now
};

// A place of Pool::PlaceOf() that says nothing.
inline constexpr int64_t kNoPlace = -1;

// Lends slots. Thread-safe. Lives on, invisibly, until its last slot is back,
// so that elements may outlive whoever made the pool.
class Pool {
 public:
  static std::shared_ptr<Pool> Create(PoolOptions options = {});
  virtual ~Pool() = default;

  // A slot of at least `bytes`, 64 B aligned, with whatever was in it before. Freed slots of the
  // size class are used again before a new segment is made; ResourceExhausted above max_bytes names
  // both numbers. No wait.
  virtual absl::StatusOr<Loan> Lend(size_t bytes) = 0;
  // The same for a block with that head and body, which is to begin where the loan's bytes do: a
  // pool may want the body to begin at a page.
  virtual absl::StatusOr<Loan> LendBlock(size_t head_bytes, size_t body_bytes) {
    return Lend(head_bytes + body_bytes);
  }
  // For a pool whose memory depends on which element it is for: the place of the one that its user
  // gives out after `ahead` others, counted from the one that it is asked for now. Called by the
  // thread that is asked; the place holds for good, and for any thread. kNoPlace: it is all one.
  virtual int64_t PlaceOf(int64_t /*ahead*/) const { return kNoPlace; }
  // The same as LendBlock(head_bytes, body_bytes), for the element at a place of PlaceOf().
  virtual absl::StatusOr<Loan> LendBlockAt(int64_t /*place*/, size_t head_bytes,
                                           size_t body_bytes) {
    return LendBlock(head_bytes, body_bytes);
  }
  virtual PoolCounters counters() const = 0;
};

// The process's pool for what no one gave another pool to.
Pool& DefaultPool();

// A block of that layout in a slot of `pool`, with its writer's work begun.
struct OpenBlock {
  Loan loan;
  BlockWriter writer;
  // The finished element; every leaf must have been written.
  Element Seal(const Spec& spec) &&;
};
// ResourceExhausted for one that is larger than an element may be (element_limit.h). `place`: of
// Pool::PlaceOf().
absl::StatusOr<OpenBlock> NewBlock(Pool& pool, const BlockLayout& layout, const Spec& spec,
                                   int64_t place = kNoPlace);

// An element with copies of `tensors`, whose leaves `spec` describes. `place`: as of NewBlock().
absl::StatusOr<Element> MakeElement(Pool& pool, absl::Span<const Tensor> tensors, const Spec& spec,
                                    int64_t place = kNoPlace);

// An error in an element's place; dataplane/element/error_block.h reads it.
absl::StatusOr<Element> MakeErrorBlock(Pool& pool, const Identity& identity,
                                       const absl::Status& error);

// The same values in a slot of `pool`, whatever keeps `element` now. Element::Copy()
// is this with the default pool.
absl::StatusOr<Element> CopyInto(Pool& pool, const Element& element);

// `element` itself, or a copy if it keeps a slot of four times its size or more: how
// small elements leave the frame they came in.
absl::StatusOr<Element> CopyOutOfFrame(Pool& pool, Element element);

}  // namespace penstock
