// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/pad.h"

#include "dataplane/element/block.h"
#include "penstock/check.h"
#include "penstock/step_token.h"

namespace penstock {

void MarkAsPad(Element& element) {
  PENSTOCK_CHECK(!element.IsShared());
  MutablePrefixOf(element.block().data()).flags |= kFlagPad;
}

namespace {

// SplitMix64's finaliser (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

uint64_t RoundHash(const Identity& identity) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  uint64_t hash = Mix(identity.job.value() + kGolden);
  hash = Mix(hash + identity.iteration.value() + kGolden);
  return Mix(hash + static_cast<uint64_t>(identity.round) + kGolden);
}

}  // namespace

StepToken StepTokenOf(const Element& element) {
  const Identity identity = element.identity();
  return {.round = identity.round,
          .consumer = identity.consumer,
          .partition = identity.partition,
          .index = identity.index,
          .pad = (PrefixOf(element.block().data()).flags & kFlagPad) != 0,
          .hash = RoundHash(identity)};
}

}  // namespace penstock
