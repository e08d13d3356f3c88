// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/stack_rows.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "dataplane/dataset/transforms/batch/column.h"
#include "include/status_macros.h"

namespace penstock {

absl::StatusOr<Element> StackRows(Pool& pool, absl::Span<const Element> rows, const Spec& batch,
                                  const RowPadding* padding) {
  const size_t leaves = batch.leaves().size();
  std::vector<Column> columns(leaves);
  std::vector<std::optional<ColumnPadding>> paddings(leaves);
  std::vector<LeafLayout> layouts(leaves);
  for (size_t i = 0; i < leaves; ++i) {
    columns[i].reserve(rows.size());
    for (const Element& row : rows) columns[i].push_back(row.tensor(i));
    if (padding != nullptr)
      paddings[i] = ColumnPadding{padding->row.leaves()[i].shape, padding->values->tensor(i)};
    absl::StatusOr<LeafLayout> layout =
        LayoutColumn(columns[i], batch.leaves()[i], paddings[i] ? &*paddings[i] : nullptr);
    if (!layout.ok()) {
      return absl::Status(layout.status().code(),
                          absl::StrCat(ComponentName(batch, i), ": ", layout.status().message()));
    }
    layouts[i] = *std::move(layout);
  }
  ASSIGN_OR_RETURN(const BlockLayout layout, BlockLayout::Of(layouts));
  ASSIGN_OR_RETURN(OpenBlock block, NewBlock(pool, layout, batch));
  for (size_t i = 0; i < leaves; ++i) {
    WriteColumn(columns[i], batch.leaves()[i], layouts[i], paddings[i] ? &*paddings[i] : nullptr, i,
                block.writer);
  }
  return std::move(block).Seal(batch);
}

}  // namespace penstock
