// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/shared_pool.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace penstock {
namespace {

constexpr size_t kMiB = 1 << 20;
// Rounding to pages may add this much to a block, even with huge pages.
constexpr size_t kRounding = 4 * kMiB;

Spec BlobSpec() {
  return Dense(kUInt8, {kUnknownDim});
}

Element Blob(Pool& pool, int64_t bytes, uint8_t value = 1) {
  const std::vector<uint8_t> values(static_cast<size_t>(bytes), value);
  return *MakeElement(pool, {Tensor(kUInt8, {&bytes, 1}, values.data())}, BlobSpec());
}

size_t PresentBytes(const SharedPool::Segment& segment) {
  struct stat status {};
  EXPECT_EQ(::fstat(segment.memory.fd(), &status), 0);
  return static_cast<size_t>(status.st_blocks) * 512;
}

std::optional<SharedPool::Place> PlaceOf(const Element& element) {
  return SharedPool::Find(element.block());
}

TEST(SharedPool, AnElementLiesWhereOthersCanMapIt) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 64 * kMiB});
  const Element element = Blob(*pool, kMiB, 42);
  const std::optional<SharedPool::Place> place = PlaceOf(element);
  ASSERT_TRUE(place.has_value());
  const SlotLayout& layout = place->segment->layout;
  const Descriptor passed(::dup(place->segment->memory.fd()));
  absl::StatusOr<SlotView> view = SlotView::MapPrivate(passed, layout);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->body(place->slot)[0], std::byte{42});
  EXPECT_EQ(view->body(place->slot)[kMiB - 1], std::byte{42});
  EXPECT_EQ(SharedSegment::Open(passed, layout.bytes()).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(SharedPool, ASlotIsLentAgainOnlyAfterItsLastHolder) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 64 * kMiB});
  Element element = Blob(*pool, kMiB);
  const std::byte* const block = element.block().data();
  Loan reader = element.loan().Share();
  element = Element();
  for (int i = 0; i < 8; ++i) EXPECT_NE(Blob(*pool, kMiB).block().data(), block);
  reader = Loan();
  EXPECT_EQ(Blob(*pool, kMiB).block().data(), block);
  EXPECT_EQ(pool->counters().slots_lent, pool->counters().slots_returned);
}

TEST(SharedPool, ASteadyStateMakesNoSegment) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 64 * kMiB});
  for (int i = 0; i < 100; ++i) {
    std::vector<Element> held;
    for (int k = 0; k < 3; ++k) held.push_back(Blob(*pool, kMiB));
  }
  EXPECT_EQ(pool->counters().segments_allocated, 1);
}

TEST(SharedPool, ALenderWaitsForThePagesOfItsOwnSlotAlone) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 256 * kMiB});
  std::vector<Element> held;
  for (int i = 0; i < 5; ++i) {
    held.push_back(Blob(*pool, 9 * kMiB));
    std::map<const SharedPool::Segment*, size_t> blocks;
    for (const Element& element : held) {
      const std::optional<SharedPool::Place> place = PlaceOf(element);
      ASSERT_TRUE(place.has_value());
      blocks[place->segment.get()] += element.block().size() + kRounding;
    }
    for (const auto& [segment, bytes] : blocks) {
      EXPECT_GE(PresentBytes(*segment), 9 * kMiB);
      EXPECT_LE(PresentBytes(*segment), bytes);
    }
  }
  EXPECT_EQ(pool->counters().segments_allocated, 2);
}

TEST(SharedPool, PagesThatAreThereAreNotMadeAgain) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 256 * kMiB});
  std::shared_ptr<const SharedPool::Segment> segment;
  std::vector<size_t> present;
  for (const size_t mib : {9, 11, 9, 12}) {
    const Element element = Blob(*pool, static_cast<int64_t>(mib * kMiB - kPageBytes));
    ASSERT_TRUE(PlaceOf(element).has_value());
    segment = PlaceOf(element)->segment;
    present.push_back(PresentBytes(*segment));
  }
  EXPECT_GE(present[1], 11 * kMiB);
  EXPECT_EQ(present[2], present[1]);
  EXPECT_LE(present[3], 12 * kMiB + kRounding);
}

TEST(SharedPool, ElementsWithoutRoomArePlacedElsewhere) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 4 * kMiB});
  std::vector<Element> held;
  int shared = 0;
  for (int i = 0; i < 8; ++i) {
    held.push_back(Blob(*pool, kMiB, static_cast<uint8_t>(i)));
    shared += PlaceOf(held.back()).has_value();
  }
  EXPECT_EQ(shared, 3);  // each needs a page for its head
  EXPECT_LE(pool->counters().bytes_reserved, int64_t{4 * kMiB});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(held[i].tensor(0).data<uint8_t>()[kMiB - 1], i);
}

TEST(SharedPool, AnIdleSegmentMakesRoomForAnotherSize) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 8 * kMiB});
  std::shared_ptr<const SharedPool::Segment> idle;
  {
    const Element small = Blob(*pool, 3 * kMiB / 2);
    idle = PlaceOf(small).value().segment;
  }
  EXPECT_FALSE(idle->given_up);
  const Element large = Blob(*pool, 6 * kMiB);
  ASSERT_TRUE(PlaceOf(large).has_value());
  EXPECT_TRUE(idle->given_up);
  EXPECT_EQ(idle->memory.memory().size(), idle->layout.bytes());  // its holder keeps it
}

TEST(SharedPool, SmallBlocksAndThoseOfOtherPoolsAreNotFound) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 64 * kMiB});
  EXPECT_TRUE(PlaceOf(Blob(*pool, kMiB)).has_value());
  EXPECT_FALSE(PlaceOf(Blob(*pool, 1000)).has_value());
  EXPECT_FALSE(PlaceOf(Blob(DefaultPool(), kMiB)).has_value());
}

TEST(SharedPool, ElementsOutliveIt) {
  std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 64 * kMiB});
  const int64_t before = CountShared().bytes_reserved;
  Element element = Blob(*pool, kMiB, 7);
  pool.reset();
  EXPECT_EQ(element.tensor(0).data<uint8_t>()[kMiB - 1], 7);
  EXPECT_TRUE(PlaceOf(element).has_value());
  element = Element();
  EXPECT_EQ(CountShared().bytes_reserved, before);
}

TEST(SharedPool, ALoanIsVoidInAForkedChild) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({.max_bytes = 64 * kMiB});
  Element element = Blob(*pool, kMiB, 9);
  const pid_t child = ::fork();
  if (child == 0) {
    element = Element();
    ::_exit(pool->counters().slots_returned == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(element.tensor(0).data<uint8_t>()[0], 9);
}

}  // namespace
}  // namespace penstock
