// SPDX-License-Identifier: Apache-2.0
#include "control/journal/joined_pieces.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/proto/journal.pb.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::control {
namespace {

constexpr size_t kJoinedBytes = size_t{16} << 20;

class Joiner {
 public:
  explicit Joiner(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Pieces of the same iteration follow each other.
  absl::Status Add(const std::string& key, const std::string& bytes) {
    wire::Snapshot piece;
    if (!piece.ParseFromString(bytes))
      return absl::InternalError(absl::StrCat(key, " of a snapshot cannot be parsed"));
    if (piece.iterations_size() == 1 && object_.iterations_size() == 1 &&
        piece.iterations(0).id() == object_.iterations(0).id()) {
      object_.mutable_iterations(0)->MergeFrom(piece.iterations(0));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(EndObject());
    object_.Swap(&piece);
    object_key_ = key;
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> Take() && {
    RETURN_IF_ERROR(EndObject());
    joined_.push_back(std::move(now_));
    return std::move(joined_);
  }

 private:
  absl::Status EndObject() {
    const size_t bytes = object_.ByteSizeLong();
    if (bytes + kJoinedBytes > most_bytes_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          object_key_, " takes ", bytes, " bytes of a snapshot; the limit is ",
          most_bytes_ - kJoinedBytes,
          " until `penstock upgrade finalise`, because the release before reads it at once"));
    }
    if (now_.size() >= kJoinedBytes) joined_.push_back(std::exchange(now_, {}));
    object_.AppendToString(&now_);  // bytes of messages one after the other are their merge
    return absl::OkStatus();
  }

  const size_t most_bytes_;
  wire::Snapshot object_;   // an object, as far as it has been joined
  std::string object_key_;  // of its first piece
  std::string now_;         // the joined piece to which objects are added
  std::vector<std::string> joined_;
};

}  // namespace

absl::Status JoinPieces(SnapshotChanges& changes, size_t most_bytes) {
  PENSTOCK_CHECK(changes.whole);
  Joiner joiner(most_bytes);
  while (!changes.pieces.empty()) {
    const auto piece = changes.pieces.extract(changes.pieces.begin());
    if (piece.mapped().has_value()) RETURN_IF_ERROR(joiner.Add(piece.key(), *piece.mapped()));
  }
  ASSIGN_OR_RETURN(std::vector<std::string> joined, std::move(joiner).Take());
  changes.pieces = WholeSnapshot(std::move(joined)).pieces;
  return absl::OkStatus();
}

}  // namespace penstock::control
