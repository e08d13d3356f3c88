// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/shared_pool.h"
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

[[maybe_unused]] const bool kSet = [] {
  TransportConformance::special_pool = []() -> std::shared_ptr<Pool> {
    return SharedPool::Create({});
  };
  return true;
}();

}  // namespace

INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance, testing::Values("shm"));
// Elements lie in the worker's own segments.
INSTANTIATE_TEST_SUITE_P(ShmShared, TransportConformance, testing::Values("shm+"));

}  // namespace penstock::transfer
