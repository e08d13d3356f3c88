// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/leading_rows.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "dataplane/dataset/engine/epochs.h"
#include "dataplane/dataset/engine/iterator_output.h"
#include "include/status_macros.h"

namespace penstock::replica {

absl::StatusOr<std::vector<RowRange>> LeadingRows::Take(int64_t count) {
  std::vector<RowRange> ranges;
  while (count > 0) {
    if (batch_ == nullptr || row_ == batch_->count()) RETURN_IF_ERROR(Hold());
    const int64_t here = std::min(count, batch_->count() - row_);
    ranges.push_back({batch_, row_, row_ + here});
    row_ += here;
    count -= here;
  }
  return ranges;
}

absl::Status LeadingRows::Hold() {
  for (int ends = 0; ends < 2;) {
    if (!iterator_.has_value()) {
      ASSIGN_OR_RETURN(Iterator iterator, MakeIteratorInto(DefaultPool(), dataset_, seed_, epoch_));
      iterator_ = std::move(iterator);
    }
    ASSIGN_OR_RETURN(before_, iterator_->Save());
    ASSIGN_OR_RETURN(std::optional<Element> next, iterator_->Next());
    if (!next.has_value()) {
      iterator_.reset();
      ++ends;
      continue;
    }
    ASSIGN_OR_RETURN(BatchRows rows, BatchRows::Of(*std::move(next)));
    if (rows.count() == 0) continue;
    batch_ = std::make_shared<BatchRows>(std::move(rows));
    row_ = 0;
    return absl::OkStatus();
  }
  return absl::OutOfRangeError("the data has no rows to fill incomplete batches");
}

absl::Status LeadingRows::Save(StateWriter& writer) {
  writer.WriteUnsigned(seed_);
  writer.WriteInt(epoch_);
  writer.WriteBool(batch_ != nullptr);
  if (batch_ == nullptr) return absl::OkStatus();
  writer.WriteString(before_.bytes);
  writer.WriteInt(row_);
  return absl::OkStatus();
}

absl::StatusOr<LeadingRows::Position> LeadingRows::ReadPosition(StateReader& reader) {
  Position position;
  ASSIGN_OR_RETURN(position.seed, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(position.epoch, reader.ReadIntIn(0, kMostEpochs, "the pass"));
  ASSIGN_OR_RETURN(const bool begun, reader.ReadBool());
  if (!begun) return position;
  ASSIGN_OR_RETURN(const std::string_view before, reader.ReadString());
  position.before = State{std::string(before)};
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(position.row, reader.ReadIntIn(0, kMost, "the row"));
  return position;
}

absl::Status LeadingRows::Pass(StateReader& reader) {
  return ReadPosition(reader).status();
}

absl::Status LeadingRows::Restore(StateReader& reader) {
  ASSIGN_OR_RETURN(const Position position, ReadPosition(reader));
  seed_ = position.seed;
  epoch_ = position.epoch;
  batch_.reset();
  iterator_.reset();
  if (!position.before.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Iterator iterator, MakeIteratorInto(DefaultPool(), dataset_, seed_, epoch_));
  RETURN_IF_ERROR(iterator.Restore(*position.before));
  iterator_ = std::move(iterator);
  RETURN_IF_ERROR(Hold());
  if (position.row > batch_->count())
    return absl::DataLossError("rows that were read before are no longer available");
  row_ = position.row;
  return absl::OkStatus();
}

}  // namespace penstock::replica
