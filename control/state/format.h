// SPDX-License-Identifier: Apache-2.0
// The formats of a journal. A format is the set of kinds of changes, and of their fields, that a
// journal may contain, and the way in which its snapshots are stored (kPiecesFormat). A release
// knows all formats up to kNewestFormat.
//
// A journal is in the format that was finalised for it. A dispatcher writes nothing newer, so the
// releases that know this format can still read the journal: an upgrade can be undone until its
// operator finalises it (`penstock upgrade finalise`). A new journal is in the newest format.
//
// A new kind or field of a change that an earlier release would refuse (CheckKnown() in
// control/journal/records_proto.h) belongs to a new format: add a constant and a case of
// FormatOf(), and let the code that makes the change first ask for State::format.
#pragma once

#include <cstdint>

#include "control/state/state.h"

namespace penstock::control {

// Audiences of partitions (rule 32).
inline constexpr uint32_t kAudiencesFormat = 2;
// Versions of operations in bookmarks. In an older format, a bookmark with versions is not kept.
inline constexpr uint32_t kBookmarkVersionsFormat = 2;
// Weights and priorities of jobs.
inline constexpr uint32_t kSharesFormat = 2;
// Snapshots by piece. In an older format, each snapshot is whole, and its pieces are joined
// (control/journal/joined_pieces.h).
inline constexpr uint32_t kPiecesFormat = 2;

// Sets of a reader without those that are empty. In an older format, there is one for each
// partition before the last one that is not empty.
inline constexpr uint32_t kSparseSetsFormat = 2;

inline constexpr uint32_t kNewestFormat = 2;

// Returns the lowest format that contains the change, with its fields.
uint32_t FormatOf(const Change& change);

}  // namespace penstock::control
