// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "dataplane/memory/heap_pool.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr size_t kLargest = size_t{256} << 20;

TEST(SizeClasses, AreTheSmallestThatFit) {
  size_t below = 0;
  for (int c = 0; c < HeapPool::kClasses; ++c) {
    const size_t bytes = HeapPool::ClassBytes(c);
    ASSERT_GT(bytes, below);
    ASSERT_EQ(bytes % 64, 0u);
    ASSERT_EQ(HeapPool::ClassOf(bytes), c);
    ASSERT_EQ(HeapPool::ClassOf(below + 1), c);
    ASSERT_LE(bytes, std::max<size_t>(256, below + below / 2));  // at most a third idle
    below = bytes;
  }
  EXPECT_EQ(below, kLargest);
  EXPECT_EQ(HeapPool::ClassOf(kLargest + 1), HeapPool::kClasses);
  EXPECT_EQ(HeapPool::ClassOf(size_t{1} << 50), HeapPool::kClasses);
}

TEST(Pool, LendsAlignedSlotsOfEverySizeThatDoNotOverlap) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  std::vector<Loan> loans;
  for (size_t bytes = 0; bytes < 5000; bytes += 37) {
    loans.push_back(pool->Lend(bytes).value());
    ASSERT_GE(loans.back().bytes().size(), bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(loans.back().bytes().data()) % 64, 0u);
    std::memset(loans.back().bytes().data(), static_cast<int>(loans.size()),
                loans.back().bytes().size());
  }
  for (size_t i = 0; i < loans.size(); ++i) {
    for (const std::byte byte : loans[i].bytes()) ASSERT_EQ(byte, std::byte(i + 1));
  }
}

TEST(Pool, UsesAReturnedSlotBeforeAnother) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  Loan loan = pool->Lend(1000).value();
  const std::byte* first = loan.bytes().data();
  loan = Loan();
  loan = pool->Lend(900).value();
  EXPECT_EQ(loan.bytes().data(), first);
}

TEST(Pool, CountsItsWork) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  Loan small = pool->Lend(300).value();
  const Loan large = pool->Lend(1 << 20).value();
  small = Loan();
  const PoolCounters counters = pool->counters();
  EXPECT_EQ(counters.segments_allocated, 2);
  EXPECT_EQ(counters.registrations, 0);
  EXPECT_EQ(counters.slots_lent, 2);
  EXPECT_EQ(counters.slots_returned, 1);
  EXPECT_EQ(counters.bytes_lent, 1 << 20);
  EXPECT_GE(counters.bytes_reserved, (1 << 20) + 384);
}

TEST(Pool, AllocatesNothingInASteadyState) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  const auto run = [&](int elements) {
    std::deque<Loan> window;  // always this many at once
    for (int i = 0; i < elements; ++i) {
      window.push_back(pool->Lend(200 + i % 7 * 1000).value());
      if (window.size() > 40) window.pop_front();
    }
  };
  run(500);
  const int64_t allocated = pool->counters().segments_allocated;
  const int64_t reserved = pool->counters().bytes_reserved;
  run(100000);
  EXPECT_EQ(pool->counters().segments_allocated, allocated);
  EXPECT_EQ(pool->counters().bytes_reserved, reserved);
}

