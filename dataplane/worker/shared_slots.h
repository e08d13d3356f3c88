// SPDX-License-Identifier: Apache-2.0
// How much memory a worker gives to elements that several readers on its host read where they
// lie: those of shared windows and of consumer groups.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/memory/shared_pool.h"

namespace penstock::worker {

struct SharedSlots {
  // What one reader may have of them, in its queue and lent; beyond, it gets copies.
  int64_t max_loan_bytes = int64_t{256} << 20;
  // Of one iteration's segments; what finds no room lies elsewhere, and each reader gets a copy. 0:
  // what the iteration keeps, and such loans of eight readers.
  int64_t pool_bytes = 0;

  // `kept_bytes`: of elements that are kept whoever reads them; 0: none is.
  SharedPool::Options PoolFor(int64_t kept_bytes) const {
    constexpr int64_t kReaders = 8;
    const int64_t loan = kept_bytes > 0 ? std::min(max_loan_bytes, kept_bytes) : max_loan_bytes;
    const int64_t bytes = pool_bytes > 0 ? pool_bytes : kept_bytes + kReaders * loan;
    return {.max_bytes = static_cast<size_t>(bytes), .max_loan_bytes = max_loan_bytes};
  }
};

}  // namespace penstock::worker
