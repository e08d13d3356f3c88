// SPDX-License-Identifier: Apache-2.0
// The allocations on the path of an element from one side to the other, in the steady state.
#include <atomic>

#include "dataplane/memory/pool.h"
#include "dataplane/memory/shared_segment.h"
#include "dataplane/transfer/transport.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/counted_new.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::transfer {
namespace {

class Sender : public SendEvents {
 public:
  void OnCredits(Credits granted) override {
    granted_.fetch_add(granted.count);
    granted_.notify_all();
  }
  void OnReceived(absl::Span<const Acknowledged> received) override {
    received_.fetch_add(static_cast<int64_t>(received.size()));
    received_.notify_all();
  }
  void OnClosed(const absl::Status&, std::vector<Sent>) override {}
  void AwaitGranted(int64_t count) { Await(granted_, count); }
  void AwaitReceived(int64_t count) { Await(received_, count); }
  std::shared_ptr<SendLink> link;

 private:
  static void Await(std::atomic<int64_t>& number, int64_t count) {
    for (int64_t seen; (seen = number.load()) < count;) number.wait(seen);
  }
  std::atomic<int64_t> granted_{0};
  std::atomic<int64_t> received_{0};
};

class Receiver : public ReceiveEvents {
 public:
  void OnElements(absl::Span<Element>) override {}
  void OnError(const Identity&, const absl::Status&) override {}
  void OnRecalled(Credits) override {}
  void OnClosed(const absl::Status&) override {}
};

class AllocationTest : public testing::TestWithParam<std::string> {
 protected:
  // Returns the allocations for each of `count` times that `together` elements of `bytes` are sent
  // and flushed, after a warm-up of as many.
  double PerFlush(int64_t count, int64_t bytes, int64_t together = 1) {
    Transport& transport = **FindTransport(GetParam());
    auto sender = std::make_shared<Sender>();
    auto listener = transport.Listen(
        {},
        [&](const Hello&,
            std::shared_ptr<SendLink> link) -> absl::StatusOr<std::shared_ptr<SendEvents>> {
          sender->link = std::move(link);
          return sender;
        });
    DialOptions options;
    options.spec = Dense(kUInt8, {kUnknownDim});
    options.pool = pool_.get();
    auto link = transport.Dial((*listener)->address(), options, std::make_shared<Receiver>());
    std::vector<uint8_t> values(bytes);
    const int64_t dims[] = {bytes};
    std::vector<Element> elements;
    for (int64_t i = 0; i < 2 * count * together; ++i) {
      elements.push_back(
          *MakeElement(DefaultPool(), {Tensor(kUInt8, dims, values.data())}, options.spec));
    }
    int64_t before = 0;
    for (int64_t i = 0; i < 2 * count; ++i) {
      if (i == count) {
        before = Counted();
        segments_before_ = Segments();
      }
      (*link)->Grant({together});
      sender->AwaitGranted((i + 1) * together);
      for (int64_t k = 0; k < together; ++k) {
        EXPECT_TRUE(sender->link->Send(std::move(elements[i * together + k])).ok());
      }
      sender->link->Flush();
      sender->AwaitReceived((i + 1) * together);
    }
    const int64_t made = Counted() - before;
    segments_after_ = Segments();
    link->reset();
    sender->link.reset();
    return static_cast<double>(made) / static_cast<double>(count);
  }

  // `local` runs on the thread that calls it. Threads of an earlier test may allocate meanwhile.
  static int64_t Counted() {
    return GetParam() == "local" ? AllocationsOfThisThread() : Allocations();
  }

  int64_t Segments() const {
    return pool_->counters().segments_allocated + CountShared().segments_created;
  }

  std::shared_ptr<Pool> pool_ = Pool::Create();
  int64_t segments_before_ = 0;
  int64_t segments_after_ = 0;
};

TEST_P(AllocationTest, ASteadyStateMakesNoSegments) {
  PerFlush(100, 1 << 20);
  EXPECT_EQ(segments_before_, segments_after_);
}

// Returns how many allocations a flush may make. `local` makes none. Over sockets and rings a queue
// grows now and then, when threads of a link have waited for each other, but not for each flush.
// gRPC itself allocates.
double Bound(const std::string& protocol, double for_grpc) {
  if (protocol == "local") return 0;
  return protocol == "grpc" ? for_grpc : 0.2;
}

TEST_P(AllocationTest, AllocationsDoNotGrowWithTheElement) {
  EXPECT_LE(PerFlush(200, 100), Bound(GetParam(), 40));
  // gRPC reads a large element in pieces of at most 64 KiB, and allocates for each: 41 to 47 in all
  // on an idle machine, fewer when more bytes have arrived before it reads.
  EXPECT_LE(PerFlush(200, 1 << 20), Bound(GetParam(), 60));
}

TEST_P(AllocationTest, AllocationsDoNotGrowWithTheElementsOfAFrame) {
  EXPECT_LE(PerFlush(100, 100, 300), Bound(GetParam(), 60));
}

INSTANTIATE_TEST_SUITE_P(All, AllocationTest, testing::ValuesIn(TransportsThatRun()));

}  // namespace
}  // namespace penstock::transfer
