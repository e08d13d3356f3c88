// SPDX-License-Identifier: Apache-2.0
#include "penstock/loan.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace penstock {
namespace {

class CountingOwner final : public SlotOwner {
 public:
  void TakeBack(Slot* slot) noexcept override {
    EXPECT_EQ(slot, &slot_);
    ++taken_back_;
  }
  Loan Lend() {
    slot_.data = memory_;
    slot_.bytes = sizeof(memory_);
    slot_.owner = this;
    slot_.holders = 1;
    return Loan(&slot_);
  }
  int taken_back() const { return taken_back_; }

 private:
  alignas(64) std::byte memory_[128];
  Slot slot_;
  std::atomic<int> taken_back_{0};
};

TEST(Loan, ReturnsTheSlotWhenDestroyed) {
  CountingOwner owner;
  {
    Loan loan = owner.Lend();
    EXPECT_EQ(loan.bytes().size(), 128u);
    EXPECT_EQ(owner.taken_back(), 0);
  }
  EXPECT_EQ(owner.taken_back(), 1);
}

TEST(Loan, OfNothingHasNoBytes) {
  Loan loan;
  EXPECT_FALSE(loan);
  EXPECT_TRUE(loan.bytes().empty());
  EXPECT_FALSE(loan.Share());
  EXPECT_FALSE(loan.IsShared());
}

TEST(Loan, GoesBackWithItsLastHolder) {
  CountingOwner owner;
  Loan first = owner.Lend();
  Loan second = first.Share();
  EXPECT_TRUE(first.IsShared());
  first = Loan();
  EXPECT_FALSE(second.IsShared());
  EXPECT_EQ(owner.taken_back(), 0);
  second = Loan();
  EXPECT_EQ(owner.taken_back(), 1);
}

TEST(Loan, MovesOnWithoutReturning) {
  CountingOwner owner;
  Loan first = owner.Lend();
  Loan second = std::move(first);
  Loan& itself = second;
  second = std::move(itself);
  EXPECT_TRUE(second);
  EXPECT_EQ(owner.taken_back(), 0);
}

TEST(Loan, IsSharedAndReleasedByManyThreadsAtOnce) {
  CountingOwner owner;
  Loan loan = owner.Lend();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([mine = loan.Share()]() mutable {
      for (int i = 0; i < 1000; ++i) mine = mine.Share();
    });
  }
  loan = Loan();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  EXPECT_EQ(owner.taken_back(), 1);
}

}  // namespace
}  // namespace penstock
