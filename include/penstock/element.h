// SPDX-License-Identifier: Apache-2.0
// One item of a dataset: a structure of tensors in one block of memory.
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

#pragma GCC visibility push(default)
namespace penstock {

// Identifies an element. (iteration, partition, index) identifies the element permanently.
// Placement, round and consumer describe how it was delivered.
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

// A loan of the slot that contains the block of one element (docs/element.md). Moving passes the
// loan on. Destroying the last handle returns the slot, on any thread. An element keeps its pool
// alive, and may outlive the iterator and the client from which it came. Do not use it in a forked
// child: the slot belongs to the parent.
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

  // Makes the element whose block starts at `block`, inside the loan's bytes. The block must have
  // been written by BlockWriter or checked by CheckBlock (dataplane/element/block.h) against
  // `spec`.
  Element(Loan loan, std::byte* block, Spec spec)
      : loan_(std::move(loan)), block_(block), spec_(std::move(spec)) {}

  explicit operator bool() const { return block_ != nullptr; }

  const Spec& spec() const { return spec_; }
  size_t size() const { return spec_.leaves().size(); }
  // Returns leaf number `i` in the order of spec().leaves(). REQUIRES: i < size().
  Tensor tensor(size_t i) const;
  // Returns the leaf with this key of a dict. Aborts if there is no such key: this is a bug in the
  // program, because the spec is known. Use Find() for keys that may not exist.
  Tensor operator[](std::string_view key) const;
  absl::StatusOr<Tensor> Find(std::string_view key) const;

  Identity identity() const;
  void set_identity(const Identity& identity);  // REQUIRES: !IsShared()

  // Returns the values of leaf `i` for writing in place. REQUIRES: !IsShared(); T is the C++ type
  // of the leaf's dtype.
  template <class T>
  absl::Span<T> mutable_data(size_t i) {
    absl::Span<const T> values = tensor(i).template data<T>();
    return absl::Span<T>(const_cast<T*>(values.data()), values.size());
  }

  // True while another handle reads the same block; the block is then read-only.
  bool IsShared() const { return loan_.IsShared(); }
  // Returns another handle on the same block. This makes the block read-only.
  Element Share() const { return Element(loan_.Share(), block_, spec_); }
  // Copies the values into a block of their own. ResourceExhausted if there is not enough memory.
  absl::StatusOr<Element> Copy() const;

  // Returns head and body as they are in memory; see docs/element.md.
  absl::Span<std::byte> block() const;
  // Returns the loan that keeps the block, for code that passes it on.
  const Loan& loan() const { return loan_; }

  std::string ToString() const;

 private:
  Loan loan_;
  std::byte* block_ = nullptr;
  Spec spec_;
};

}  // namespace penstock
#pragma GCC visibility pop
