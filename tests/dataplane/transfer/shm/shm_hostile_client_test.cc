// SPDX-License-Identifier: Apache-2.0
// The worker is ours; the client speaks the protocol by hand and lies. A lie
// ends the link with DataLoss and does no other harm.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/send_end.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/shm/word.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/observe/count_refused.h"
#include "tests/dataplane/transfer/ends.h"
#include "tests/dataplane/transfer/shm/shm_blob.h"
#include "tests/dataplane/transfer/shm/shm_by_hand.h"

namespace penstock::transfer::shm {
namespace {

using ::testing::HasSubstr;

class HostileClient : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(worker_.listening());
    socket_ = *PacketSocket::Connect("penstock-" + worker_.address());
    const std::string hello = Encode(Hello{.token = "sesame"});
    SharedSegment control = *SharedSegment::Create(sizeof(ControlMemory) + hello.size());
    std::memcpy(control.memory().data() + sizeof(ControlMemory), hello.data(), hello.size());
    ASSERT_TRUE(socket_
                    .Send(PacketKind::kGreeting, transfer::Pack(kShmVersions), hello.size(),
                          abilities(), {}, {control.fd()})
                    .ok());
    channel_.emplace(std::move(control), Channel::Side::kClient);
    Packet welcome = Await(socket_);
    ASSERT_EQ(welcome.kind, PacketKind::kWelcome);
    channel_->SetDoorbell(socket_);
    end_ = worker_.Link(0);
    ASSERT_NE(end_, nullptr);
  }

  virtual uint64_t abilities() const { return 0; }

  void Grant() {
    channel_->Send(Pack(WordKind::kGranted, int64_t{1}));
    ASSERT_TRUE(end_->AwaitGranted(++granted_));
  }
  // Lets the worker send one element, and returns its word.
  uint64_t Get() {
    Grant();
    EXPECT_TRUE(end_->link().Send(ShmBlob(DefaultPool(), granted_)).ok());
    if (segment_.memory().empty()) Give();
    return NextWord();
  }
  uint64_t NextWord() { return NextWordOf(*channel_); }
  // Lets the worker send an element without a slot for it; it then asks for
  // slots.
  void LetItAsk() {
    Grant();
    ASSERT_TRUE(end_->link().Send(ShmBlob(DefaultPool(), granted_)).ok());
    ASSERT_EQ(Await(socket_).kind, PacketKind::kNeed);
  }
  void Give() {
    ASSERT_EQ(Await(socket_).kind, PacketKind::kNeed);
    segment_ = *SharedSegment::Create(kLayout.bytes());
    Give(segment_.fd(), kLayout);
  }
  void Give(int segment, const SlotLayout& layout) {
    ASSERT_TRUE(
        socket_.Send(PacketKind::kSegment, 0, layout.slots, layout.body_bytes, {}, {segment}).ok());
  }
  // Begins an element that the worker makes in a slot of this client.
  OpenBlock Begin() {
    const SlotWord word = SlotOf(Get());
    channel_->Send(Pack(WordKind::kReceived, int64_t{1}));
    channel_->Send(Pack(WordKind::kReturn, word));
    EXPECT_TRUE(end_->AwaitReceived(1));
    return Another();
  }
  OpenBlock Another() {
    const Element like = ShmBlob(DefaultPool(), 0);
    return *NewBlock(*end_->link().pool(), *LayoutOf({like.tensor(0)}), BlobSpec());
  }
  Element Fill(OpenBlock block) {
    std::memset(block.writer.data(0).data(), 7, kShmBlobBytes);
    Element element = std::move(block).Seal(BlobSpec());
    element.set_identity(
        {.partition = PartitionId(1), .placement = Placement(1), .index = granted_ + 1});
    return element;
  }
  // Returns this client's view of a slot, from the room for the head on.
  std::byte* Slot(uint32_t slot) {
    return segment_.memory().data() + kLayout.body_offset(slot) - kHeadRoom;
  }
  void WriteOverHeads() {
    for (uint32_t slot = 0; slot < kLayout.slots; ++slot) {
      std::memset(Slot(slot), 0xff, kHeadRoom);
    }
  }
  void ExpectDataLoss(const std::string& why) {
    const absl::Status reason = end_->AwaitClosed();
    EXPECT_EQ(reason.code(), absl::StatusCode::kDataLoss) << reason;
    EXPECT_THAT(std::string(reason.message()), HasSubstr(why));
  }

