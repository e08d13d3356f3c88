// SPDX-License-Identifier: Apache-2.0
// Checks of every transport, written once for all of them. A transport's test
// names itself:
//
//   INSTANTIATE_TEST_SUITE_P(Local, TransportConformance, testing::Values("local"));
//
// "NAME+": the worker makes its elements in pools of TransportConformance::special_pool.
// "NAME*": links of tcp over three connections.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataplane/transfer/transport.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/blob_spec.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::transfer {

// Of partition 1 under placement 1.
Identity IdentityOf(Index index);
std::vector<Index> UpTo(Index count);  // 0 … count - 1
// Returns whether it is Blob(index, bytes), with all its values.
bool IsBlob(const Element& element, Index index, int64_t bytes);

class TransportConformance : public testing::TestWithParam<std::string> {
 public:
  // Set before the first test.
  static inline std::shared_ptr<Pool> (*special_pool)() = nullptr;

 protected:
  TransportConformance();

  // Returns options with which a dial succeeds, for elements of `spec`.
  DialOptions Options(Spec spec = Scalar(kInt64)) const;
  // Returns a link from a new client to `worker`; nullptr if it does not open.
  std::unique_ptr<ReceiveLink> Open(const std::shared_ptr<ClientEnd>& client,
                                    Spec spec = Scalar(kInt64));
  // Returns an int64 scalar, its index.
  Element Number(Index index);
  // Returns `bytes` uint8 values that depend on the index.
  Element Blob(Index index, int64_t bytes);

  Transport& transport_;
  std::shared_ptr<Pool> sender_pool_;
  std::shared_ptr<Pool> receiver_pool_ = Pool::Create();
  Worker worker_;
};

}  // namespace penstock::transfer
