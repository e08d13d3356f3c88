// SPDX-License-Identifier: Apache-2.0
// How the elements of a window are combined: the attributes that the methods of WindowedDataset add
// to a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/transforms/batch/padding.h"
#include "dataplane/dataset/transforms/window/pack_rows.h"
#include "penstock/batching.h"
#include "penstock/element.h"

namespace penstock {

class WindowForm {
 public:
  // Returns the attributes of each form, for windows of elements of spec `element`.
  static Attrs Stacked();
  static Attrs Ragged();
  static absl::StatusOr<Attrs> Padded(const Padding& padding, const Spec& element);
  static absl::StatusOr<Attrs> Packed(int64_t length, const PackOptions& options,
                                      const Spec& element);
  static absl::StatusOr<Attrs> Packed(const PackLengths& lengths, const PackOptions& options,
                                      const Spec& element);

  static std::vector<AttrRule> Rules();
  // Returns the spec of windows of `rows` elements. `rows` is kUnknownDim if the number varies.
  // InvalidArgument names the attribute.
  static absl::StatusOr<Spec> Infer(const Attrs& attrs, const Spec& element, int64_t rows);

  // `site` is the site of a node with these attributes.
  explicit WindowForm(const BuildSite& site);
  // REQUIRES: at least one element.
  absl::StatusOr<Element> Put(absl::Span<const Element> elements) const;

 private:
  BuildSite site_;
  std::optional<RowPadding> padding_;
  std::optional<PackRules> packing_;
};

}  // namespace penstock
