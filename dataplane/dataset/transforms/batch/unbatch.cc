// SPDX-License-Identifier: Apache-2.0
// Dataset::Unbatch: the rows of each element, one after another. Rows stay in their element until
// they are returned. A position names an element and the next row in it.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/batch/batch_rows.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class UnbatchIterator final : public NodeIterator {
 public:
  UnbatchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : site_(site), input_(std::move(input), kRememberOften) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ASSIGN_OR_RETURN(const bool more, Open());
    if (!more) return std::nullopt;
    views_.clear();
    for (size_t i = 0; i < rows_->batch().size(); ++i)
      views_.push_back(rows_->Leaf(i, row_, parts_));
    absl::StatusOr<Element> element = MakeElement(site_.pool(), views_, site_.spec());
    Pass(1);
    RETURN_IF_ERROR(element.status());
    return *std::move(element);
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    ASSIGN_OR_RETURN(const bool more, Open());
    if (!more) return false;
    absl::Status copied;
    for (size_t i = 0; i < rows_->batch().size(); ++i)
      copied.Update(sink.Copy(i, rows_->Leaf(i, row_, parts_)));
    Pass(1);
    RETURN_IF_ERROR(copied);
    return true;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    while (passed < count) {
      absl::StatusOr<bool> more = Open();
      if (!more.ok()) {
        if (EndsReading(more.status())) return more.status();
        ++passed;  // an element without usable rows
        continue;
      }
      if (!*more) break;
      const int64_t here = std::min(count - passed, rows_->count() - row_);
      Pass(here);
      passed += here;
    }
    return passed;
  }

  absl::Status Save(StateWriter& writer) override {
    RETURN_IF_ERROR(input_.Save(writer, input_.pulled() - (rows_.has_value() ? 1 : 0)));
    writer.WriteInt(row_);
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const int64_t row, reader.ReadIntIn(0, kMost, "the row"));
    if (row == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool more, Open());
    if (!more || row >= rows_->count())
      return absl::DataLossError("an element whose rows were read no longer exists");
    row_ = row;
    return absl::OkStatus();
  }

 private:
  // Opens the next element that has rows unless one is open; false at the end. The error of an
  // element takes the place of its rows.
  absl::StatusOr<bool> Open() {
    while (!rows_.has_value()) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      ASSIGN_OR_RETURN(std::optional<Element> next, input_.Next());
      if (!next.has_value()) return false;
      absl::StatusOr<BatchRows> rows = BatchRows::Of(*std::move(next));
      if (!rows.ok()) {
        return Annotate(rows.status(), "in ", site_.name(), ", element ", input_.pulled() - 1);
      }
      if (rows->count() > 0) rows_ = *std::move(rows);
    }
    return true;
  }

  void Pass(int64_t count) {
    parts_.clear();
    row_ += count;
    if (row_ < rows_->count()) return;
    rows_.reset();
    row_ = 0;
    input_.Release(input_.pulled());
  }

  const BuildSite site_;
  PositionedInput input_;
  std::optional<BatchRows> rows_;  // the element whose rows are returned
  int64_t row_ = 0;                // the next row
  std::vector<Tensor> views_;      // of that row, like `parts_`
  BatchRows::Parts parts_;
};

absl::StatusOr<Inferred> InferUnbatch(const Attrs&, absl::Span<const NodePtr> inputs) {
  const Spec& batch = inputs[0]->spec;
  ASSIGN_OR_RETURN(Spec row, RowSpecOf(batch));
  return Inferred{std::move(row), UnbatchedCount(batch, inputs[0]->cardinality)};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildUnbatch(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<UnbatchIterator>(site, std::move(input));
}

}  // namespace

NodeKind UnbatchKind() {
  return {.op = "Unbatch", .infer = InferUnbatch, .build = BuildUnbatch};
}

Dataset Dataset::Unbatch() const {
  return DatasetOf(MakeNode("Unbatch", {}, {node_}));
}

}  // namespace penstock
