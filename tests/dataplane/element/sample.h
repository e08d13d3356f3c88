// SPDX-License-Identifier: Apache-2.0
// An element with a leaf of every kind, for tests of blocks.
#pragma once

#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// {absent, bools, bytes, dense, empty, ragged, scalar, sparse, words}.
Spec SampleSpec();
Element SampleElement();

}  // namespace penstock
