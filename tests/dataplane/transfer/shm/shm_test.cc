// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/memory/shared_pool.h"
#include "dataplane/transfer/filled.h"
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

[[maybe_unused]] const bool kSet = [] {
  TransportConformance::special_pool = []() -> std::shared_ptr<Pool> {
    return SharedPool::Create({});
  };
  return true;
}();

class ShmFilled : public TransportConformance {
 protected:
  struct Ends {
    std::shared_ptr<ClientEnd> client = std::make_shared<ClientEnd>();
    std::shared_ptr<FilledCounts> filled = std::make_shared<FilledCounts>();
    std::unique_ptr<ReceiveLink> link;
    std::shared_ptr<WorkerEnd> worker;
  };

  // Opens a link whose client has made slots, with 8 credits. It has received one element, made
  // elsewhere.
  Ends OpenWithSlots() {
    Ends ends;
    DialOptions options = Options(BlobSpec());
    options.filled = ends.filled;
    ends.link = *transport_.Dial(worker_.address(), options, ends.client);
    EXPECT_TRUE(ends.client->AwaitOpen());
    ends.worker = worker_.Link(links_++);
    ends.link->Grant({9});
    EXPECT_TRUE(ends.worker->AwaitGranted(9));
    EXPECT_TRUE(ends.worker->link().Send(Blob(0, kBytes)).ok());
    EXPECT_TRUE(ends.client->AwaitCount(1));
    return ends;
  }
  // Makes an element in that link's slots, if one is free.
  Element MadeFor(const Ends& ends) {
    const auto elsewhere = std::exchange(sender_pool_, ends.worker->link().pool());
    Element element = Blob(1, kBytes);
    sender_pool_ = elsewhere;
    return element;
  }

  static constexpr int64_t kBytes = 100'000;
  size_t links_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Shm, ShmFilled, testing::Values("shm"));

TEST_P(ShmFilled, TheClientHearsHowEachSlotWasFilled) {
  const Ends one = OpenWithSlots();
  const Ends other = OpenWithSlots();
  EXPECT_TRUE(one.worker->link().Send(MadeFor(one)).ok());
  EXPECT_TRUE(one.worker->link().Send(MadeFor(one)).ok());
  EXPECT_TRUE(one.worker->link().Send(MadeFor(other)).ok());
  std::vector<Element> held;  // until no slot is free
  for (int i = 0; i < 32; ++i) held.push_back(MadeFor(one));
  EXPECT_TRUE(one.worker->link().Send(std::move(held.back())).ok());
  held.clear();
  ASSERT_TRUE(one.client->AwaitCount(5));
  EXPECT_EQ(one.filled->Of(Filled::kInPlace), 2);
  EXPECT_EQ(one.filled->Of(Filled::kNoSlot), 1);
  EXPECT_EQ(one.filled->Of(Filled::kForAnother), 1);
  EXPECT_EQ(one.filled->Of(Filled::kElsewhere), 1);
  EXPECT_EQ(other.filled->Of(Filled::kElsewhere), 1);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance, testing::Values("shm"));
// Elements are in the worker's own segments.
INSTANTIATE_TEST_SUITE_P(ShmShared, TransportConformance, testing::Values("shm+"));

}  // namespace penstock::transfer
