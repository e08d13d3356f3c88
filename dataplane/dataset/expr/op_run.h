// SPDX-License-Identifier: Apache-2.0
// One run of an operation on one element: its inputs, and memory for its outputs. Results of the
// function are in the memory of the sink; all other values are in the thread's arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/memory/arena.h"
#include "penstock/tensor.h"

namespace penstock {

// No value may take more memory than this, or more than the limit for an element (element_limit.h).
// A request for more gets ResourceExhausted and allocates nothing.
inline constexpr uint64_t kMaxValueBytes = uint64_t{4} << 30;
uint64_t MostValueBytes();
// Returns the error for strings that together take `bytes` bytes, which is more than
// MostValueBytes().
absl::Status StringsTooLarge(uint64_t bytes);

// The destination of an operation's output.
struct OutputPlace {
  uint32_t value = 0;  // the value's number
  DType dtype = DType::kInvalid;
  const TensorSpec* spec = nullptr;
  absl::Span<const uint32_t> results;  // the function's results that this value provides
};

// Valid for one call of a kernel.
class OpRun {
 public:
  OpRun(absl::Span<const uint32_t> inputs, absl::Span<const OutputPlace> outputs, Tensor* values,
        Arena& arena, ResultSink& sink, const RandomKey& random)
      : inputs_(inputs),
        outputs_(outputs),
        values_(values),
        arena_(arena),
        sink_(sink),
        random_(random) {}

  size_t input_count() const { return inputs_.size(); }
  const Tensor& input(size_t i) const { return values_[inputs_[i]]; }
  size_t output_count() const { return outputs_.size(); }

  // Returns uninitialised memory for dense output `i`, which must not have dtype string.
  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, absl::Span<const int64_t> dims);
  template <class T>
  absl::StatusOr<T*> PlaceAs(size_t i, absl::Span<const int64_t> dims) {
    auto bytes = Place(i, dims);
    if (!bytes.ok()) return bytes.status();
    return reinterpret_cast<T*>(bytes->data());
  }
  // Makes output `i` a view of memory that an input or Scratch() holds. `dims` are copied.
  absl::Status View(size_t i, const Tensor& value);
  // The same as View(), for a ragged output: `flat` has the values; `splits` are copied.
  absl::Status ViewRagged(size_t i, const Tensor& flat,
                          absl::Span<const absl::Span<const int64_t>> splits);
  // Makes output `i` of strings: at(n) returns string n.
  absl::Status Strings(size_t i, absl::Span<const int64_t> dims,
                       absl::FunctionRef<std::string_view(int64_t)> at);
  // Stores in the arena strings that are not an output yet.
  absl::StatusOr<Tensor> KeepStrings(absl::Span<const int64_t> dims,
                                     absl::FunctionRef<std::string_view(int64_t)> at);
  // True if output `i` has been given.
  bool Written(size_t i) const { return values_[outputs_[i].value].present(); }

  // Returns memory, aligned to 64 B, that is valid until the function has run.
  std::byte* Scratch(size_t bytes) { return arena_.Allocate(bytes); }
  Arena& arena() { return arena_; }
  const RandomKey& random() const { return random_; }

 private:
  absl::Span<const int64_t> Keep(absl::Span<const int64_t> dims);
  absl::Span<const uint32_t> inputs_;
  absl::Span<const OutputPlace> outputs_;
  Tensor* values_;
  Arena& arena_;
  ResultSink& sink_;
  const RandomKey& random_;
};

// Returns the address that the offsets of a string tensor count from; nullptr for other dtypes.
const char* BytesOf(const Tensor& x);

// Returns the number of values of a tensor of `dims`. ResourceExhausted if the tensor takes more
// than MostValueBytes().
absl::StatusOr<int64_t> CountOf(absl::Span<const int64_t> dims, DType dtype);

}  // namespace penstock
