// SPDX-License-Identifier: Apache-2.0
// One operation at work on one element: its inputs, and memory for what it
// makes. A result of the function lies where the sink says, all else in the
// thread's arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/arena.h"
#include "dataplane/dataset/function.h"
#include "penstock/tensor.h"

namespace penstock {

// No value may take more memory than this, nor than one element (element_limit.h); what asks for
// more is ResourceExhausted, not an allocation.
inline constexpr uint64_t kMaxValueBytes = uint64_t{4} << 30;
uint64_t MostValueBytes();
// The error for strings that together take `bytes`, which is more than that.
absl::Status StringsTooLarge(uint64_t bytes);

// Where an output of an operation goes.
struct OutputPlace {
  uint32_t value = 0;  // its number
  DType dtype = DType::kInvalid;
  const TensorSpec* spec = nullptr;
  absl::Span<const uint32_t> results;  // which results of the function it is
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

  // Memory for dense output `i`, not written yet. Not for strings.
  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, absl::Span<const int64_t> dims);
  template <class T>
  absl::StatusOr<T*> PlaceAs(size_t i, absl::Span<const int64_t> dims) {
    auto bytes = Place(i, dims);
    if (!bytes.ok()) return bytes.status();
    return reinterpret_cast<T*>(bytes->data());
  }
  // Output `i` is a view of memory that an input or Scratch() holds; `dims` are
  // copied.
  absl::Status View(size_t i, const Tensor& value);
  // The same of a ragged output: `flat` are its values, `splits` are copied.
  absl::Status ViewRagged(size_t i, const Tensor& flat,
                          absl::Span<const absl::Span<const int64_t>> splits);
  // Output `i` of strings: at(n) gives string n.
  absl::Status Strings(size_t i, absl::Span<const int64_t> dims,
                       absl::FunctionRef<std::string_view(int64_t)> at);
  // Strings that are no output yet: in the arena.
  absl::StatusOr<Tensor> KeepStrings(absl::Span<const int64_t> dims,
                                     absl::FunctionRef<std::string_view(int64_t)> at);
  // Whether output `i` has been given.
  bool Written(size_t i) const { return values_[outputs_[i].value].present(); }

  // Memory until the function has run, 64 B aligned.
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

// What the offsets of a string tensor count from; nullptr for others.
const char* BytesOf(const Tensor& x);

// Values of a tensor of `dims`; ResourceExhausted if it takes more than
// MostValueBytes().
absl::StatusOr<int64_t> CountOf(absl::Span<const int64_t> dims, DType dtype);

}  // namespace penstock
