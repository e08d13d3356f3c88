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

StepToken StepTokenOf(const Element& element) {
  const Identity identity = element.identity();
  return {.round = identity.round,
          .consumer = identity.consumer,
          .partition = identity.partition,
          .index = identity.index,
          .pad = (PrefixOf(element.block().data()).flags & kFlagPad) != 0};
}

}  // namespace penstock