  Worker worker_{**FindTransport("shm")};
  PacketSocket socket_;
  std::optional<Channel> channel_;
  std::shared_ptr<WorkerEnd> end_;
  static constexpr SlotLayout kLayout{.slots = 2, .body_bytes = 128 << 10};
  SharedSegment segment_;
  int64_t granted_ = 0;
};

TEST_F(HostileClient, AnHonestReturnLetsTheWorkerGoOn) {
  for (int i = 0; i < 5; ++i) {
    const SlotWord word = SlotOf(Get());
    channel_->Send(Pack(WordKind::kReceived, int64_t{1}));
    channel_->Send(Pack(WordKind::kReturn, word));
    ASSERT_TRUE(end_->AwaitReceived(i + 1));
  }
}

// The worker finds both words at once, for an element that was made in the
// client's slot.
TEST_F(HostileClient, ASlotReturnedWithItsReceiptServesAWaitingElement) {
  std::atomic<bool> full = false;
  std::atomic<int64_t> calls = 0;
  SlotWord first;
  end_->on_credits = [&](SendLink& link,
                         Credits) {  // runs on the thread that reads the words
    ++calls;
    if (!full) return;
    EXPECT_TRUE(link.Send(ShmBlob(DefaultPool(), 99)).ok());
    channel_->Send(Pack(WordKind::kReceived, int64_t{1}));
    channel_->Send(Pack(WordKind::kReturn, first));
  };
  ASSERT_EQ(end_->received(),
            0);  // takes the lock, after which events see on_credits
  Element made = Fill(Begin());
  Grant();
  Element other = Fill(Another());
  ASSERT_TRUE(end_->link().Send(std::move(made)).ok());
  first = SlotOf(NextWord());
  Grant();
  ASSERT_TRUE(end_->link().Send(std::move(other)).ok());
  ASSERT_EQ(KindOf(NextWord()), WordKind::kElement);
  // The call for `other` may still be under way.
  ASSERT_TRUE(Eventually([&] { return calls >= granted_; }));
  full = true;  // both slots are in use
  Grant();
  EXPECT_EQ(SlotOf(NextWord()).slot, first.slot);
}

TEST_F(HostileClient, SilentConnectionsOfAProcessWaitAndKeepNobodyOut) {
  const int64_t refused = RefusedSoFar("shm", "too_many");
  std::vector<PacketSocket> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(*PacketSocket::Connect("penstock-" + worker_.address()));
  }
  const PacketSocket speaks = *PacketSocket::Connect("penstock-" + worker_.address());
  ASSERT_TRUE(speaks.Send(PacketKind::kRing).ok());
  EXPECT_EQ(Await(speaks).kind, PacketKind::kClosed) << "no greeting";
  EXPECT_EQ(RefusedSoFar("shm", "too_many"), refused) << "a client without a greeting was dropped";
  EXPECT_NE(Get(), 0u);
}

TEST_F(HostileClient, ASlotThatIsNotThereEndsTheLink) {
  Get();
  channel_->Send(Pack(WordKind::kReturn, SlotWord{.slot = 99}));
  ExpectDataLoss("does not exist");
}

TEST_F(HostileClient, ASlotIsNotGivenBackTwice) {
  const SlotWord word = SlotOf(Get());
  channel_->Send(Pack(WordKind::kReturn, word));
  channel_->Send(Pack(WordKind::kReturn, word));
  ExpectDataLoss("does not hold");
  EXPECT_THAT(end_->unconfirmed(), testing::ElementsAre(1));
}

// If a worker waited for the client, it would serve nobody else.
TEST_F(HostileClient, AClientThatNeverReadsItsDoorbellHoldsUpNobody) {
  constexpr int kRings = 2000;  // more than a socket buffers
  auto& control = *reinterpret_cast<ControlMemory*>(channel_->control().memory().data());
  for (int i = 0; i < kRings; ++i) {
    control.client.sleeps = 1;
    channel_->Send(Pack(WordKind::kRecall, int64_t{0}));
    ASSERT_EQ(KindOf(NextWord()), WordKind::kRecalled);
  }
}

