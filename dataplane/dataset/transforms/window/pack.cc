// SPDX-License-Identifier: Apache-2.0
// Dataset::Pack: sequences in rows of a fixed length. A row is open if it is not full and is one of
// the last `open_rows` rows that were begun. A sequence goes into the first open row that has
// enough space left. If there is no such row, a new row is begun, and the row begun `open_rows`
// before it is returned. A position is the input's position at the oldest sequence of an open row,
// and the row of each sequence.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/graph/decides_by_value.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/dataset/transforms/window/pack_rows.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kMostOpenRows = 4096;

class PackIterator final : public NodeIterator {
 public:
  PackIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, PackRules rules)
      : site_(site),
        most_open_(site.attr<int64_t>("open_rows")),
        rules_(std::move(rules)),
        input_(std::move(input), kRemember, PositionedInput::Holds::kElements) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ASSIGN_OR_RETURN(const std::optional<PackedRow> row, NextRow());
    if (!row.has_value()) return std::nullopt;
    ElementSink sink(site_.pool(), site_.spec());
    RETURN_IF_ERROR(row->WriteTo(sink));
    ASSIGN_OR_RETURN(Element element, std::move(sink).Finish());
    return std::optional<Element>(std::move(element));
  }

  absl::StatusOr<bool> NextInto(ResultSink& sink) override {
    ASSIGN_OR_RETURN(const std::optional<PackedRow> row, NextRow());
    if (!row.has_value()) return false;
    RETURN_IF_ERROR(row->WriteTo(sink));
    return true;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    for (int64_t passed = 0; passed < count; ++passed) {
      absl::StatusOr<std::optional<PackedRow>> row = NextRow();
      if (!row.ok() && EndsReading(row.status())) return row.status();
      if (row.ok() && !row->has_value()) return passed;
    }
    return count;
  }

  absl::Status Save(StateWriter& writer) override {
    RETURN_IF_ERROR(input_.Save(writer, Oldest()));
    writer.WriteInt(input_.pulled());
    writer.WriteBool(waiting_.has_value());
    if (waiting_.has_value()) writer.WriteInt(waiting_->piece);
    writer.WriteUnsigned(open_.size());
    for (const Open& open : open_) {
      writer.WriteInt(begun_ - open.number);
      writer.WriteUnsigned(open.row.segments().size());
      for (const PackedRow::Segment& segment : open.row.segments()) {
        writer.WriteInt(input_.pulled() - segment.number);
        writer.WriteInt(segment.piece);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const int64_t pulled,
                     reader.ReadIntIn(input_.pulled(), kMost, "the number of elements read"));
    std::map<int64_t, std::vector<SavedPiece>> wanted;  // by element
    ASSIGN_OR_RETURN(const bool waits, reader.ReadBool());
    if (waits) {
      ASSIGN_OR_RETURN(const int64_t piece, reader.ReadIntIn(0, kMost, "the waiting piece"));
      wanted[pulled - 1].push_back({kNoRow, piece});
    }
    RETURN_IF_ERROR(ReadRows(reader, pulled, wanted));
    for (const auto& [number, pieces] : wanted) {
      RETURN_IF_ERROR(input_.PassTo(number));
      ASSIGN_OR_RETURN(const std::optional<Element> element, input_.Next());
      if (!element.has_value())
        return absl::DataLossError("a sequence of an open row no longer exists");
      for (const SavedPiece& piece : pieces) RETURN_IF_ERROR(Put(*element, number, piece));
    }
    return input_.PassTo(pulled);
  }

 private:
  static constexpr size_t kNoRow = std::numeric_limits<size_t>::max();
  struct Open {
    PackedRow row;
    int64_t number;  // of the row, in the order in which rows are begun
    std::vector<BufferCharge> charges;
  };
  struct SavedPiece {
    size_t row;  // index in open_, or kNoRow: it waits for a row
    int64_t piece;
  };

  // Returns the next row that is full or must make way for a new row; nullopt at the end. An error
  // takes the place of an element.
  absl::StatusOr<std::optional<PackedRow>> NextRow() {
    while (true) {
      while (waiting_.has_value()) {
        const auto place = std::find_if(open_.begin(), open_.end(), [&](const Open& open) {
          return open.row.HasRoomFor(waiting_->element, waiting_->piece);
        });
        if (place != open_.end()) {
          RETURN_IF_ERROR(AddWaitingTo(*place));
          if (place->row.full()) return TakeOut(place);
        } else if (!open_.empty() && open_.front().number + most_open_ <= begun_) {
          return TakeOut(open_.begin());
        } else {
          open_.push_back(Open{PackedRow(rules_), begun_++, {}});
        }
      }
      if (ended_) {
        if (open_.empty()) {
          input_.GaveEnd();
          return std::nullopt;
        }
        return TakeOut(open_.begin());
      }
      RETURN_IF_ERROR(Read());
    }
  }

  // Reads an element, which then waits for a row.
  absl::Status Read() {
    RETURN_IF_ERROR(site_.CheckCancelled());
    absl::StatusOr<std::optional<Element>> read = input_.Next();
    if (!read.ok() && !EndsReading(read.status())) input_.Gave(input_.pulled() - 1);
    ASSIGN_OR_RETURN(std::optional<Element> next, std::move(read));
    ended_ = !next.has_value();
    if (ended_) return absl::OkStatus();
    const int64_t number = input_.pulled() - 1;
    const absl::Status fits = rules_.CheckElement(*next);
    if (fits.ok() && rules_.Pieces(*next) > 0) {
      waiting_ = PackedRow::Segment{*std::move(next), number, 0};
    } else {
      input_.Gave(number);
      if (fits.ok()) input_.Release(Oldest());
    }
    return Annotate(fits, "in ", site_.name(), ", element ", number);
  }

  absl::Status AddWaitingTo(Open& open) {
    PackedRow::Segment& waiting = *waiting_;
    RETURN_IF_ERROR(AddTo(open, {waiting.element.Share(), waiting.number, waiting.piece}));
    if (++waiting.piece == rules_.Pieces(waiting.element)) waiting_.reset();
    return absl::OkStatus();
  }

  // Adds a piece of an element, and charges the whole element.
  absl::Status AddTo(Open& open, PackedRow::Segment segment) {
    const size_t bytes = segment.element.block().size();
    RETURN_IF_ERROR(open.charges.emplace_back().Add(site_, static_cast<int64_t>(bytes)));
    open.row.Add(std::move(segment));
    return absl::OkStatus();
  }

  PackedRow TakeOut(std::deque<Open>::iterator place) {
    PackedRow row = std::move(place->row);
    open_.erase(place);
    input_.Release(Oldest());
    for (const PackedRow::Segment& segment : row.segments()) input_.Gave(segment.number);
    return row;
  }

  // Returns the number of the oldest element that waits or is in an open row; otherwise of the next
  // element.
  int64_t Oldest() const {
    int64_t oldest = waiting_.has_value() ? waiting_->number : input_.pulled();
    for (const Open& open : open_)
      if (!open.row.segments().empty())
        oldest = std::min(oldest, open.row.segments().front().number);
    return oldest;
  }

  // Reads the rows of a saved position, still empty, and adds their pieces to `wanted`.
  absl::Status ReadRows(StateReader& reader, int64_t pulled,
                        std::map<int64_t, std::vector<SavedPiece>>& wanted) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const uint64_t rows, reader.ReadUnsigned());
    begun_ = most_open_;
    for (uint64_t r = 0; r < rows; ++r) {
      const int64_t youngest = r == 0 ? most_open_ : begun_ - open_.back().number - 1;
      ASSIGN_OR_RETURN(const int64_t age, reader.ReadIntIn(1, youngest, "the age of an open row"));
      open_.push_back(Open{PackedRow(rules_), begun_ - age, {}});
      ASSIGN_OR_RETURN(const uint64_t segments, reader.ReadUnsigned());
      for (uint64_t s = 0; s < segments; ++s) {
        ASSIGN_OR_RETURN(const int64_t back, reader.ReadIntIn(1, pulled - input_.pulled(),
                                                              "the distance back to a sequence"));
        ASSIGN_OR_RETURN(const int64_t piece,
                         reader.ReadIntIn(0, kMost, "the piece of a sequence"));
        wanted[pulled - back].push_back({r, piece});
      }
    }
    return absl::OkStatus();
  }

  // Puts a piece into the row that it has in the saved position.
  absl::Status Put(const Element& element, int64_t number, const SavedPiece& saved) {
    const bool fits =
        rules_.CheckElement(element).ok() && saved.piece < rules_.Pieces(element) &&
        (saved.row == kNoRow || open_[saved.row].row.HasRoomFor(element, saved.piece));
    if (!fits) return absl::DataLossError("a sequence does not fit where it was packed");
    PackedRow::Segment segment = {element.Share(), number, saved.piece};
    if (saved.row != kNoRow) return AddTo(open_[saved.row], std::move(segment));
    waiting_ = std::move(segment);
    return absl::OkStatus();
  }

  const BuildSite site_;
  const int64_t most_open_;
  const PackRules rules_;
  PositionedInput input_;
  bool ended_ = false;
  std::optional<PackedRow::Segment> waiting_;  // the next piece to put into a row
  std::deque<Open> open_;                      // in the order in which they were begun
  int64_t begun_ = 0;                          // rows so far
};

