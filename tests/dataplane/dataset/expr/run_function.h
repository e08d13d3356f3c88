// SPDX-License-Identifier: Apache-2.0
// Runs a traced function on tensors and keeps its results.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/expr/function.h"
#include "include/status_macros.h"
#include "penstock/map.h"
#include "penstock/tensor.h"

namespace penstock {

// A tensor that owns its values.
struct Owned {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> dims;
  std::vector<uint64_t> words;                    // values, aligned for any dtype; strings' offsets
  std::string bytes;                              // of strings
  bool placed = false;                            // written in place rather than copied
  std::vector<std::vector<int64_t>> splits = {};  // of a ragged tensor

  Tensor view() const {
    Tensor tensor(dtype, dims, words.data(), bytes.data());
    const std::vector<absl::Span<const int64_t>> levels(splits.begin(), splits.end());
    if (!levels.empty()) tensor.SetRagged(levels);
    return tensor;
  }
  TensorSpec spec() const {
    if (splits.empty()) return Dense(dtype, Shape(dims));
    std::vector<int64_t> shape = {static_cast<int64_t>(splits[0].size()) - 1};
    shape.resize(1 + splits.size(), kUnknownDim);
    shape.insert(shape.end(), dims.begin() + 1, dims.end());
    return Ragged(dtype, Shape(shape), static_cast<int>(splits.size()));
  }
  template <class T>
  std::vector<T> values() const {
    const auto data = view().data<T>();
    return {data.begin(), data.end()};
  }
  std::vector<std::string> strings() const {
    std::vector<std::string> result;
    for (int64_t i = 0; i < view().element_count(); ++i) result.emplace_back(view().string(i));
    return result;
  }
};

template <class T>
Owned Values(std::vector<int64_t> dims, const std::vector<T>& values) {
  Owned owned{.dtype = DTypeOf<T>, .dims = std::move(dims), .words = {}, .bytes = {}};
  owned.words.resize(values.size() * sizeof(T) / 8 + 1);
  if (!values.empty()) std::memcpy(owned.words.data(), values.data(), values.size() * sizeof(T));
  return owned;
}
inline Owned Strings(std::vector<int64_t> dims, const std::vector<std::string>& values) {
  Owned owned{.dtype = kString, .dims = std::move(dims), .words = {0}, .bytes = {}};
  for (const std::string& value : values) {
    owned.bytes += value;
    owned.words.push_back(owned.bytes.size());
  }
  return owned;
}
inline Owned String(const std::string& value) {
  return Strings({}, {value});
}
template <class T>
Owned Value(T value) {
  return Values<T>({}, {value});
}

class KeepingSink : public ResultSink {
 public:
  explicit KeepingSink(size_t count) : results(count) {}
  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                              absl::Span<const int64_t> dims) override {
    Owned& result = results[i];
    result = {.dtype = dtype,
              .dims = {dims.begin(), dims.end()},
              .words = {},
              .bytes = {},
              .placed = true};
    size_t bytes = SizeOf(dtype);
    for (int64_t dim : dims) bytes *= dim;
    if (bytes > (size_t{64} << 20)) return absl::ResourceExhaustedError("too large for a test");
    result.words.resize(bytes / 8 + 1);
    return absl::MakeSpan(reinterpret_cast<std::byte*>(result.words.data()), bytes);
  }
  absl::Status Copy(size_t i, const Tensor& value) override {
    std::vector<int64_t> dims(value.dims().begin(), value.dims().end());
    Owned& result = results[i];
    if (value.dtype() == kString) {
      std::vector<std::string> strings;
      for (int64_t n = 0; n < value.element_count(); ++n) strings.emplace_back(value.string(n));
      result = Strings(dims, strings);
    } else {
      result = {.dtype = value.dtype(), .dims = dims, .words = {}, .bytes = {}};
      result.words.resize(value.byte_count() / 8 + 1);
      if (value.byte_count() > 0) std::memcpy(result.words.data(), value.raw(), value.byte_count());
    }
    for (int level = 0; level < value.ragged_rank(); ++level) {
      const auto splits = value.row_splits(level);
      result.splits.emplace_back(splits.begin(), splits.end());
    }
    return absl::OkStatus();
  }
  std::vector<Owned> results;
};

inline absl::StatusOr<std::vector<Owned>> RunBound(const BoundFunction& function,
                                                   const std::vector<Owned>& inputs,
                                                   const RandomKey& key = {}) {
  std::vector<Tensor> views;
  for (const Owned& input : inputs) views.push_back(input.view());
  KeepingSink sink(function.def().results.size());
  RETURN_IF_ERROR(function.Run(views, key, sink));
  return std::move(sink.results);
}

// Traces, checks, binds and runs. With several inputs the element is a tuple.
inline absl::StatusOr<std::vector<Owned>> RunOn(const MapFunction& fn,
                                                const std::vector<Owned>& inputs,
                                                const RandomKey& key = {}) {
  std::vector<Spec> specs;
  for (const Owned& input : inputs) specs.emplace_back(input.spec());
  const Spec spec = specs.size() == 1 ? specs[0] : Spec::Tuple(specs);
  ASSIGN_OR_RETURN(const auto def, Trace(fn, spec));
  RETURN_IF_ERROR(CheckFunction(*def));
  ASSIGN_OR_RETURN(const auto bound, BoundFunction::Bind(def));
  return RunBound(*bound, inputs, key);
}

// Traces a function of one string, such as the bytes of a file.
inline std::shared_ptr<const FunctionDef> Traced(const MapFunction& fn) {
  return *Trace(fn, Bytes());
}

}  // namespace penstock
