// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/cut_batch.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/graph.h"
#include "dataplane/dataset/graph/registry.h"
#include "dataplane/dataset/graph/split.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/batch/join_rows.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

constexpr int64_t kRemember = 64;  // number of batches between two remembered positions

Cut CutFrom(const Attrs& attrs) {
  return {.parts = Get<int64_t>(attrs, "parts"),
          .first = Get<int64_t>(attrs, "first"),
          .count = Get<int64_t>(attrs, "count"),
          .whole_rows = Get<int64_t>(attrs, "whole_rows")};
}

// A position is the number of the current batch, and the number of parts of this batch that have
// been returned.
class CutBatchIterator final : public NodeIterator {
 public:
  CutBatchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : site_(site), cut_(CutFrom(site.node().attrs)), input_(std::move(input), kRemember) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ASSIGN_OR_RETURN(const bool more, Open());
    if (!more) return std::nullopt;
    absl::StatusOr<Element> part = Part(cut_.first + given_);
    if (++given_ == cut_.count) Close();
    if (!part.ok()) return Annotate(part.status(), "in ", site_.name());
    return *std::move(part);
  }

  absl::Status Save(StateWriter& writer) override {
    RETURN_IF_ERROR(input_.Save(writer, input_.pulled() - (batch_.has_value() ? 1 : 0)));
    writer.WriteInt(given_);
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    ASSIGN_OR_RETURN(const int64_t given, reader.ReadIntIn(0, cut_.count - 1, "the parts given"));
    if (given == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool more, Open());
    if (!more) return absl::DataLossError("a batch that was partly read is no longer available");
    given_ = given;
    return absl::OkStatus();
  }

 private:
  // Makes sure that batch_ has parts that were not returned yet; false at the end.
  absl::StatusOr<bool> Open() {
    while (!batch_.has_value()) {
      RETURN_IF_ERROR(site_.CheckCancelled());
      absl::StatusOr<std::optional<Element>> next = input_.Next();
      if (!next.ok()) {
        if (EndsReading(next.status())) return next.status();
        batch_.emplace(next.status());
        return true;
      }
      if (!next->has_value()) return false;
      absl::StatusOr<BatchRows> rows = BatchRows::Of(**std::move(next));
      if (rows.ok() && cut_.whole_rows > 0 && rows->count() != cut_.whole_rows) {
        input_.Release(input_.pulled());
        continue;
      }
      if (rows.ok())
        batch_.emplace(std::make_shared<BatchRows>(*std::move(rows)));
      else
        batch_.emplace(Annotate(rows.status(), "element ", input_.pulled() - 1));
    }
    return true;
  }

  absl::StatusOr<Element> Part(int64_t n) {
    RETURN_IF_ERROR(batch_->status());
    const std::shared_ptr<BatchRows>& rows = **batch_;
    const Span64 range = SplitOf(rows->count(), cut_.parts, n);
    if (range.begin == range.end) return NoRows(site_.pool(), site_.spec());
    return BatchOf(site_.pool(), {{rows, range.begin, range.end}}, site_.spec());
  }

  void Close() {
    batch_.reset();
    given_ = 0;
    input_.Release(input_.pulled());
  }

  const BuildSite site_;
  const Cut cut_;
  PositionedInput input_;
  std::optional<absl::StatusOr<std::shared_ptr<BatchRows>>> batch_;  // the current batch
  int64_t given_ = 0;  // parts of the batch that were returned
};

absl::StatusOr<Inferred> InferCutBatch(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const Cut cut = CutFrom(attrs);
  if (cut.first < 0 || cut.count < 1 || cut.first + cut.count > cut.parts) {
    return absl::InvalidArgumentError(absl::StrCat("its ", cut.parts, " parts do not include ",
                                                   cut.count, " parts from number ", cut.first,
                                                   " on"));
  }
  const Dataset::Node& input = *inputs[0];
  ASSIGN_OR_RETURN(const Spec row, RowSpecOf(input.spec));
  std::vector<TensorSpec> leaves(input.spec.leaves().begin(), input.spec.leaves().end());
  for (size_t i = 0; i < leaves.size(); ++i) {
    const int64_t rows = leaves[i].shape.has_rank() ? leaves[i].shape.dim(0) : kUnknownDim;
    const bool even = rows != kUnknownDim && rows % cut.parts == 0;
    leaves[i].shape = row.leaves()[i].shape.WithLeading(even ? rows / cut.parts : kUnknownDim);
  }
  Cardinality cardinality = input.cardinality;
  if (cardinality > 0 &&
      (cut.whole_rows > 0 || __builtin_mul_overflow(cardinality, cut.count, &cardinality))) {
    cardinality = kUnknown;
  }
  return Inferred{input.spec.WithLeaves(leaves), cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildCutBatch(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<CutBatchIterator>(site, std::move(input));
}

NodeKind CutBatchKind() {
  return {.op = "CutBatch",
          .attrs = {{"parts", AttrType::kInt},
                    {"first", AttrType::kInt},
                    {"count", AttrType::kInt},
                    {"whole_rows", AttrType::kInt}},
          .infer = InferCutBatch,
          .build = BuildCutBatch};
}

}  // namespace

Dataset CutBatch(const Dataset& dataset, const Cut& cut) {
  static const bool registered = (RegisterNodeKind(CutBatchKind()), true);
  (void)registered;
  return DatasetOf(MakeNode("CutBatch",
                            {{"parts", cut.parts},
                             {"first", cut.first},
                             {"count", cut.count},
                             {"whole_rows", cut.whole_rows}},
                            {NodeOf(dataset)}));
}

}  // namespace penstock::replica