TEST(Pool, RefusesMoreThanItsBoundAndNamesBothNumbers) {
  const std::shared_ptr<Pool> pool = Pool::Create({.max_bytes = 4096});
  const Loan held = pool->Lend(3000).value();
  const absl::Status status = pool->Lend(2000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("2048 bytes does not fit"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("3072 of the pool's 4096"));
  EXPECT_TRUE(pool->Lend(1000).ok());  // the rest can still be lent
}

TEST(Pool, StaysWithinItsBound) {
  const std::shared_ptr<Pool> pool = Pool::Create({.max_bytes = 10000});
  std::vector<Loan> loans;
  absl::StatusOr<Loan> next = pool->Lend(256);
  for (; next.ok(); next = pool->Lend(256)) loans.push_back(*std::move(next));
  EXPECT_EQ(loans.size(), 39u);
  EXPECT_LE(pool->counters().bytes_reserved, 10000);
}

TEST(Pool, GivesUpFreeSlotsOfOtherSizesBeforeItRefuses) {
  const std::shared_ptr<Pool> pool = Pool::Create({.max_bytes = 4096});
  { const Loan small = pool->Lend(256).value(); }
  EXPECT_TRUE(pool->Lend(4096).ok());
  const Loan small = pool->Lend(256).value();
  EXPECT_FALSE(pool->Lend(4096).ok());  // one of the small slots is lent now
}

// Batches may grow from one length of their elements to the next.
TEST(Pool, GivesUpMemoryOfEarlierSizes) {
  constexpr size_t kAtATime = size_t{64} << 20;  // bytes
  const std::shared_ptr<Pool> pool = Pool::Create();
  for (int size_class = 0; HeapPool::ClassBytes(size_class) <= kAtATime; ++size_class) {
    const size_t bytes = HeapPool::ClassBytes(size_class);
    std::vector<Loan> loans;
    for (size_t lent = 0; lent + bytes <= kAtATime; lent += bytes) {
      loans.push_back(pool->Lend(bytes).value());
    }
    EXPECT_LE(pool->counters().bytes_reserved, int64_t{512} << 20) << bytes;
  }
}

TEST(Pool, GivesALargeElementASegmentOfItsOwnAndTakesItBack) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  Loan loan = pool->Lend(kLargest + 1).value();
  EXPECT_EQ(loan.bytes().size(), kLargest + 64);
  EXPECT_EQ(pool->counters().bytes_lent, static_cast<int64_t>(kLargest + 64));
  loan = Loan();
  EXPECT_EQ(pool->counters().bytes_lent, 0);
}

TEST(Pool, KeepsTheTwoLargeSegmentsThatReturnedLast) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  constexpr size_t kBytes = kLargest + (kLargest / 2);
  Loan first = pool->Lend(kBytes).value();
  Loan second = pool->Lend(kBytes).value();
  for (int i = 0; i < 10; ++i) {
    first = Loan();
    first = pool->Lend(kBytes - 64 * i).value();  // about that size
    second = Loan();
    second = pool->Lend(kBytes).value();
  }
  EXPECT_EQ(pool->counters().segments_allocated, 2);
  EXPECT_EQ(pool->counters().bytes_lent, static_cast<int64_t>(2 * kBytes));
  const Loan much_smaller = pool->Lend(kLargest + 1).value();
  EXPECT_EQ(much_smaller.bytes().size(), kLargest + 64);
  {
    const Loan third = pool->Lend(kBytes).value();
    first = Loan();
    second = Loan();
  }
  const auto held = static_cast<int64_t>(2 * kBytes + much_smaller.bytes().size());
  EXPECT_EQ(pool->counters().bytes_reserved, held);
}

TEST(Pool, GivesUpKeptLargeSegmentsBeforeItRefuses) {
  const std::shared_ptr<Pool> pool = Pool::Create({.max_bytes = 2 * kLargest});
  { const Loan large = pool->Lend(kLargest + 1).value(); }
  EXPECT_TRUE(pool->Lend(kLargest).ok());
  EXPECT_LE(pool->counters().bytes_reserved, static_cast<int64_t>(2 * kLargest));
}

TEST(Pool, RefusesSizesThatNoMachineHas) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  EXPECT_EQ(pool->Lend(size_t{1} << 60).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool->Lend(~size_t{0}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool->counters().bytes_reserved, 0);
}

TEST(Pool, OutlivesItsMakerUntilTheLastSlotIsBack) {
  std::shared_ptr<Pool> pool = Pool::Create();
  Loan small = pool->Lend(100).value();
  Loan large = pool->Lend(kLargest + 1).value();
  pool.reset();
  std::memset(small.bytes().data(), 1, small.bytes().size());
  std::thread([kept = std::move(small)] {}).join();
  large = Loan();  // destroys the pool, or the leak sanitizer would report it
}

TEST(Pool, TakesBackFromOtherThreads) {
  const std::shared_ptr<Pool> pool = Pool::Create();
  constexpr int kElements = 20000;
  std::mutex mu;
  std::condition_variable changed;
  std::deque<Loan> ring;
  bool ended = false;
  std::thread consumer([&] {
    for (;;) {
      Loan loan;
      {
        std::unique_lock lock(mu);
        changed.wait(lock, [&] { return ended || !ring.empty(); });
        if (ring.empty()) return;
        loan = std::move(ring.front());
        ring.pop_front();
      }
      changed.notify_all();
    }
  });
  for (int i = 0; i < kElements; ++i) {
    Loan loan = pool->Lend(256).value();
    loan.bytes()[0] = std::byte(i);
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return ring.size() < 8; });
    ring.push_back(std::move(loan));
    changed.notify_all();
  }
  {
    std::lock_guard lock(mu);
    ended = true;
  }
  changed.notify_all();
  consumer.join();
  EXPECT_EQ(pool->counters().slots_returned, kElements);
  EXPECT_EQ(pool->counters().segments_allocated, 1);
}

