// SPDX-License-Identifier: Apache-2.0
// Dataset::Batch and Dataset::RaggedBatch.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/state_bytes.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/map_batch.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/dataset/transforms/row_errors.h"
#include "dataplane/dataset/transforms/stack_rows.h"
#include "dataplane/dataset/transforms/static_batch.h"
#include "penstock/status.h"

namespace penstock {
namespace {

constexpr int64_t kRemember = 1024;  // elements between two remembered positions, at least

// Reads the rows of one batch after the other; how they are put together is for
// its subclasses.
class BatchIterator : public NodeIterator {
 public:
  BatchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : site_(site),
        rows_(site.attr<int64_t>("batch_size")),
        drop_remainder_(site.attr<bool>("drop_remainder")),
        input_(std::move(input), std::max(rows_, kRemember)) {}

  absl::StatusOr<std::optional<Element>> Next() final {
    RETURN_IF_ERROR(Begin());
    RowErrors errors;
    int64_t row = 0;
    while (row < rows_) {
      absl::StatusOr<bool> read = ReadRow(input_, row);
      if (!read.ok()) {
        if (EndsReading(read.status())) return read.status();
        errors.Add(row, read.status());
      } else if (!*read) {
        break;
      }
      ++row;
    }
    if (row == 0 || (row < rows_ && drop_remainder_)) {
      Drop();
      return std::nullopt;
    }
    given_ = input_.pulled();
    input_.Release(given_);
    absl::StatusOr<Element> batch = Put(row, errors.ForBatch());
    if (!batch.ok()) return Annotate(batch.status(), "in ", site_.name());
    return *std::move(batch);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) final {
    int64_t wanted;
    if (__builtin_mul_overflow(count, rows_, &wanted)) wanted = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const int64_t rows, input_.Skip(wanted));
    given_ = input_.pulled();
    input_.Release(given_);
    return rows / rows_ + (rows % rows_ != 0 && !drop_remainder_ ? 1 : 0);
  }

  absl::Status Save(StateWriter& writer) final { return input_.Save(writer, given_); }

  absl::Status Restore(StateReader& reader) final {
    RETURN_IF_ERROR(input_.Restore(reader));
    given_ = input_.pulled();
    return absl::OkStatus();
  }

 protected:
  virtual absl::Status Begin() = 0;
  // False at the end. After an error the row is void.
  virtual absl::StatusOr<bool> ReadRow(PositionedInput& input, int64_t row) = 0;
  // The batch of the rows read, or `errors` unless they are OK.
  virtual absl::StatusOr<Element> Put(int64_t rows, absl::Status errors) = 0;
  virtual void Drop() = 0;

  const BuildSite site_;

 private:
  const int64_t rows_;
  const bool drop_remainder_;
  PositionedInput input_;
  int64_t given_ = 0;  // elements in batches given out
};

// Rows of known size are written where they will stay.
class InPlaceIterator final : public BatchIterator {
 public:
  InPlaceIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : BatchIterator(site, std::move(input)),
        batches_(site.pool(), site.node().inputs[0]->spec, site.spec(),
                 site.attr<int64_t>("batch_size")) {}

 private:
  absl::Status Begin() override {
    ASSIGN_OR_RETURN(open_, batches_.Open());
    return absl::OkStatus();
  }
  absl::StatusOr<bool> ReadRow(PositionedInput& input, int64_t row) override {
    OpenBatch::Row sink = open_->row(row);
    return input.NextInto(sink);
  }
  absl::StatusOr<Element> Put(int64_t rows, absl::Status errors) override {
    OpenBatch open = *std::move(open_);
    open_.reset();
    RETURN_IF_ERROR(errors);
    return batches_.Seal(std::move(open), rows);
  }
  void Drop() override { open_.reset(); }

  const StaticBatches batches_;
  std::optional<OpenBatch> open_;
};

// Rows of other kinds are kept until all are there.
class StackIterator final : public BatchIterator {
 public:
  using BatchIterator::BatchIterator;

 private:
  absl::Status Begin() override {
    elements_.clear();
    return absl::OkStatus();
  }
  absl::StatusOr<bool> ReadRow(PositionedInput& input, int64_t) override {
    ASSIGN_OR_RETURN(std::optional<Element> next, input.Next());
    if (!next.has_value()) return false;
    elements_.push_back(*std::move(next));
    return true;
  }
  absl::StatusOr<Element> Put(int64_t, absl::Status errors) override {
    absl::StatusOr<Element> batch =
        errors.ok() ? StackRows(site_.pool(), elements_, site_.spec()) : std::move(errors);
    elements_.clear();  // their slots go back now, not at the next batch
    return batch;
  }
  void Drop() override { elements_.clear(); }

