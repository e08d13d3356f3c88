// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/map_over_rows.h"

#include <optional>
#include <string>
#include <utility>

#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/expr/over_rows.h"
#include "dataplane/dataset/transforms/batch/batching_iterator.h"
#include "dataplane/dataset/transforms/batch/row_chunk.h"
#include "dataplane/dataset/transforms/batch/row_errors.h"
#include "dataplane/dataset/transforms/batch/static_batch.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

const FunctionDef& FunctionOf(const Dataset::Node& map) {
  return *Get<std::shared_ptr<const FunctionDef>>(map.attrs, "function");
}

class MapOverRowsIterator final : public BatchingIterator {
 public:
  MapOverRowsIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, RowChunk chunk)
      : BatchingIterator(site, std::move(input), kRememberSeldom),
        map_name_(site.InputSite(0).name()),
        map_profile_(site.InputSite(0).profile()),
        chunk_(std::move(chunk)),
        batches_(site.pool(), site.node().inputs[0]->spec, site.spec(), rows_) {
    if (map_profile_ != nullptr) map_profile_->parallelism = 1;
  }

  absl::StatusOr<std::optional<Element>> Next() override {
    ASSIGN_OR_RETURN(OpenBatch batch, batches_.Open());
    const int64_t first = input_.pulled();
    RowErrors errors;
    int64_t rows = 0;
    for (bool more = true; more && rows < rows_; rows += chunk_.rows()) {
      ASSIGN_OR_RETURN(more, ReadChunk(rows, errors));
      const ProfileScope scope(map_profile_, 1);
      chunk_.Run(batch, rows, [&](int64_t row, const absl::Status& error) {
        errors.Add(rows + row, Annotate(error, "in ", map_name_, ", element ", first + rows + row));
      });
    }
    if (map_profile_ != nullptr) map_profile_->elements.fetch_add(rows, std::memory_order_relaxed);
    if (rows == 0 || (rows < rows_ && drop_remainder_)) return std::nullopt;
    GaveUpTo(input_.pulled());
    RETURN_IF_ERROR(Annotate(errors.ForBatch(), "in ", site_.name()));
    return batches_.Seal(std::move(batch), rows);
  }

 private:
  // Reads, from row `rows` of the batch on, until the chunk or the batch is full. False if the
  // input has ended.
  absl::StatusOr<bool> ReadChunk(int64_t rows, RowErrors& errors) {
    chunk_.Clear();
    while (!chunk_.full() && rows + chunk_.rows() < rows_) {
      const absl::StatusOr<bool> read = input_.NextInto(chunk_.next_row());
      if (!read.ok()) {
        if (EndsReading(read.status())) return read.status();
        errors.Add(rows + chunk_.rows(), read.status());
      } else if (!*read) {
        return false;
      }
      chunk_.Add(/*failed=*/!read.ok());
    }
    return true;
  }

  const std::string map_name_;
  NodeProfile* const map_profile_;  // the Map has no iterator of its own here
  RowChunk chunk_;
  const StaticBatches batches_;
};

}  // namespace

bool GoesOverRows(const Dataset::Node& node) {
  const Dataset::Node& map = *node.inputs[0];
  const int64_t calls = Get<int64_t>(map.attrs, "num_parallel_calls");
  return !node.attrs.contains("padded") && (calls == kAutotune || calls == 1) &&
         OverRowsOf(FunctionOf(map)).has_value();
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildMapOverRows(const BuildSite& site) {
  const BuildSite map = site.InputSite(0);
  const FunctionDef& function = FunctionOf(map.node());
  ASSIGN_OR_RETURN(RowChunk chunk, RowChunk::Create(*OverRowsOf(function), function.input,
                                                    site.attr<int64_t>("batch_size")));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, map.BuildInput(0));
  return std::make_unique<MapOverRowsIterator>(site, std::move(input), std::move(chunk));
}

}  // namespace penstock
