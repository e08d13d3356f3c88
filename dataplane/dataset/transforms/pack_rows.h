// SPDX-License-Identifier: Apache-2.0
// Sequences one behind the other in rows of a fixed length: Dataset::Pack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/batching.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// What a row holds, and what becomes of sequences that are too long.
class PackRules {
 public:
  // InvalidArgument names the argument, or the feature that cannot be packed.
  static absl::StatusOr<PackRules> Make(int64_t length, const PackOptions& options,
                                        const Spec& element);
  static absl::StatusOr<PackRules> Make(const PackLengths& lengths, const PackOptions& options,
                                        const Spec& element);
  // From the attributes "lengths", "too_long" and "padding_values".
  static absl::StatusOr<PackRules> Of(const Attrs& attrs, const Spec& element);

  const Spec& packed() const { return packed_; }  // of one row; all of it static

  size_t features() const { return lengths_.size(); }
  int64_t length(size_t feature) const { return lengths_[feature]; }
  int64_t tokens_of_a_row() const;  // of all features together

  // InvalidArgument for an element that may not be packed: too long by kError,
  // or with features of different lengths by kSplit.
  absl::Status CheckElement(const Element& element) const;
  // Into how many pieces the element goes; 0 if it is empty.
  int64_t Pieces(const Element& element) const;
  // Where a feature of a piece lies in the element.
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
  // The rest from element, lengths, too_long and padding values.
  absl::Status Complete();

  Spec element_;
  std::vector<int64_t> lengths_;
  TooLong too_long_ = TooLong::kError;
  ConstantElement padding_values_;
  Spec packed_;
  std::vector<Leaves> leaves_;  // by feature
};

void AddPackRules(const PackRules& rules, Attrs& attrs);

// A row being filled. Keeps what it was given until it is written.
class PackedRow {
 public:
  struct Segment {
    Element element;
    int64_t number;  // of the element, for whoever packs
    int64_t piece;
  };

  // `rules` outlives this.
  explicit PackedRow(const PackRules& rules) : rules_(&rules), used_(rules.features(), 0) {}

  bool HasRoomFor(const Element& element, int64_t piece) const;
  void Add(Segment segment);  // REQUIRES: there is room
  bool full() const;          // some feature has no room left
  absl::Span<const Segment> segments() const { return segments_; }

  // Writes all leaves of rules.packed().
  absl::Status WriteTo(ResultSink& sink) const;

 private:
  absl::Status WriteFeature(size_t feature, ResultSink& sink) const;

  const PackRules* rules_;
  std::vector<int64_t> used_;  // by feature
  std::vector<Segment> segments_;
};

// All elements in as few rows as first-fit finds, as a batch of rows. An
// element that may not be packed makes all of it an error.
absl::StatusOr<Element> PackAll(Pool& pool, absl::Span<const Element> elements,
                                const PackRules& rules, const Spec& batch);

}  // namespace penstock
