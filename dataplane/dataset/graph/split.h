// SPDX-License-Identifier: Apache-2.0
// How a dataset is divided: numbered parts of its sources, which a dispatcher hands out
// (docs/protocol.md, "Splits").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "penstock/dataset.h"

namespace penstock {

// One source of a dataset that can be divided. Providers are numbered in the order of their nodes.
// Sources inside functions (FlatMap, Interleave) are not providers: the partition that opens such a
// source reads all of it.
struct SplitProviderPlan {
  std::string node;                // its name in messages: "ListFiles#0"
  int64_t count = 0;               // splits of one repetition; kUnknown if only the source can tell
  bool shuffled = false;           // the dispatcher permutes the splits again in each repetition
  bool seeded = false;             // `seed` was given; otherwise the job's seed applies
  uint64_t seed = 0;               // of that permutation
  std::vector<std::string> files;  // for sources of files: the resolved list, in split order
};

struct SplitPlan {
  std::vector<SplitProviderPlan> providers;
};

// Resolves file patterns and counts splits. NotFound names a pattern that matches nothing. Must run
// on a machine that can read the files.
absl::StatusOr<SplitPlan> PlanSplits(const Dataset& dataset, Files& files = DefaultFiles());

// Elements [begin, end) of a source.
struct Span64 {
  int64_t begin, end;
};
// Returns split `n` of a source of `count` elements that is cut into `splits` parts, whose sizes
// differ by at most one.
Span64 SplitOf(int64_t count, int64_t splits, int64_t n);
// Returns the number of splits into which a source of `count` elements is cut.
int64_t SplitCountFor(int64_t count);

// The splits that one partition was given, in order. Each split may be requested again, so that a
// replay gets the same splits as the first run.
class SplitFeed {
 public:
  virtual ~SplitFeed() = default;
  // Returns the provider's number for the split at place `ordinal` (from 0) among this partition's
  // splits in the repetition; nullopt if there are no more. Waits for the dispatcher's answer.
  // Cancelled when the partition stops.
  virtual absl::StatusOr<std::optional<int64_t>> Get(int provider, int64_t repetition,
                                                     int64_t ordinal) = 0;
};

}  // namespace penstock
