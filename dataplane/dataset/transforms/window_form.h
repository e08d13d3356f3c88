// SPDX-License-Identifier: Apache-2.0
// What the elements of a window become: the attributes that the methods of
// WindowedDataset add to a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/registry.h"
#include "dataplane/dataset/transforms/pack_rows.h"
#include "dataplane/dataset/transforms/padding.h"
#include "penstock/batching.h"
#include "penstock/element.h"

namespace penstock {

class WindowForm {
 public:
  // The attributes of each form for windows of `element`s.
  static Attrs Stacked();
  static Attrs Ragged();
  static absl::StatusOr<Attrs> Padded(const Padding& padding, const Spec& element);
  static absl::StatusOr<Attrs> Packed(int64_t length, const PackOptions& options,
                                      const Spec& element);
  static absl::StatusOr<Attrs> Packed(const PackLengths& lengths, const PackOptions& options,
                                      const Spec& element);

  static std::vector<AttrRule> Rules();
  // What windows of `rows` elements (kUnknownDim: it varies) become.
  // InvalidArgument names the attribute.
  static absl::StatusOr<Spec> Infer(const Attrs& attrs, const Spec& element, int64_t rows);

  // For the site of a node with these attributes.
  explicit WindowForm(const BuildSite& site);
  // REQUIRES: there is at least one element.
  absl::StatusOr<Element> Put(absl::Span<const Element> elements) const;

 private:
  BuildSite site_;
  std::optional<RowPadding> padding_;
  std::optional<PackRules> packing_;
};

}  // namespace penstock
