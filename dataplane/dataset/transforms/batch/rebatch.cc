// SPDX-License-Identifier: Apache-2.0
// Dataset::Rebatch: cuts and joins batches to other sizes. A position is the element that contains
// the first row that was not returned, that row's index in the element, the number of elements read
// so far, and the place in the rotation of sizes. An error takes the place of a batch, so it uses
// up that batch's place in the rotation.
#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "dataplane/dataset/transforms/batch/join_rows.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class RebatchIterator final : public NodeIterator {
 public:
  RebatchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : site_(site),
        sizes_(site.attr<std::vector<int64_t>>("batch_sizes")),
        drop_remainder_(site.attr<bool>("drop_remainder")),
        input_(std::move(input), kRememberOften) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    absl::StatusOr<bool> more = Gather();
    if (!more.ok()) {
      if (!EndsReading(more.status())) Turn();
      return more.status();
    }
    if (!*more) return std::nullopt;
    absl::StatusOr<Element> batch =
        BatchOf(site_.pool(), TakeRows(std::min(sizes_[turn_], held_rows_)), site_.spec());
    Turn();
    if (!batch.ok()) return Annotate(batch.status(), "in ", site_.name());
    return *std::move(batch);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    for (int64_t passed = 0; passed < count; ++passed) {
      absl::StatusOr<bool> more = Gather();
      if (!more.ok()) {
        if (EndsReading(more.status())) return more.status();
        Turn();
        continue;  // an element without usable rows
      }
      if (!*more) return passed;
      TakeRows(std::min(sizes_[turn_], held_rows_));
      Turn();
    }
    return count;
  }

  absl::Status Save(StateWriter& writer) override {
    const int64_t first = held_.empty() ? input_.pulled() : held_.front().element;
    RETURN_IF_ERROR(input_.Save(writer, first));
    writer.WriteInt(static_cast<int64_t>(turn_));
    writer.WriteInt(held_.empty() ? 0 : held_.front().range.from);
    writer.WriteInt(input_.pulled());
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const int64_t turn,
                     reader.ReadIntIn(0, static_cast<int64_t>(sizes_.size()) - 1, "the turn"));
    turn_ = static_cast<size_t>(turn);
    ASSIGN_OR_RETURN(const int64_t row, reader.ReadIntIn(0, kMost, "the row"));
    ASSIGN_OR_RETURN(const int64_t pulled,
                     reader.ReadIntIn(input_.pulled(), kMost, "the number of elements read"));
    while (input_.pulled() < pulled) {
      absl::StatusOr<bool> more = Hold();
      if (!more.ok() && EndsReading(more.status())) return more.status();
      if (more.ok() && !*more)
        return absl::DataLossError("elements that were read no longer exist");
    }
    if (row == 0) return absl::OkStatus();
    if (held_.empty() || row >= held_.front().range.to)
      return absl::DataLossError("rows that were read no longer exist");
    held_.front().range.from = row;
    held_rows_ -= row;
    return absl::OkStatus();
  }

 private:
  // Rows that were read and not returned.
  struct Held {
    RowRange range;
    int64_t element;  // index in the input
    BufferCharge charge;
  };

  // Reads one more element; false at the end. The error of an element takes the place of its rows.
  absl::StatusOr<bool> Hold() {
    RETURN_IF_ERROR(site_.CheckCancelled());
    ASSIGN_OR_RETURN(std::optional<Element> next, input_.Next());
    if (!next.has_value()) return false;
    const int64_t element = input_.pulled() - 1;
    BufferCharge charge;
    RETURN_IF_ERROR(charge.Add(site_, *next));
    absl::StatusOr<BatchRows> rows = BatchRows::Of(*std::move(next));
    if (!rows.ok()) return Annotate(rows.status(), "in ", site_.name(), ", element ", element);
    const int64_t count = rows->count();
    if (count == 0) return true;
    held_.push_back(Held{
        {std::make_shared<BatchRows>(*std::move(rows)), 0, count}, element, std::move(charge)});
    held_rows_ += count;
    return true;
  }

  // Reads until there are enough rows for the next batch; false at the end.
  absl::StatusOr<bool> Gather() {
    const int64_t size = sizes_[turn_];
    while (held_rows_ < size) {
      ASSIGN_OR_RETURN(const bool more, Hold());
      if (!more) return held_rows_ > 0 && !drop_remainder_;
    }
    return true;
  }

  std::vector<RowRange> TakeRows(int64_t count) {
    std::vector<RowRange> ranges;
    held_rows_ -= count;
    while (count > 0) {
      RowRange& front = held_.front().range;
      const int64_t here = std::min(count, front.to - front.from);
      ranges.push_back({front.rows, front.from, front.from + here});
      front.from += here;
      count -= here;
      if (front.from == front.to) held_.pop_front();
    }
    input_.Release(held_.empty() ? input_.pulled() : held_.front().element);
    return ranges;
  }

  void Turn() { turn_ = (turn_ + 1) % sizes_.size(); }

  const BuildSite site_;
  const std::vector<int64_t> sizes_;
  const bool drop_remainder_;
  PositionedInput input_;
  size_t turn_ = 0;  // index in sizes_ of the next batch
  std::deque<Held> held_;
  int64_t held_rows_ = 0;
};

