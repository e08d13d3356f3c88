// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/pipeline.h"

#include <limits>
#include <string>
#include <utility>

#include "dataplane/dataset/engine/iterator_output.h"
#include "dataplane/dataset/transforms/batch/batch_rows.h"
#include "include/status_macros.h"
#include "penstock/step_token.h"

namespace penstock::replica {
namespace {

absl::StatusOr<int64_t> RowsOfElement(const Element& element) {
  ASSIGN_OR_RETURN(const BatchRows rows, BatchRows::Of(element.Share()));
  return rows.count();
}

absl::StatusOr<Element> EmptyBatch(const Spec& spec) {
  RETURN_IF_ERROR(
      Annotate(RowSpecOf(spec).status(),
               "empty batches of this dataset are not possible; use partial_batches kDrop"));
  return NoRows(DefaultPool(), spec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Start(const PipelineInput& input,
                                                          const Dataset& reading,
                                                          const DistributedDataset::Plan& plan,
                                                          uint64_t seed, int64_t epoch,
                                                          Pool& pool) {
  ASSIGN_OR_RETURN(Iterator iterator, MakeIteratorInto(pool, reading, seed, epoch));
  return std::unique_ptr<Pipeline>(
      new Pipeline(input, plan, seed, epoch, pool, std::move(iterator)));
}

absl::StatusOr<std::vector<Portion>> Pipeline::Next() {
  std::vector<Portion> portions(static_cast<size_t>(input_.replicas));
  absl::Status status;
  for (Portion& portion : portions) {
    const int64_t wanted = input_.sizes.empty() ? kUnknown : input_.sizes[turn_];
    if (!input_.sizes.empty()) turn_ = (turn_ + 1) % static_cast<int64_t>(input_.sizes.size());
    portion.missing = wanted;
    if (ended_) continue;
    absl::StatusOr<std::optional<Element>> next = iterator_.Next();
    if (!next.ok()) {
      if (absl::IsCancelled(next.status())) return next.status();
      status.Update(next.status());
    } else if (!next->has_value()) {
      ended_ = true;
    } else {
      portion.element = **std::move(next);
      status.Update(Measure(wanted, portion));
    }
  }
  if (!status.ok()) return status;
  return portions;
}

absl::Status Pipeline::Measure(int64_t wanted, Portion& portion) const {
  portion.missing = 0;
  if (!coordinated_) {
    if (wanted == kUnknown || policy_ == PartialBatches::kEmpty) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t rows, RowsOfElement(portion.element));
    portion.missing = std::max<int64_t>(wanted - rows, 0);
    return absl::OkStatus();
  }
  if (!StepTokenOf(portion.element).pad) return absl::OkStatus();
  const Spec& spec = input_.dataset.element_spec();
  const bool has_rows = RowSpecOf(spec).ok();
  if (policy_ == PartialBatches::kEmpty && has_rows) {
    ASSIGN_OR_RETURN(portion.element, EmptyBatch(spec));
  } else if (policy_ != PartialBatches::kRepeat) {
    int64_t rows = 1;
    if (has_rows) {
      ASSIGN_OR_RETURN(rows, RowsOfElement(portion.element));
    }
    portion.weights.assign(static_cast<size_t>(rows), 0);
  }
  return absl::OkStatus();
}

absl::Status Pipeline::Fill(std::vector<Portion>& portions) {
  for (Portion& portion : portions) {
    if (portion.whole()) continue;
    if (policy_ == PartialBatches::kPad || policy_ == PartialBatches::kRepeat) {
      RETURN_IF_ERROR(FillRows(portion));
    } else if (!portion.element) {
      ASSIGN_OR_RETURN(portion.element, EmptyBatch(input_.dataset.element_spec()));
    }
  }
  return absl::OkStatus();
}

absl::Status Pipeline::FillRows(Portion& portion) {
  if (portion.missing < 0) {
    return absl::FailedPreconditionError(
        "a batch is missing, and its number of rows is unknown; use partial_batches kEmpty or "
        "kDrop");
  }
  std::vector<RowRange> ranges;
  int64_t rows = 0;
  if (portion.element) {
    ASSIGN_OR_RETURN(BatchRows own, BatchRows::Of(std::move(portion.element)));
    rows = own.count();
    if (rows > 0) ranges.push_back({std::make_shared<BatchRows>(std::move(own)), 0, rows});
  }
  ASSIGN_OR_RETURN(const std::vector<RowRange> more, leading_rows_.Take(portion.missing));
  ranges.insert(ranges.end(), more.begin(), more.end());
  ASSIGN_OR_RETURN(portion.element, BatchOf(pool_, ranges, input_.dataset.element_spec()));
  if (policy_ == PartialBatches::kPad) {
    portion.weights.assign(static_cast<size_t>(rows), 1);
    portion.weights.resize(static_cast<size_t>(rows + portion.missing), 0);
  }
  portion.missing = 0;
  return absl::OkStatus();
}

absl::Status Pipeline::Save(StateWriter& writer) {
  ASSIGN_OR_RETURN(const State state, iterator_.Save());
  writer.WriteInt(turn_);
  writer.WriteBool(ended_);
  writer.WriteString(state.bytes);
  return leading_rows_.Save(writer);
}

absl::StatusOr<Pipeline::Position> Pipeline::ReadPosition(StateReader& reader) {
  Position position;
  ASSIGN_OR_RETURN(position.turn, reader.ReadInt());
  ASSIGN_OR_RETURN(position.ended, reader.ReadBool());
  ASSIGN_OR_RETURN(const std::string_view bytes, reader.ReadString());
  position.state.bytes = bytes;
  return position;
}

absl::Status Pipeline::Restore(StateReader& reader) {
  ASSIGN_OR_RETURN(const Position position, ReadPosition(reader));
  const auto turns = static_cast<int64_t>(input_.sizes.size());
  if (position.turn < 0 || position.turn >= std::max<int64_t>(turns, 1))
    return absl::DataLossError("the state contains an invalid turn");
  RETURN_IF_ERROR(iterator_.Restore(position.state));
  turn_ = position.turn;
  ended_ = position.ended;
  return leading_rows_.Restore(reader);
}

absl::Status Pipeline::Commit(StateReader& reader) {
  ASSIGN_OR_RETURN(const Position position, ReadPosition(reader));
  RETURN_IF_ERROR(LeadingRows::Pass(reader));
  return iterator_.Commit(position.state);
}

}  // namespace penstock::replica
