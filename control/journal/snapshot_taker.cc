// SPDX-License-Identifier: Apache-2.0
#include "control/journal/snapshot_taker.h"

#include <algorithm>
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
  // Twice as many each time, so that a stream of such changes cannot hold a snapshot up for ever.
  const size_t most = bytes_before_changes_ << std::min(begun_again_, 20);
  ForEachPieceOf(state, change, [&](PieceKey key) {
    if (const auto due = begins_again_ ? due_.end() : due_.find(key); due != due_.end()) {
      begins_again_ = before_changes_ >= most;
      if (!begins_again_) before_changes_ += Encode(state, due);
    }
    changed_.insert(std::move(key));
  });
}

void SnapshotTaker::BeginSnapshot(const State& state, uint64_t sequence) {
  PENSTOCK_CHECK(!under_way_);
  under_way_ = true;
  due_.swap(changed_);
  taken_ = {.sequence = sequence,
            .changes = {.whole = next_is_whole_, .joined = state.format < kPiecesFormat}};
  format_ = state.format;
  begun_again_ = 0;
}

// Pieces that have not changed are as good for the later sequence.
void SnapshotTaker::BeginAgain(const State& state, uint64_t sequence) {
  due_.merge(changed_);
  changed_.clear();
  taken_.sequence = sequence;
  taken_.changes.joined = state.format < kPiecesFormat;
  format_ = state.format;
  begins_again_ = false;
  ++begun_again_;
}

size_t SnapshotTaker::Encode(const State& state, std::set<PieceKey>::const_iterator piece) {
  absl::StatusOr<std::optional<std::string>> bytes =
      EncodePiece(state, *piece, format_, most_piece_bytes_);
  refused_.Update(bytes.status());
  size_t size = 0;
  if (bytes.ok() && !bytes->has_value() && taken_.changes.whole) {
    // A whole snapshot does not name what is not there, or no longer since it began again.
    taken_.changes.pieces.erase(ToBytes(*piece));
    encoded_.erase(*piece);
    due_.erase(piece);
    return size;
  }
  if (bytes.ok()) {
    size = bytes->has_value() ? (*bytes)->size() : 0;
    taken_.changes.pieces[ToBytes(*piece)] = *std::move(bytes);
  }
  encoded_.insert(due_.extract(piece));
  return kPieceOverhead + size;
}

absl::StatusOr<std::optional<SnapshotTaker::Taken>> SnapshotTaker::Continue(const State& state,
                                                                            uint64_t sequence,
                                                                            size_t bytes) {
  PENSTOCK_CHECK(under_way_);
  before_changes_ = 0;
  if (begins_again_) BeginAgain(state, sequence);
  size_t encoded = 0;
  while (!due_.empty() && encoded < bytes && refused_.ok()) encoded += Encode(state, due_.begin());
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
