// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/free_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>
#include <vector>

#include "dataplane/memory/heap_pool.h"

namespace penstock {
namespace {

using testing::ElementsAre;

struct NumberedSlot {
  int number = 0;
  NumberedSlot* next_free = nullptr;
};

class FreeSlotsTest : public testing::Test {
 protected:
  FreeSlotsTest() {
    for (int i = 0; i < 8; ++i) slots_[static_cast<size_t>(i)].number = i;
  }
  NumberedSlot& slot(int number) { return slots_[static_cast<size_t>(number)]; }
  // Calls Take() until it returns none; returns the results.
  static std::vector<int> TakeAll(FreeSlots<NumberedSlot>& free) {
    std::vector<int> taken;
    while (NumberedSlot* const slot = free.Take()) taken.push_back(slot->number);
    return taken;
  }

  std::array<NumberedSlot, 8> slots_;
  FreeSlots<NumberedSlot> thirds_{RestBytes() / 3 + 1};  // three slots fill the rest
};

TEST_F(FreeSlotsTest, TheLastOnePutIsTheFirstTaken) {
  for (int i = 0; i < 4; ++i) thirds_.Put(slot(i));
  EXPECT_THAT(TakeAll(thirds_), ElementsAre(3, 2, 1, 0));
}

TEST_F(FreeSlotsTest, ARestingSlotIsTakenAfterSomeMiBOfOthers) {
  thirds_.Rest(slot(0));
  EXPECT_EQ(thirds_.Take(), nullptr);
  thirds_.Rest(slot(1));
  EXPECT_EQ(thirds_.Take(), nullptr);
  thirds_.Rest(slot(2));
  EXPECT_THAT(TakeAll(thirds_), ElementsAre(0));
  thirds_.Rest(slot(0));
  EXPECT_THAT(TakeAll(thirds_), ElementsAre(1));
}

TEST_F(FreeSlotsTest, OthersAreTakenMeanwhile) {
  thirds_.Put(slot(0));
  thirds_.Rest(slot(1));
  thirds_.Put(slot(2));
  EXPECT_THAT(TakeAll(thirds_), ElementsAre(2, 0));
}

TEST_F(FreeSlotsTest, TakeAnyGivesTheLongestRestingSlot) {
  thirds_.Rest(slot(0));
  thirds_.Rest(slot(1));
  EXPECT_EQ(thirds_.TakeAny(), &slot(0));
  thirds_.Put(slot(2));
  EXPECT_EQ(thirds_.TakeAny(), &slot(2));
  EXPECT_EQ(thirds_.TakeAny(), &slot(1));
  EXPECT_EQ(thirds_.TakeAny(), nullptr);
}

// So that many large slots do not fill the cache that all cores share.
TEST_F(FreeSlotsTest, TakeAnyReusesTheFewMostRecentSlots) {
  for (int i = 0; i < 8; ++i) thirds_.Rest(slot(i));
  for (int i = 0; i < 20; ++i) {
    NumberedSlot* const taken = thirds_.TakeAny();
    EXPECT_EQ(taken->number, 5 + i % 3);
    thirds_.Rest(*taken);
  }
}

TEST_F(FreeSlotsTest, RemovalAppliesToFreeAndRestingSlots) {
  for (int i = 0; i < 8; ++i) i < 5 ? thirds_.Put(slot(i)) : thirds_.Rest(slot(i));
  thirds_.RemoveIf([](const NumberedSlot& slot) { return slot.number % 2 == 0; });
  std::vector<int> left;
  while (NumberedSlot* const taken = thirds_.TakeAny()) left.push_back(taken->number);
  EXPECT_THAT(left, ElementsAre(3, 1, 5, 7));
}

// Returns how many different slots a pool lends when each is returned at once.
size_t SlotsUsed(Pool& pool, size_t bytes, bool on_another_thread) {
  std::vector<const void*> slots;
  for (size_t used = 0; used < 4 * RestBytes(); used += bytes) {
    std::optional<Loan> loan = pool.Lend(bytes).value();
    const void* const at = loan->bytes().data();
    if (std::find(slots.begin(), slots.end(), at) == slots.end()) slots.push_back(at);
    if (on_another_thread) {
      std::thread([&] { loan.reset(); }).join();
    } else {
      loan.reset();
    }
  }
  return slots.size();
}

TEST(HeapPoolSlots, RestIfAnotherThreadGivesThemBack) {
  constexpr size_t kBytes = 64 << 10;
  EXPECT_EQ(SlotsUsed(*Pool::Create(), kBytes, false), 1u);
  EXPECT_GE(SlotsUsed(*Pool::Create(), kBytes, true), RestBytes() / kBytes);
}

TEST(HeapPoolSlots, DoNotRestBeyondThePoolsBound) {
  constexpr size_t kBytes = 64 << 10;
  const auto pool = Pool::Create({.max_bytes = 4 * kBytes});
  EXPECT_LE(SlotsUsed(*pool, kBytes, true), 4u);
}

}  // namespace
}  // namespace penstock
