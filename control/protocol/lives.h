// SPDX-License-Identifier: Apache-2.0
// The lives of a dispatcher. Numbers of jobs, iterations, placements and records mean nothing
// without the journal that they are from: a dispatcher that starts without it, or from an older
// copy, gives the same numbers to other things. So each start draws a random number, and the
// journal keeps the numbers of all its starts. The hello of a peer names the last start that it has
// heard of, and the last record that this information depends on; docs/exactly_once.md, "Lives".
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "penstock/ids.h"

namespace penstock::control {

// One start of a dispatcher, until it ends.
struct Life {
  uint64_t journal = 0;  // drawn when the journal was made; without a journal, at each start
  uint64_t id = 0;       // drawn at each start
  Term term;             // how many starts this journal has had, including this one
  friend bool operator==(const Life&, const Life&) = default;
};

// The last life and record that a process has heard of. The default: none.
struct Heard {
  Life life;
  uint64_t sequence = 0;  // the journal's last record that it depends on
  friend bool operator==(const Heard&, const Heard&) = default;
};

// A life as recorded in its journal.
struct BegunLife {
  Life life;
  uint64_t begins = 0;   // the sequence of the record that begins it
  absl::Duration lease;  // given to clients
  friend bool operator==(const BegunLife&, const BegunLife&) = default;
};

// How the information of a peer relates to a journal.
enum class Origin {
  kNone,    // the peer has heard nothing
  kHere,    // all of it is in this journal
  kBeyond,  // this journal lacks a part of it: it is an older copy, or a newer life ran elsewhere
  kOther,   // it is from a different journal
};

// `lives`: the lives of this journal, oldest first, the present one last. REQUIRES: not empty.
Origin OriginOf(const Heard& heard, const std::vector<BegunLife>& lives);

// How many lives are kept: the latest ones. An earlier life counts as a life of this journal.
inline constexpr size_t kLivesKept = 1024;

}  // namespace penstock::control
