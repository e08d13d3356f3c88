// SPDX-License-Identifier: Apache-2.0
// Identifies the round of a coordinated read, or the step of order kDeterministic, to which an
// element belongs.
#pragma once

#include <cstdint>

#include "penstock/element.h"

#pragma GCC visibility push(default)
namespace penstock {

// The place of an element in the reading of all consumers, to be logged with a step or compared.
//
// In a coordinated read, all elements of one round have the same `round`. They also have the same
// partition, except in the last rounds, which are made of leftovers
// (CoordinatedRounds::remainder_policy).
//
// In order kDeterministic with num_consumers there are no rounds, and `round` is a step. In step t,
// consumer i of C gets element tC + i of the order. Elements sorted by (round, consumer) are
// therefore in that order for every C. If an element of a step would come from a partition that has
// ended, its consumer gets no element in that step, so the consumers' element counts may differ by
// about as much as the lengths of partitions.
//
// If C does not divide the number of partitions, a consumer can be ahead of the slowest consumer
// only by its outstanding elements, so all consumers soon wait for a missing consumer. If C divides
// the number of partitions, they wait only at the end. After `timeout`, Next() returns Unavailable
// and names the missing consumer. FailedPrecondition if another process has the consumer_index, or
// for a state of a different consumer. After Restore(MergeRankStates()), steps are counted again
// from 0, or from a later step if a partition had ended.
struct StepToken {
  int64_t round = -1;  // -1: the element belongs to no consumer
  int64_t consumer = -1;
  PartitionId partition;
  Index index = 0;
  bool pad = false;  // a copy that fills the last round
  // A hash of job, iteration and round: equal for all elements of a round, and different for all
  // other elements, except by chance. To check that all ranks are at the same round of the same
  // read, reduce this value over the ranks now and then, and compare the minimum with the maximum.
  uint64_t hash = 0;
  friend bool operator==(const StepToken&, const StepToken&) = default;
};

// REQUIRES: `element` is not an empty handle.
StepToken StepTokenOf(const Element& element);

}  // namespace penstock
#pragma GCC visibility pop
