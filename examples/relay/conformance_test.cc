// SPDX-License-Identifier: Apache-2.0
// Runs Penstock's conformance suite for transports on `relay`.
#include "tests/dataplane/transfer/conformance.h"

#include <cstdlib>

#include "dataplane/transfer/library.h"
#include "gtest/gtest.h"

namespace penstock::transfer {

INSTANTIATE_TEST_SUITE_P(Relay, TransportConformance, testing::Values("relay"));

}  // namespace penstock::transfer

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const absl::Status loaded = penstock::transfer::LoadTransports({RELAY_LIBRARY});
  if (!loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.ToString().c_str());
    return EXIT_FAILURE;
  }
  return RUN_ALL_TESTS();
}