absl::Status CheckSizes(const std::vector<int64_t>& sizes) {
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > (int64_t{1} << 48) / static_cast<int64_t>(sizes.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("batch_size must be at least 1 and at most 2^48, not ", size));
    }
    total += size;
  }
  if (total > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "batch_size must be at least 1; of several sizes, at least one must be");
}

// Returns the number of batches that these rows make.
int64_t CountBatches(int64_t rows, const std::vector<int64_t>& sizes, bool drop_remainder) {
  int64_t cycle = 0;
  for (int64_t size : sizes) cycle += size;
  int64_t batches = rows / cycle * static_cast<int64_t>(sizes.size());
  rows %= cycle;
  for (int64_t size : sizes) {
    if (rows < size) return batches + (rows > 0 && !drop_remainder ? 1 : 0);
    rows -= size;
    ++batches;
  }
  return batches;
}

absl::StatusOr<Inferred> InferRebatch(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const auto& sizes = Get<std::vector<int64_t>>(attrs, "batch_sizes");
  const bool drop_remainder = Get<bool>(attrs, "drop_remainder");
  RETURN_IF_ERROR(CheckSizes(sizes));
  const Dataset::Node& input = *inputs[0];
  ASSIGN_OR_RETURN(const Spec row, RowSpecOf(input.spec));
  const bool one_size =
      std::count(sizes.begin(), sizes.end(), sizes[0]) == static_cast<int64_t>(sizes.size());
  std::vector<TensorSpec> leaves(input.spec.leaves().begin(), input.spec.leaves().end());
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].shape =
        row.leaves()[i].shape.WithLeading(one_size && drop_remainder ? sizes[0] : kUnknownDim);
  }
  Cardinality cardinality = UnbatchedCount(input.spec, input.cardinality);
  if (cardinality >= 0) cardinality = CountBatches(cardinality, sizes, drop_remainder);
  return Inferred{input.spec.WithLeaves(leaves), cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildRebatch(const BuildSite& site) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<RebatchIterator>(site, std::move(input));
}

}  // namespace

NodeKind RebatchKind() {
  return {.op = "Rebatch",
          .attrs = {{"batch_sizes", AttrType::kInts}, {"drop_remainder", AttrType::kBool}},
          .infer = InferRebatch,
          .build = BuildRebatch};
}

Dataset Dataset::Rebatch(int64_t batch_size, BatchOptions options) const {
  return Rebatch(std::vector<int64_t>{batch_size}, options);
}

Dataset Dataset::Rebatch(std::vector<int64_t> batch_sizes, BatchOptions options) const {
  return DatasetOf(MakeNode(
      "Rebatch",
      {{"batch_sizes", std::move(batch_sizes)}, {"drop_remainder", options.drop_remainder}},
      {node_}));
}

}  // namespace penstock