absl::StatusOr<Inferred> InferPack(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const int64_t open_rows = Get<int64_t>(attrs, "open_rows");
  if (open_rows < 1 || open_rows > kMostOpenRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("open_rows must be in [1, ", kMostOpenRows, "], not ", open_rows));
  }
  ASSIGN_OR_RETURN(const PackRules rules, PackRules::Of(attrs, inputs[0]->spec));
  RETURN_IF_ERROR(CheckDeterministic(*inputs[0]));
  return Inferred{rules.packed(), inputs[0]->cardinality == 0 ? 0 : kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildPack(const BuildSite& site) {
  ASSIGN_OR_RETURN(PackRules rules, PackRules::Of(site.node().attrs, site.node().inputs[0]->spec));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  return std::make_unique<PackIterator>(site, std::move(input), std::move(rules));
}

std::string OldestSequence(const Dataset::Node& node) {
  const int64_t open_rows = Get<int64_t>(node.attrs, "open_rows");
  int64_t tokens = 0;
  for (int64_t length : Get<std::vector<int64_t>>(node.attrs, "lengths")) tokens += length;
  return absl::StrCat("restores from the oldest sequence in ", open_rows, " open rows, at most ",
                      (2 * open_rows - 1) * tokens, " sequences back, empty ones not counted");
}

NodePtr PackNode(const NodePtr& input, absl::StatusOr<PackRules> rules, int64_t open_rows) {
  if (!rules.ok()) return FailedNode("Pack", {input}, rules.status());
  Attrs attrs = {{"open_rows", open_rows}};
  AddPackRules(*rules, attrs);
  return MakeNode("Pack", std::move(attrs), {input});
}

}  // namespace

NodeKind PackKind() {
  return {.op = "Pack",
          .attrs = {{"open_rows", AttrType::kInt},
                    {"lengths", AttrType::kInts},
                    {"too_long", AttrType::kString},
                    {"padding_values", AttrType::kElement}},
          .infer = InferPack,
          .build = BuildPack,
          .explain_details = OldestSequence};
}

Dataset Dataset::Pack(int64_t length, PackOptions options) const {
  if (!status().ok()) return *this;
  return Dataset(
      PackNode(node_, PackRules::Make(length, options, element_spec()), options.open_rows));
}

Dataset Dataset::Pack(PackLengths lengths, PackOptions options) const {
  if (!status().ok()) return *this;
  return Dataset(
      PackNode(node_, PackRules::Make(lengths, options, element_spec()), options.open_rows));
}

}  // namespace penstock
