// SPDX-License-Identifier: Apache-2.0
// One item of a dataset: a structure of tensors on one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/ids.h"
#include "penstock/loan.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock {

// Who an element is. (iteration, partition, index) names it for good;
// placement, round and consumer say how it came.
struct Identity {
  JobId job;
  IterationId iteration;
  PartitionId partition;
  Placement placement;
  Index index = 0;
  int64_t round = -1;
  int32_t consumer = -1;
  friend bool operator==(const Identity&, const Identity&) = default;
};

// A loan on a block that holds one element (docs/element.md). Moving hands the
// loan on; letting go of the last handle returns the slot, from any thread.
// Keeps its pool alive, and may outlive the iterator and the client it came
// from. Not for use in a forked child: the slot belongs to the parent.
class Element {
 public:
  Element() = default;
  Element(Element&& other) noexcept
      : loan_(std::move(other.loan_)),
        block_(std::exchange(other.block_, nullptr)),
        spec_(std::move(other.spec_)) {}
  Element& operator=(Element&& other) noexcept {
    loan_ = std::move(other.loan_);
    block_ = std::exchange(other.block_, nullptr);
    spec_ = std::move(other.spec_);
    return *this;
  }

  // The element whose block starts at `block` inside the loan's bytes. The
  // block must have been written by BlockWriter or checked by CheckBlock
  // (dataplane/element/block.h) against `spec`.
  Element(Loan loan, std::byte* block, Spec spec)
      : loan_(std::move(loan)), block_(block), spec_(std::move(spec)) {}

  explicit operator bool() const { return block_ != nullptr; }

  const Spec& spec() const { return spec_; }
  size_t size() const { return spec_.leaves().size(); }
  // Leaf number `i` in the order of spec().leaves(). REQUIRES: i < size().
  Tensor tensor(size_t i) const;
  // The leaf of that key of a dict; aborts on a key that is not there (a bug in
  // the program: the spec is known beforehand). For keys from outside: Find.
  Tensor operator[](std::string_view key) const;
  absl::StatusOr<Tensor> Find(std::string_view key) const;

  Identity identity() const;
  void set_identity(const Identity& identity);  // REQUIRES: !IsShared()

  // Values of leaf `i` for writing in place. REQUIRES: not shared; dtype fits.
  template <class T>
  absl::Span<T> mutable_data(size_t i) {
    absl::Span<const T> values = tensor(i).template data<T>();
    return absl::Span<T>(const_cast<T*>(values.data()), values.size());
  }

  // True while another handle reads the same block; it is read-only then.
  bool IsShared() const { return loan_.IsShared(); }
  // One more handle on the same block, which makes it read-only.
  Element Share() const { return Element(loan_.Share(), block_, spec_); }
  // The same values in a block of their own. ResourceExhausted without memory.
  absl::StatusOr<Element> Copy() const;

  // Head and body as they lie in memory; see docs/element.md.
  absl::Span<std::byte> block() const;
  // The loan that keeps the block, for those who hand it on.
  const Loan& loan() const { return loan_; }

  std::string ToString() const;

 private:
  Loan loan_;
  std::byte* block_ = nullptr;
  Spec spec_;
};

}  // namespace penstock
