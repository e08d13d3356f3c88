// SPDX-License-Identifier: Apache-2.0
// The spec of elements that are plain bytes.
#pragma once

#include "penstock/spec.h"

namespace penstock::transfer {

// Any number of uint8.
inline Spec BlobSpec() {
  return Dense(kUInt8, {kUnknownDim});
}

}  // namespace penstock::transfer
