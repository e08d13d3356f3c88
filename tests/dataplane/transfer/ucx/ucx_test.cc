// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {

INSTANTIATE_TEST_SUITE_P(Ucx, TransportConformance, testing::Values("ucx"));

}  // namespace penstock::transfer
