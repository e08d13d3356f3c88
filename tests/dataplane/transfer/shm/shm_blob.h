// SPDX-License-Identifier: Apache-2.0
// Elements that tests of shared memory send.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "tests/dataplane/transfer/blob_spec.h"

namespace penstock::transfer {

inline constexpr int64_t kShmBlobBytes = 100'000;

// Returns an element whose bytes are all its index.
inline Element ShmBlob(Pool& pool, Index index) {
  const std::vector<uint8_t> values(kShmBlobBytes, static_cast<uint8_t>(index));
  const int64_t dims[] = {kShmBlobBytes};
  Element element = *MakeElement(pool, {Tensor(kUInt8, dims, values.data())}, BlobSpec());
  element.set_identity({.partition = PartitionId(1), .placement = Placement(1), .index = index});
  return element;
}

}  // namespace penstock::transfer
