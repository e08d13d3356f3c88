// SPDX-License-Identifier: Apache-2.0
#include "control/journal/snapshot_taker.h"

#include <utility>

#include "control/state/format.h"
#include "penstock/check.h"

namespace penstock::control {
namespace {

// Counted for each piece besides its bytes, so that small pieces are not encoded all at once.
constexpr size_t kPieceOverhead = 64;

}  // namespace

void SnapshotTaker::Begin(const State& state) {
  ForEachPiece(state, [this](PieceKey key) { changed_.insert(std::move(key)); });
}

void SnapshotTaker::BeforeChange(const State& state, const Change& change) {
  ForEachPieceOf(state, change, [&](PieceKey key) {
    if (const auto due = due_.find(key); due != due_.end()) Encode(state, due);
    changed_.insert(std::move(key));
  });
}

void SnapshotTaker::BeginSnapshot(const State& state, uint64_t sequence) {
  PENSTOCK_CHECK(!under_way_);
  under_way_ = true;
  due_.swap(changed_);
  taken_ = {.sequence = sequence,
            .changes = {.whole = next_is_whole_, .joined = state.format < kPiecesFormat}};
}

size_t SnapshotTaker::Encode(const State& state, std::set<PieceKey>::const_iterator piece) {
  absl::StatusOr<std::optional<std::string>> bytes = EncodePiece(state, *piece, most_piece_bytes_);
  refused_.Update(bytes.status());
  size_t size = 0;
  if (bytes.ok() && !bytes->has_value() && taken_.changes.whole) {
    due_.erase(piece);  // a whole snapshot does not name what is not there
    return size;
  }
  if (bytes.ok()) {
    size = bytes->has_value() ? (*bytes)->size() : 0;
    taken_.changes.pieces[ToBytes(*piece)] = *std::move(bytes);
  }
  encoded_.insert(due_.extract(piece));
  return size;
}

absl::StatusOr<std::optional<SnapshotTaker::Taken>> SnapshotTaker::Continue(const State& state,
                                                                            size_t bytes) {
  PENSTOCK_CHECK(under_way_);
  size_t encoded = 0;
  while (!due_.empty() && encoded < bytes && refused_.ok())
    encoded += kPieceOverhead + Encode(state, due_.begin());
  if (!refused_.ok()) return GiveUp();
  if (!due_.empty()) return std::nullopt;
  under_way_ = false;
  next_is_whole_ = taken_.changes.joined;
  if (next_is_whole_) {
    encoded_.merge(changed_);  // takes few keys out of `changed_`
    changed_.swap(encoded_);
  }
  encoded_.clear();
  return std::exchange(taken_, {});
}

absl::Status SnapshotTaker::GiveUp() {
  changed_.merge(due_);
  changed_.merge(encoded_);
  due_.clear();
  encoded_.clear();
  taken_ = {};
  under_way_ = false;
  return std::exchange(refused_, absl::OkStatus());
}

}  // namespace penstock::control
