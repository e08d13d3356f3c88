// SPDX-License-Identifier: Apache-2.0
// Packs sequences one after another into rows of a fixed length, for Dataset::Pack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/batching.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// The rules of a Pack: what a row contains, and what happens to sequences that are too long.
class PackRules {
 public:
  // InvalidArgument names the argument, or the feature that cannot be packed.
  static absl::StatusOr<PackRules> Make(int64_t length, const PackOptions& options,
                                        const Spec& element);
  static absl::StatusOr<PackRules> Make(const PackLengths& lengths, const PackOptions& options,
                                        const Spec& element);
  // Reads the attributes "lengths", "too_long" and "padding_values".
  static absl::StatusOr<PackRules> Of(const Attrs& attrs, const Spec& element);

  const Spec& packed() const { return packed_; }  // of one row; static

  size_t features() const { return lengths_.size(); }
  int64_t length(size_t feature) const { return lengths_[feature]; }
  int64_t tokens_of_a_row() const;  // sum over all features

  // InvalidArgument if the element cannot be packed: it is too long under kError, or its features
  // have different lengths under kSplit.
  absl::Status CheckElement(const Element& element) const;
  // The number of pieces of the element; 0 if it is empty.
  int64_t Pieces(const Element& element) const;
  // The tokens of a feature in the element that belong to a piece.
  struct Part {
    int64_t from, count;
  };
  Part PartOf(const Element& element, size_t feature, int64_t piece) const;

 private:
  friend class PackedRow;
  friend void AddPackRules(const PackRules& rules, Attrs& attrs);
  struct Leaves {  // of packed()
    size_t values, segment_ids, positions;
  };
  // Computes the other members from element_, lengths_, too_long_ and padding_values_.
  absl::Status Complete();

  Spec element_;
  std::vector<int64_t> lengths_;
  TooLong too_long_ = TooLong::kError;
  ConstantElement padding_values_;
  Spec packed_;
  std::vector<Leaves> leaves_;  // per feature
};

void AddPackRules(const PackRules& rules, Attrs& attrs);

// A row that is being filled. Holds its elements until it is written.
class PackedRow {
 public:
  struct Segment {
    Element element;
    int64_t number;  // of the element, for the caller
    int64_t piece;
  };

  // `rules` must outlive this object.
  explicit PackedRow(const PackRules& rules) : rules_(&rules), used_(rules.features(), 0) {}

  bool HasRoomFor(const Element& element, int64_t piece) const;
  void Add(Segment segment);  // REQUIRES: HasRoomFor()
  bool full() const;          // some feature has no space left
  absl::Span<const Segment> segments() const { return segments_; }

  // Writes all leaves of rules.packed().
  absl::Status WriteTo(ResultSink& sink) const;

 private:
  absl::Status WriteFeature(size_t feature, ResultSink& sink) const;

  const PackRules* rules_;
  std::vector<int64_t> used_;  // per feature
  std::vector<Segment> segments_;
};

// Packs all elements into rows with first-fit, and returns the rows as one batch. If one element
// cannot be packed, the whole result is an error.
absl::StatusOr<Element> PackAll(Pool& pool, absl::Span<const Element> elements,
                                const PackRules& rules, const Spec& batch);

}  // namespace penstock