TEST_F(HostileClient, MoreThanWasSentCannotBeReceived) {
  Get();
  channel_->Send(Pack(WordKind::kReceived, int64_t{2}));
  ExpectDataLoss("more than were sent");
}

TEST_F(HostileClient, CreditsBeyondCountingEndTheLink) {
  for (int i = 0; i < 9; ++i) channel_->Send(Pack(WordKind::kGranted, kMaxCount));
  ExpectDataLoss("the client granted more credits than can be counted");
}

TEST_F(HostileClient, ASegmentThatMayShrinkEndsTheLink) {
  const Descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), kLayout.bytes()), 0);
  LetItAsk();
  Give(unsealed.get(), kLayout);
  EXPECT_THAT(std::string(end_->AwaitClosed().message()), HasSubstr("sealed size"));
}

TEST_F(HostileClient, ASegmentThatNobodyAskedForEndsTheLink) {
  segment_ = *SharedSegment::Create(kLayout.bytes());
  Give(segment_.fd(), kLayout);
  ExpectDataLoss("requested");
}

TEST_F(HostileClient, ASegmentMuchLargerThanWasAskedForEndsTheLink) {
  constexpr SlotLayout kLarge{.slots = 200, .body_bytes = 128 << 10};
  LetItAsk();
  segment_ = *SharedSegment::Create(kLarge.bytes());
  Give(segment_.fd(), kLarge);
  EXPECT_THAT(std::string(end_->AwaitClosed().message()), HasSubstr("requested"));
}