TEST(Pool, ServesManyThreadsThatGrowShareAndLeaveAtOnce) {
  std::shared_ptr<Pool> pool = Pool::Create({.max_bytes = 1 << 20});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([pool, t] {
      std::deque<Loan> held;
      for (int i = 0; i < 5000; ++i) {
        absl::StatusOr<Loan> loan = pool->Lend(256 << (i + t) % 8);
        if (loan.ok()) {
          std::memset(loan->bytes().data(), t, 64);
          held.push_back(loan->Share());
        }
        if (!loan.ok() || held.size() > 16) held.clear();
      }
    });
  }
  pool.reset();
  for (std::thread& thread : threads) thread.join();
}

// Registers pieces until a test makes it refuse.
class Registering : public Registrar {
 public:
  std::string_view name() const override { return "a test's"; }
  absl::StatusOr<std::unique_ptr<Registration>> Register(absl::Span<std::byte> memory) override {
    if (refuses) return absl::ResourceExhaustedError("locked enough");
    return std::make_unique<Piece>(*this, memory);
  }
  bool Knows(absl::Span<std::byte> bytes) const {
    return std::any_of(pieces.begin(), pieces.end(), [&](absl::Span<std::byte> piece) {
      return bytes.data() >= piece.data() &&
             bytes.data() + bytes.size() <= piece.data() + piece.size();
    });
  }

  bool refuses = false;
  std::vector<absl::Span<std::byte>> pieces;

 private:
  struct Piece : Registration {
    Piece(Registering& its, absl::Span<std::byte> memory) : Registration(memory), of(its) {
      of.pieces.push_back(memory);
    }
    ~Piece() override {
      std::erase_if(of.pieces, [&](const auto& piece) { return piece.data() == memory().data(); });
    }
    Registering& of;
  };
};

TEST(RegisteredPool, RegistersEachSegmentOnceWhileItIsThere) {
  auto registrar = std::make_shared<Registering>();
  std::shared_ptr<Pool> pool = RegisteredPool({}, registrar);
  std::vector<Loan> loans;
  for (size_t bytes : {size_t{100}, size_t{1} << 20, size_t{1} << 20, kLargest + 1}) {
    loans.push_back(pool->Lend(bytes).value());
    EXPECT_TRUE(registrar->Knows(loans.back().bytes())) << bytes;
  }
  EXPECT_EQ(pool->counters().registrations, 3);  // the two of one size share a segment
  EXPECT_EQ(registrar->pieces.size(), 3u);
  loans.clear();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(pool->Lend(1 << 20).ok());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(pool->Lend(kLargest + 1).ok());
  EXPECT_EQ(pool->counters().registrations, 3);
  pool.reset();
  EXPECT_TRUE(registrar->pieces.empty());
}

TEST(RegisteredPool, PassesOnThatNoMoreCanBeRegistered) {
  auto registrar = std::make_shared<Registering>();
  const std::shared_ptr<Pool> pool = RegisteredPool({}, registrar);
  registrar->refuses = true;
  const absl::Status status = pool->Lend(100).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("locked enough"));
  EXPECT_EQ(pool->counters().bytes_reserved, 0);
  registrar->refuses = false;
  EXPECT_TRUE(pool->Lend(100).ok());
}

TEST(DefaultPool, IsOne) {
  EXPECT_EQ(&DefaultPool(), &DefaultPool());
}

TEST(MakeElement, PassesOnThatThePoolIsFull) {
  const std::shared_ptr<Pool> pool = Pool::Create({.max_bytes = 1024});
  const std::vector<int64_t> values(1000);
  const int64_t dims[] = {1000};
  const Tensor tensors[] = {Tensor(kInt64, dims, values.data())};
  EXPECT_EQ(MakeElement(*pool, tensors, Dense(kInt64, {1000})).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Element, KeepsItsPoolAlive) {
  std::shared_ptr<Pool> pool = Pool::Create();
  const int64_t value = 5;
  const Tensor tensors[] = {Tensor(kInt64, {}, &value)};
  const Element element = MakeElement(*pool, tensors, Scalar(kInt64)).value();
  pool.reset();
  EXPECT_EQ(element.tensor(0).scalar<int64_t>(), 5);
}

}  // namespace
}  // namespace penstock
