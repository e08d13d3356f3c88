// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

INSTANTIATE_TEST_SUITE_P(Local, TransportConformance, testing::Values("local"));

class LocalAddresses : public TransportConformance {};
INSTANTIATE_TEST_SUITE_P(Local, LocalAddresses, testing::Values("local"));

// A client may hear of a worker that is already gone. It should not be told to use another
// protocol.
TEST_P(LocalAddresses, OfAWorkerThatHasStoppedAreOfThisProcessYet) {
  const std::string address = worker_.address();
  worker_.Stop();
  EXPECT_TRUE(transport_.Check(address, "").ok());
}

TEST_P(LocalAddresses, OfAnotherProcessAreRefused) {
  std::string address = worker_.address();
  char& digit = address[sizeof("local:") - 1];
  digit = digit == '0' ? '1' : '0';
  EXPECT_EQ(transport_.Check(address, "").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace penstock::transfer