TEST_F(HostileClient, ASegmentWithHolesEndsTheLinkAndIsNotFilled) {
  const Descriptor sparse(::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(sparse.get(), kLayout.bytes()), 0);
  ASSERT_EQ(::fcntl(sparse.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  LetItAsk();
  Give(sparse.get(), kLayout);
  EXPECT_THAT(std::string(end_->AwaitClosed().message()), HasSubstr("holes"));
  struct stat status;
  ASSERT_EQ(::fstat(sparse.get(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST_F(HostileClient, WritesIntoAHeadBeingMadeAreIgnored) {
  OpenBlock block = Begin();
  std::byte* const made = block.loan.bytes().data();
  const size_t head_bytes = PrefixOf(made).head_bytes;
  WriteOverHeads();
  ASSERT_EQ(block.writer.data(0).data(), made + head_bytes);
  ASSERT_EQ(block.writer.data(0).size(), static_cast<size_t>(kShmBlobBytes));
  Element element = Fill(std::move(block));
  const std::vector<std::byte> head(made, made + head_bytes);
  Grant();
  ASSERT_TRUE(end_->link().Send(std::move(element)).ok());
  const uint64_t word = NextWord();
  ASSERT_EQ(KindOf(word), WordKind::kElement);
  ASSERT_EQ(SlotOf(word).head_bytes, head_bytes);
  const std::byte* sent = Slot(SlotOf(word).slot) + kHeadRoom - head_bytes;
  EXPECT_EQ(std::memcmp(sent, head.data(), head_bytes), 0);
  EXPECT_EQ(sent[head_bytes + kShmBlobBytes - 1], std::byte{7});
}

TEST_F(HostileClient, WritesIntoAWaitingHeadAreIgnored) {
  Element element = Fill(Begin());
  for (uint32_t slot = 0; slot < kLayout.slots; ++slot) {
    MutablePrefixOf(Slot(slot) + kHeadRoom - PrefixOf(element.block().data()).head_bytes)
        .body_bytes = 1;
  }
  Grant();
  ASSERT_TRUE(end_->link().Send(std::move(element)).ok());
  EXPECT_EQ(KindOf(NextWord()), WordKind::kElement);
}

TEST_F(HostileClient, WritesIntoASentHeadDoNotReachOtherClients) {
  Element element = Fill(Begin());
  Grant();
  ASSERT_TRUE(end_->link().Send(std::move(element)).ok());
  ASSERT_EQ(KindOf(NextWord()), WordKind::kElement);
  WriteOverHeads();
  ASSERT_TRUE(socket_.Send(PacketKind::kGoodbye).ok());
  ASSERT_TRUE(end_->AwaitClosed().ok());
  EXPECT_THAT(end_->unconfirmed(), testing::ElementsAre(granted_));
  EXPECT_THAT(end_->unconfirmed_errors(), testing::ElementsAre(absl::OkStatus()));
}

TEST_F(HostileClient, WritesIntoAnErrorsSlotAreIgnored) {
  constexpr int kErrors = 15'000;
  const uint32_t taken = SlotOf(Get()).slot;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    const std::atomic_ref<uint32_t> leaf_count(
        MutablePrefixOf(Slot(1 - taken) + kHeadRoom).leaf_count);
    while (!done) leaf_count = ~uint32_t{0};
  });
  for (int i = 0; i < kErrors; ++i) {
    Grant();
    ASSERT_TRUE(end_->link().Send({Identity(), absl::InternalError("an error")}).ok());
    const uint64_t word = NextWord();
    ASSERT_EQ(KindOf(word), WordKind::kError);
    channel_->Send(Pack(WordKind::kReceived, int64_t{1}));
    channel_->Send(Pack(WordKind::kReturn, SlotOf(word)));
  }
  done = true;
  writer.join();
}

TEST_F(HostileClient, AClientThatDoesNotReadSharedSegmentsGetsCopies) {
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({});
  channel_->Send(Pack(WordKind::kGranted, int64_t{1}));
  ASSERT_TRUE(end_->AwaitGranted(1));
  ASSERT_TRUE(end_->link().Send(ShmBlob(*pool, 1)).ok());
  Give();
  EXPECT_EQ(KindOf(NextWord()), WordKind::kCopiedElsewhere);
}

class HostileReader : public HostileClient {
 protected:
  uint64_t abilities() const override { return kReadsShared; }
  // Returns the word of an element in the shared pool, after answering the
  // worker's segment.
  SlotWord GetShared() {
    channel_->Send(Pack(WordKind::kGranted, int64_t{1}));
    EXPECT_TRUE(end_->AwaitGranted(++granted_));
    EXPECT_TRUE(end_->link().Send(ShmBlob(*pool_, granted_)).ok());
    if (granted_ == 1) {
      const Packet shown = Await(socket_);
      EXPECT_EQ(shown.kind, PacketKind::kShared);
      EXPECT_TRUE(socket_.Send(PacketKind::kMapped, shown.a).ok());
    }
    const uint64_t word = NextWord();
    EXPECT_EQ(KindOf(word), WordKind::kShared);
    return SlotOf(word);
  }

  std::shared_ptr<SharedPool> pool_ = SharedPool::Create({});
};

TEST_F(HostileReader, AnHonestReturnFreesTheSlot) {
  const SlotWord first = GetShared();
  channel_->Send(Pack(WordKind::kReceived, int64_t{1}));
  channel_->Send(Pack(WordKind::kReturnShared, first));
  ASSERT_TRUE(end_->AwaitReceived(1));
  ASSERT_TRUE(Eventually([&] { return pool_->counters().slots_returned == 1; }));
  const SlotWord second = GetShared();
  EXPECT_EQ(second.slot, first.slot);
  EXPECT_EQ(second.generation, first.generation + 1);
}

TEST_F(HostileReader, ASlotIsNotGivenBackTwice) {
  const SlotWord word = GetShared();
  channel_->Send(Pack(WordKind::kReturnShared, word));
  channel_->Send(Pack(WordKind::kReturnShared, word));
  ExpectDataLoss("does not hold");
}

TEST_F(HostileReader, ASlotThatIsNotThereEndsTheLink) {
  GetShared();
  channel_->Send(Pack(WordKind::kReturnShared, SlotWord{.slot = 999}));
  ExpectDataLoss("does not exist");
}

TEST_F(HostileReader, ASlotOfTheWorkersIsNotGivenBackAsOneOfItsOwn) {
  channel_->Send(Pack(WordKind::kReturn, GetShared()));
  ExpectDataLoss("does not exist");
}

TEST_F(HostileReader, AnAnswerToNothingEndsTheLink) {
  GetShared();
  ASSERT_TRUE(socket_.Send(PacketKind::kMapped, 7).ok());
  ExpectDataLoss("not announced to it");
}

}  // namespace
}  // namespace penstock::transfer::shm