  std::vector<Element> elements_;
};

// --- Inference ---------------------------------------------------------------

absl::StatusOr<TensorSpec> BatchedRagged(const TensorSpec& leaf, int ragged_rank, int64_t rows) {
  if (ragged_rank > Tensor::kMaxRaggedRank) {
    return absl::InvalidArgumentError(absl::StrCat("would have ", ragged_rank,
                                                   " ragged dimensions; at most ",
                                                   Tensor::kMaxRaggedRank, " are supported"));
  }
  TensorSpec batched = leaf;
  batched.kind = TensorSpec::Kind::kRagged;
  batched.shape = leaf.shape.WithLeading(rows);
  batched.ragged_rank = ragged_rank;
  return batched;
}

absl::StatusOr<TensorSpec> Batched(const TensorSpec& leaf, int64_t rows) {
  if (leaf.kind == TensorSpec::Kind::kRagged)
    return BatchedRagged(leaf, leaf.ragged_rank + 1, rows);
  TensorSpec batched = leaf;
  batched.shape = leaf.shape.WithLeading(rows);
  return batched;
}

// Dense leaves become ragged up to their last unknown dimension.
absl::StatusOr<TensorSpec> RaggedBatched(const TensorSpec& leaf, int64_t rows) {
  if (leaf.kind != TensorSpec::Kind::kDense) return Batched(leaf, rows);
  if (!leaf.shape.has_rank()) {
    return absl::InvalidArgumentError(
        "has no known rank, so that its ragged dimensions cannot be told; Reshape it");
  }
  int ragged_rank = 0;
  for (int d = 0; d < leaf.shape.rank(); ++d)
    if (leaf.shape.dim(d) == kUnknownDim) ragged_rank = d + 1;
  return ragged_rank == 0 ? Batched(leaf, rows) : BatchedRagged(leaf, ragged_rank, rows);
}

template <class BatchedLeaf>
absl::StatusOr<Inferred> Infer(const Attrs& attrs, const Dataset::Node& input,
                               BatchedLeaf batched_leaf) {
  const int64_t size = Get<int64_t>(attrs, "batch_size");
  const bool drop_remainder = Get<bool>(attrs, "drop_remainder");
  if (size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch_size must be at least 1, not ", size));
  }
  std::vector<TensorSpec> leaves;
  for (size_t i = 0; i < input.spec.leaves().size(); ++i) {
    absl::StatusOr<TensorSpec> leaf =
        batched_leaf(input.spec.leaves()[i], drop_remainder ? size : kUnknownDim);
    if (!leaf.ok()) {
      const std::string name = input.spec.LeafName(i);
      return absl::InvalidArgumentError(
          absl::StrCat(name.empty() ? "the element" : name, " ", leaf.status().message()));
    }
    leaves.push_back(*std::move(leaf));
  }
  Cardinality cardinality = input.cardinality;
  if (cardinality >= 0)
    cardinality = cardinality / size + (cardinality % size != 0 && !drop_remainder ? 1 : 0);
  return Inferred{input.spec.WithLeaves(leaves), cardinality};
}

absl::StatusOr<Inferred> InferBatch(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  return Infer(attrs, *inputs[0], Batched);
}

absl::StatusOr<Inferred> InferRaggedBatch(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  return Infer(attrs, *inputs[0], RaggedBatched);
}

// Which way depends on the definition alone, so that a position means the same
// on every machine.
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildBatch(const BuildSite& site) {
  if (IsMapBatch(site.node())) return BuildMapBatch(site);
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  if (StaticBatches::Fit(site.node().inputs[0]->spec, site.attr<int64_t>("batch_size")))
    return std::make_unique<InPlaceIterator>(site, std::move(input));
  return std::make_unique<StackIterator>(site, std::move(input));
}

NodeKind KindOf(std::string op, decltype(NodeKind::infer) infer) {
  return {.op = std::move(op),
          .attrs = {{"batch_size", AttrType::kInt}, {"drop_remainder", AttrType::kBool}},
          .infer = infer,
          .build = BuildBatch};
}

}  // namespace

NodeKind BatchKind() {
  return KindOf("Batch", InferBatch);
}

NodeKind RaggedBatchKind() {
  return KindOf("RaggedBatch", InferRaggedBatch);
}

Dataset Dataset::Batch(int64_t batch_size, BatchOptions options) const {
  return Dataset(MakeNode(
      "Batch", {{"batch_size", batch_size}, {"drop_remainder", options.drop_remainder}}, {node_}));
}

Dataset Dataset::RaggedBatch(int64_t batch_size, BatchOptions options) const {
  return Dataset(MakeNode("RaggedBatch",
                          {{"batch_size", batch_size}, {"drop_remainder", options.drop_remainder}},
                          {node_}));
}

}  // namespace penstock
