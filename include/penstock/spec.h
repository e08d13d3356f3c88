// SPDX-License-Identifier: Apache-2.0
// The structure of a dataset's elements: a nest (tuples, named dicts, optional leaves) of tensor
// specs, like tf.data's element_spec.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/dtype.h"

#pragma GCC visibility push(default)
namespace penstock {

inline constexpr int64_t kUnknownDim = -1;

// The dimensions of a tensor, each ≥ 0 or kUnknownDim, or an unknown rank.
class Shape {
 public:
  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : dims_(std::vector<int64_t>(dims)) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
  static Shape UnknownRank();

  bool has_rank() const { return dims_.has_value(); }
  int rank() const { return static_cast<int>(dims_->size()); }  // REQUIRES: has_rank()
  absl::Span<const int64_t> dims() const { return *dims_; }     // REQUIRES: has_rank()
  int64_t dim(int i) const { return (*dims_)[i]; }

  bool IsStatic() const;  // the rank and all dimensions are known
  // The number of values, at most the largest int64. kUnknownDim unless IsStatic().
  int64_t ElementCount() const;
  // True if a tensor with these dims matches this shape. Unknown dimensions match any size.
  bool Admits(absl::Span<const int64_t> dims) const;
  // Returns the most specific shape that admits all tensors that either shape admits.
  Shape MostGeneral(const Shape& other) const;
  // Returns this shape with `dim` before its first dimension. An unknown rank stays unknown.
  Shape WithLeading(int64_t dim) const;
  // "[?,224,224,3]", "[]" for a scalar, "<unknown>" for an unknown rank.
  std::string ToString() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::optional<std::vector<int64_t>> dims_ = std::vector<int64_t>();
};

// One leaf of an element.
struct TensorSpec {
  enum class Kind : uint8_t {
    kDense = 0,
    kRagged = 1,  // `ragged_rank` levels of row splits (int64, host), then dense values
    kSparse = 2,  // int64 indices [nnz, rank], values [nnz], int64 dense_shape [rank]
  };
  DType dtype = DType::kInvalid;
  Shape shape;  // ragged: dimensions 1 … ragged_rank are unknown unless uniform
  Kind kind = Kind::kDense;
  int ragged_rank = 0;    // > 0 only for kRagged
  bool optional = false;  // an element may lack this leaf (tf.data: None)

  bool IsStatic() const {
    return kind == Kind::kDense && !optional && dtype != kString && shape.IsStatic();
  }
  // "TensorSpec([?,1], float32)", "RaggedSpec(…)", "SparseSpec(…)".
  std::string ToString() const;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

TensorSpec Scalar(DType dtype);
TensorSpec Dense(DType dtype, Shape shape);
TensorSpec Ragged(DType dtype, Shape shape, int ragged_rank);
TensorSpec Sparse(DType dtype, Shape dense_shape);
TensorSpec Bytes();  // a scalar string

// A nest of leaves. A value type; copying is cheap (children are shared).
class Spec {
 public:
  enum class Kind : uint8_t { kLeaf = 0, kTuple = 1, kDict = 2 };

  Spec() = default;       // the empty tuple; a moved-from Spec is one too
  Spec(TensorSpec leaf);  // NOLINT: a leaf is a spec
  static Spec Tuple(std::vector<Spec> members);
  // Keys are sorted. If a key is given twice, the last spec is used.
  static Spec Dict(std::vector<std::pair<std::string, Spec>> members);

  Kind kind() const;
  const TensorSpec& leaf() const;          // REQUIRES: kind() == kLeaf
  size_t size() const;                     // number of members; 0 for a leaf
  const Spec& member(size_t i) const;      // REQUIRES: i < size()
  const std::string& key(size_t i) const;  // REQUIRES: kDict
  struct Found {
    const Spec* spec;   // the member
    size_t first_leaf;  // the index of the member's first leaf
  };
  // Returns the member with this key; nullopt unless this is a dict that has the key.
  std::optional<Found> Find(std::string_view key) const;

  // Returns all leaves, depth first (dicts by key). An element's tensors have the same order.
  absl::Span<const TensorSpec> leaves() const;
  // Returns the name of leaf `i` in error messages: "a/b", "[1]"; "" if the spec is a leaf.
  std::string LeafName(size_t i) const;
  // Returns the same nest with these leaves. REQUIRES: there are as many as in leaves().
  Spec WithLeaves(absl::Span<const TensorSpec> leaves) const;

  // Returns OK if elements of `other` are valid where this spec is expected. Otherwise
  // InvalidArgument, with the first leaf or key that differs.
  absl::Status Admits(const Spec& other) const;
  // Returns a 64-bit hash of the whole nest, which is equal on every machine and in every release.
  uint64_t fingerprint() const;
  // Returns such a hash of the nest with its keys, dtypes and kinds, but without shapes. It is
  // equal for all elements that this spec admits, and the head of each element contains it.
  uint64_t structure_fingerprint() const;
  // "(TensorSpec([?,1], float32), {image: …})", as tf.data prints it.
  std::string ToString() const;

  friend bool operator==(const Spec& a, const Spec& b);

 private:
  struct Rep;
  explicit Spec(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  const Rep& rep() const;
  std::shared_ptr<const Rep> rep_;  // nullptr: the empty tuple
};

// The number of elements of a dataset, kInfinite or kUnknown.
using Cardinality = int64_t;
inline constexpr Cardinality kInfinite = -1;
inline constexpr Cardinality kUnknown = -2;

}  // namespace penstock
#pragma GCC visibility pop
