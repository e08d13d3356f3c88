// SPDX-License-Identifier: Apache-2.0
// Joins the pieces of a snapshot as the releases before kPiecesFormat (control/state/format.h)
// wrote and read them. Those releases number the pieces, and each iteration is whole in one piece.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "control/journal/journal.h"

namespace penstock::control {

// Replaces the pieces of `changes` (state_pieces.h) by joined ones. A joined piece has about
// 16 MiB, or more if an object is larger. Each piece is freed when it is joined, so the memory
// needed besides `changes` is that of the largest object, twice. ResourceExhausted, which names the
// object, if it takes more than `most_bytes` less 16 MiB; `changes` must then not be used.
// REQUIRES: changes.whole.
absl::Status JoinPieces(SnapshotChanges& changes, size_t most_bytes = kMostSnapshotPieceBytes);

}  // namespace penstock::control
