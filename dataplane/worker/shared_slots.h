// SPDX-License-Identifier: Apache-2.0
// The amount of memory that a worker gives to elements that several readers on its host read in
// place: elements of shared windows and of consumer groups.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/memory/shared_pool.h"

namespace penstock::worker {

struct SharedSlots {
  // The maximum number of bytes of such elements that one reader may have, queued and lent. Above
  // this limit, the reader gets copies.
  int64_t max_loan_bytes = int64_t{256} << 20;
  // The total size of one iteration's segments in bytes. An element for which the segments have no
  // space is kept elsewhere, and each reader gets a copy. 0: enough for the elements that the
  // iteration keeps and for the loans of eight readers.
  int64_t pool_bytes = 0;

  // `kept_bytes`: the size of the elements that are kept whether or not they are being read; 0:
  // there are none.
  SharedPool::Options PoolFor(int64_t kept_bytes) const {
    constexpr int64_t kReaders = 8;
    const int64_t loan = kept_bytes > 0 ? std::min(max_loan_bytes, kept_bytes) : max_loan_bytes;
    const int64_t bytes = pool_bytes > 0 ? pool_bytes : kept_bytes + kReaders * loan;
    return {.max_bytes = static_cast<size_t>(bytes), .max_loan_bytes = max_loan_bytes};
  }
};

}  // namespace penstock::worker
