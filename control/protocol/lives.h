// SPDX-License-Identifier: Apache-2.0
// The lives of a dispatcher. The numbers of jobs, iterations, placements and records are valid only
// with the journal that they are from: a dispatcher that starts without this journal, or from an
// older copy of it, gives the same numbers to other jobs, iterations and so on. Each start
// therefore draws a random number, and the journal keeps the numbers of all its starts. The hello
// of a peer names the last start of which the peer has heard, and the last record on which its
// information depends. See docs/exactly_once.md, "Lives".
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "penstock/ids.h"

namespace penstock::control {

// One run of a dispatcher, from its start to its end.
struct Life {
  uint64_t journal = 0;  // drawn when the journal was made; for a journal in memory, at each start
  uint64_t id = 0;       // drawn at each start
  Term term;             // the number of starts of this journal, including this one
  friend bool operator==(const Life&, const Life&) = default;
};

// The last life and record of which a process has heard. The default: none.
struct Heard {
  Life life;
  uint64_t sequence = 0;  // the last record of the journal on which the process's information
                          // depends
  friend bool operator==(const Heard&, const Heard&) = default;
};

// A life as recorded in its journal.
struct BegunLife {
  Life life;
  uint64_t begins = 0;   // the sequence of the record that begins it
  absl::Duration lease;  // given to clients
  // Identifies the dispatcher's key (JobTokens::key_id); 0 in journals of older releases.
  uint64_t key_id = 0;
  friend bool operator==(const BegunLife&, const BegunLife&) = default;
};

// How the information of a peer relates to a journal.
enum class Origin {
  kNone,    // the peer has heard nothing
  kHere,    // all the information is in this journal
  kBeyond,  // part of it is missing here: the journal is an older copy, or a newer life ran
            // elsewhere
  kOther,   // the information is from a different journal
};

// `lives`: the lives of this journal, oldest first, the present one last. REQUIRES: not empty.
Origin OriginOf(const Heard& heard, const std::vector<BegunLife>& lives);

// The number of lives that are kept, which are the latest ones. A life before these counts as a
// life of this journal.
inline constexpr size_t kLivesKept = 1024;

}  // namespace penstock::control
