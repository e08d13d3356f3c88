// SPDX-License-Identifier: Apache-2.0
// Dataset::Batch, Dataset::RaggedBatch and Dataset::PaddedBatch.
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/transforms/batch/batch_iterator.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "dataplane/dataset/transforms/batch/map_batch.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using SpecOfRows = absl::StatusOr<Spec>(const Spec& row, int64_t rows);

absl::StatusOr<Inferred> InferBatches(const Attrs& attrs, const Spec& row, Cardinality cardinality,
                                      SpecOfRows* spec_of_rows) {
  const int64_t size = Get<int64_t>(attrs, "batch_size");
  const bool drop_remainder = Get<bool>(attrs, "drop_remainder");
  if (size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch_size must be at least 1, not ", size));
  }
  ASSIGN_OR_RETURN(Spec batch, spec_of_rows(row, drop_remainder ? size : kUnknownDim));
  return Inferred{std::move(batch), BatchCount(cardinality, size, drop_remainder)};
}

absl::StatusOr<Inferred> InferBatch(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  return InferBatches(attrs, inputs[0]->spec, inputs[0]->cardinality, StackedSpec);
}

absl::StatusOr<Inferred> InferRaggedBatch(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  return InferBatches(attrs, inputs[0]->spec, inputs[0]->cardinality, RaggedSpec);
}

absl::StatusOr<Inferred> InferPaddedBatch(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const RowPadding padding = PaddingOf(attrs);
  RETURN_IF_ERROR(CheckPadding(padding, inputs[0]->spec));
  return InferBatches(attrs, padding.row, inputs[0]->cardinality, StackedSpec);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildBatch(const BuildSite& site) {
  if (IsMapBatch(site.node())) return BuildMapBatch(site);
  return BuildBatchIterator(site, std::nullopt);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildPaddedBatch(const BuildSite& site) {
  if (IsMapBatch(site.node())) return BuildMapBatch(site);
  return BuildBatchIterator(site, PaddingOf(site.node().attrs));
}

NodeKind BatchNodeKind(std::string op, decltype(NodeKind::infer) infer) {
  return {.op = std::move(op),
          .attrs = {{"batch_size", AttrType::kInt}, {"drop_remainder", AttrType::kBool}},
          .infer = infer,
          .build = BuildBatch};
}

Attrs AttrsOf(int64_t batch_size, bool drop_remainder) {
  return {{"batch_size", batch_size}, {"drop_remainder", drop_remainder}};
}

}  // namespace

NodeKind BatchKind() {
  return BatchNodeKind("Batch", InferBatch);
}

NodeKind RaggedBatchKind() {
  return BatchNodeKind("RaggedBatch", InferRaggedBatch);
}

NodeKind PaddedBatchKind() {
  NodeKind kind = BatchNodeKind("PaddedBatch", InferPaddedBatch);
  for (AttrRule& rule : PaddingRules(true)) kind.attrs.push_back(std::move(rule));
  kind.build = BuildPaddedBatch;
  return kind;
}

Dataset Dataset::Batch(int64_t batch_size, BatchOptions options) const {
  return DatasetOf(MakeNode("Batch", AttrsOf(batch_size, options.drop_remainder), {node_}));
}

Dataset Dataset::RaggedBatch(int64_t batch_size, BatchOptions options) const {
  return DatasetOf(MakeNode("RaggedBatch", AttrsOf(batch_size, options.drop_remainder), {node_}));
}

Dataset Dataset::PaddedBatch(int64_t batch_size, PaddedBatchOptions options) const {
  if (!status().ok()) return *this;
  absl::StatusOr<RowPadding> padding =
      MakePadding(options.padded_shapes, options.padding_values, element_spec());
  if (!padding.ok()) return DatasetOf(FailedNode("PaddedBatch", {node_}, padding.status()));
  Attrs attrs = AttrsOf(batch_size, options.drop_remainder);
  AddPadding(*padding, attrs);
  return DatasetOf(MakeNode("PaddedBatch", std::move(attrs), {node_}));
}

}  // namespace penstock
