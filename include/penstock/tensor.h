// SPDX-License-Identifier: Apache-2.0
// One leaf of an element, read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "penstock/dtype.h"
#include "penstock/spec.h"

#pragma GCC visibility push(default)
namespace penstock {

// A view of values in row-major order. It does not own the values, and is valid while the Element
// from which it came, or the memory on which it was made, lives. Copying the view copies no values.
// Reading is safe from any thread.
class Tensor {
 public:
  Tensor() = default;
  // Makes a dense tensor on the caller's memory, which must outlive the view, as must `dims`. For
  // strings, `data` points to element_count() + 1 uint64 offsets, and `string_bytes` points to the
  // bytes that these offsets index.
  Tensor(DType dtype, absl::Span<const int64_t> dims, const void* data,
         const char* string_bytes = nullptr)
      : dtype_(dtype), dims_(dims), data_(data), string_bytes_(string_bytes) {}

  DType dtype() const { return dtype_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t dim(int i) const { return dims_[i]; }
  int64_t element_count() const {
    int64_t count = 1;
    for (int64_t dim : dims_) count *= dim;
    return count;
  }
  size_t byte_count() const { return element_count() * SizeOf(dtype_); }  // 0 for strings

  const void* raw() const { return data_; }
  // Returns the values. REQUIRES: T is the C++ type of dtype(). Otherwise aborts, because reading
  // floats as integers is a bug in the program, not a fault in its input.
  template <class T>
  absl::Span<const T> data() const {
    RequireType(DTypeOf<T>);
    return absl::Span<const T>(static_cast<const T*>(data_), element_count());
  }
  // Returns the value of a tensor that has a single value. REQUIRES: the same as for data().
  template <class T>
  T scalar() const {
    return data<T>()[0];
  }
  // Returns string number `i`. REQUIRES: dtype() is kString, i < element_count().
  std::string_view string(int64_t i = 0) const {
    RequireType(kString);
    const auto* offsets = static_cast<const uint64_t*>(data_);
    return {string_bytes_ + offsets[i], offsets[i + 1] - offsets[i]};
  }

  bool present() const { return dtype_ != DType::kInvalid; }  // false: an absent optional leaf
  TensorSpec::Kind kind() const { return kind_; }
  // For ragged tensors: the row splits of level `i` (0 is the outermost), int64, ascending from 0.
  // data() and dims() are then those of the flat values.
  int ragged_rank() const { return kind_ == TensorSpec::Kind::kRagged ? parts_ : 0; }
  absl::Span<const int64_t> row_splits(int i) const { return splits_[i]; }
  // For sparse tensors: indices [nnz, rank] in row-major order, and dense_shape [rank]. data() then
  // has the nnz values.
  absl::Span<const int64_t> indices() const { return splits_[0]; }
  absl::Span<const int64_t> dense_shape() const { return splits_[1]; }

  // Makes this view ragged or sparse with the given parts, which are always on the host.
  void SetRagged(absl::Span<const absl::Span<const int64_t>> row_splits);
  void SetSparse(absl::Span<const int64_t> indices, absl::Span<const int64_t> dense_shape);

  // Returns up to `limit` values as text: "[1 2 3 …] int32 [10]".
  std::string ToString(int limit = 16) const;

  static constexpr int kMaxRaggedRank = 4;

 private:
  void RequireType(DType wanted) const {
    if (wanted != dtype_) TypeMismatch(wanted);
  }
  [[noreturn]] void TypeMismatch(DType wanted) const;

  DType dtype_ = DType::kInvalid;
  TensorSpec::Kind kind_ = TensorSpec::Kind::kDense;
  uint8_t parts_ = 0;
  absl::Span<const int64_t> dims_;
  const void* data_ = nullptr;
  const char* string_bytes_ = nullptr;
  absl::Span<const int64_t> splits_[kMaxRaggedRank];
};

}  // namespace penstock
#pragma GCC visibility pop
