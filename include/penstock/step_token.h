// SPDX-License-Identifier: Apache-2.0
// What an element says of the round of a coordinated read, or the step of order kDeterministic,
// that it came in.
#pragma once

#include <cstdint>

#include "penstock/element.h"

namespace penstock {

// All consumers' elements of one round have the same round, and the same partition
// but in the rounds that rests fill. To be logged beside a step, or compared.
//
// Order kDeterministic with num_consumers has no rounds, and `round` is a step: consumer i of C
// gets, in step t, element tC + i of the order, so elements in the order of (round, consumer) are
// in that of all, however many consumers there are. Where partitions have ended, a consumer whose
// element of a step was to be one of theirs has none in it: consumers' numbers of elements may
// differ by about what lengths of partitions do. Unless C divides the number of partitions none
// gets further ahead of the slowest than what is outstanding; all wait for one that is missing,
// then or at the end: Unavailable naming it after `timeout`. FailedPrecondition: another process
// has that consumer_index, or a state is of another one. Behind Restore(OfAllRanks()) steps are
// counted anew, from 0 unless a partition had ended.
struct StepToken {
  int64_t round = -1;  // -1: elements are of no consumer's
  int64_t consumer = -1;
  PartitionId partition;
  Index index = 0;
  bool pad = false;  // a copy that fills up the last round
  // Of job, iteration and round: equal for all elements of a round, and for no others but
  // by chance. The least and the largest over all ranks, from a reduction now and then, say
  // whether all are at the same round of the same read.
  uint64_t hash = 0;
  friend bool operator==(const StepToken&, const StepToken&) = default;
};

// REQUIRES: an element, not an empty handle.
StepToken StepTokenOf(const Element& element);

}  // namespace penstock
