// SPDX-License-Identifier: Apache-2.0
// Lives of a dispatcher. The numbers of jobs, iterations, placements and records mean nothing
// without the journal that they are from: a dispatcher that begins without it, or from an older
// copy, gives the same numbers to other things. So each start draws a number at random, and the
// journal keeps those of all its starts. Whoever says hello names the start that it heard last,
// and the last record that what it heard rests on; docs/exactly_once.md, "Lives".
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "penstock/ids.h"

namespace penstock::control {

// One start of a dispatcher, until it ends.
struct Life {
  uint64_t journal = 0;  // drawn as the journal was made; at each start, where there is none
  uint64_t id = 0;       // drawn at each start
  Term term;             // how many starts there were from this journal, this one included
  friend bool operator==(const Life&, const Life&) = default;
};

// What a process was told last. The default: nothing.
struct Heard {
  Life life;
  uint64_t sequence = 0;  // of the journal's last record that it rests on
  friend bool operator==(const Heard&, const Heard&) = default;
};

// A life as its journal knows it.
struct BegunLife {
  Life life;
  uint64_t begins = 0;   // the sequence of the record that says so
  absl::Duration lease;  // that it gives to clients
  friend bool operator==(const BegunLife&, const BegunLife&) = default;
};

// How what somebody heard stands to a journal.
enum class Origin {
  kNone,    // it has heard nothing
  kHere,    // all of it is in this journal
  kBeyond,  // this journal, but not all of it: an older copy of it, or a newer life of it elsewhere
  kOther,   // of another journal
};

// `lives`: those of this journal, oldest first, the present one last; at least that.
Origin OriginOf(const Heard& heard, const std::vector<BegunLife>& lives);

// So many lives are kept, the latest. What one before them said counts as being here.
inline constexpr size_t kLivesKept = 1024;

}  // namespace penstock::control
