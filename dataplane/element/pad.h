// SPDX-License-Identifier: Apache-2.0
// The flag of an element that only pads the last round.
#pragma once

#include "penstock/element.h"

namespace penstock {

void MarkAsPad(Element& element);  // REQUIRES: !element.IsShared()

}  // namespace penstock
