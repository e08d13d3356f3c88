// SPDX-License-Identifier: Apache-2.0
// The client is ours; the worker speaks the protocol by hand and lies. A lie
// ends the link with DataLoss and does no other harm.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/send_slots.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/shm/word.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/ends.h"
#include "tests/dataplane/transfer/shm/shm_blob.h"
#include "tests/dataplane/transfer/shm/shm_by_hand.h"

namespace penstock::transfer::shm {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kAddress[] = "shm:by-hand";
constexpr char kName[] = "penstock-shm:by-hand";

class HostileWorker : public testing::Test {
 protected:
  void SetUp() override {
    listener_ = *ListenAt(kName);
    DialOptions options;
    options.hello.token = "sesame";
    options.spec = BlobSpec();
    link_ = *(*FindTransport("shm"))->Dial(kAddress, std::move(options), client_);
    absl::StatusOr<PacketSocket> accepted = absl::NotFoundError("");
    ASSERT_TRUE(Eventually([&] {
      accepted = AcceptFrom(listener_.get());
      return !absl::IsNotFound(accepted.status());
    }));
    socket_ = *std::move(accepted);
    Packet greeting = Await(socket_);
    ASSERT_EQ(greeting.kind, PacketKind::kGreeting);
    channel_.emplace(*SharedSegment::Open(greeting.descriptors[0],
                                          AlignUp(sizeof(ControlMemory) + greeting.b, kPageBytes)),
                     Channel::Side::kWorker);
    channel_->SetDoorbell(socket_);
    ASSERT_TRUE(socket_.Send(PacketKind::kWelcome).ok());
    ASSERT_TRUE(client_->AwaitOpen());
    ASSERT_TRUE(socket_.Send(PacketKind::kNeed, kShmBlobBytes + 4096, 2).ok());
    Packet segment = Await(socket_);
    ASSERT_EQ(segment.kind, PacketKind::kSegment);
    layout_ = {.slots = static_cast<uint32_t>(segment.b), .body_bytes = segment.c};
    segment_ = *SharedSegment::Open(segment.descriptors[0], layout_.bytes());
    ASSERT_TRUE(
        slots_->Add(segment.a, segment.b, segment.c, kMostBytes, segment.descriptors[0]).ok());
  }

  // Writes an element into a slot, and returns the word that gives the slot
  // away.
  SlotWord Written(Index index) {
    Element element = ShmBlob(DefaultPool(), index);
    place_ = *slots_->Claim(kShmBlobBytes);
    const auto head = PrefixOf(element.block().data()).head_bytes;
    std::memcpy(place_.body - head, element.block().data(), element.block().size());
    return slots_->GiveAway(place_.body, head);
  }
  // Returns the head in a slot that was given away, as the client sees it.
  std::byte* Head(const SlotWord& word) {
    const uint32_t slot = word.slot & ((1u << kSlotInSegmentBits) - 1);
    return segment_.memory().data() + layout_.body_offset(slot) - word.head_bytes;
  }
  void Say(WordKind kind, const SlotWord& word) { channel_->Send(Pack(kind, word)); }
  void ExpectDataLoss(const std::string& why) {
    const absl::Status reason = client_->AwaitClosed();
    EXPECT_EQ(reason.code(), absl::StatusCode::kDataLoss) << reason;
    EXPECT_THAT(std::string(reason.message()), HasSubstr(why));
  }

  static constexpr size_t kMostBytes = 4 << 20;  // limit of one segment of the client
  Descriptor listener_;
  std::shared_ptr<ClientEnd> client_ = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link_;
  PacketSocket socket_;
  std::optional<Channel> channel_;
  std::shared_ptr<SendSlots> slots_ = std::make_shared<SendSlots>();
  SendSlots::Place place_;
  SlotLayout layout_;
  SharedSegment segment_;
};

TEST_F(HostileWorker, AnHonestElementIsReceived) {
  Say(WordKind::kElement, Written(3));
  ASSERT_TRUE(client_->AwaitCount(1));
  EXPECT_EQ(client_->TakeElements()[0].tensor(0).data<uint8_t>()[kShmBlobBytes - 1], 3);
}

TEST_F(HostileWorker, ASlotThatIsNotThereEndsTheLink) {
  SlotWord word = Written(0);
  word.slot += 2;
  Say(WordKind::kElement, word);
  ExpectDataLoss("does not exist");
  EXPECT_THAT(client_->indices(), IsEmpty());
}

TEST_F(HostileWorker, ASegmentThatIsNotThereEndsTheLink) {
  SlotWord word = Written(0);
  word.slot |= 7u << kSlotInSegmentBits;
  Say(WordKind::kFrame, word);
  ExpectDataLoss("does not exist");
}

TEST_F(HostileWorker, AGenerationThatIsNotThePresentOneEndsTheLink) {
  SlotWord word = Written(0);
  word.generation = 1;
  Say(WordKind::kElement, word);
  ExpectDataLoss("generation 1");
  EXPECT_THAT(client_->indices(), IsEmpty());
}

TEST_F(HostileWorker, ASlotThatIsBeingReadIsNotGivenTwice) {
  const SlotWord word = Written(5);
  Say(WordKind::kElement, word);
  Say(WordKind::kElement, word);
  ExpectDataLoss("being read");
  const std::vector<Element> elements = client_->TakeElements();
  ASSERT_EQ(elements.size(), 1u);
  EXPECT_EQ(elements[0].tensor(0).data<uint8_t>()[0], 5);
}

TEST_F(HostileWorker, AHeadThatIsNoneEndsTheLink) {
  SlotWord word = Written(0);
  word.head_bytes = 0;
  Say(WordKind::kElement, word);
  ExpectDataLoss("a head of 0 bytes");
}

TEST_F(HostileWorker, AnUnknownWordEndsTheLink) {
  channel_->Send(~uint64_t{0});
  ExpectDataLoss("an unexpected word");
}

TEST_F(HostileWorker, ARingThatClaimsMoreThanItHoldsEndsTheLink) {
  auto& control = *reinterpret_cast<ControlMemory*>(channel_->control().memory().data());
  control.to_client.written = uint64_t{1} << 40;
  socket_.Send(PacketKind::kRing).IgnoreError();  // the client may be gone already
  ExpectDataLoss("contains an invalid word");
}

TEST_F(HostileWorker, ABlockThatIsLongerThanItsSlotEndsTheLink) {
  const SlotWord word = Written(0);
  MutablePrefixOf(Head(word)).body_bytes = uint64_t{1} << 40;
  Say(WordKind::kElement, word);
  ExpectDataLoss("body_bytes");
}

TEST_F(HostileWorker, AFrameThatIsLongerThanItsSlotEndsTheLink) {
  const SlotWord word = Written(0);
  const FramePrefix frame{.magic = kFrameMagic, .frame_bytes = ~uint64_t{63}};
  std::memcpy(place_.body, &frame, sizeof(frame));
  Say(WordKind::kFrame, word);
  ExpectDataLoss("into a slot of");
}

TEST_F(HostileWorker, ASegmentThatIsBeingReadCannotBeRetired) {
  Say(WordKind::kElement, Written(8));
  ASSERT_TRUE(client_->AwaitCount(1));
  ASSERT_TRUE(socket_.Send(PacketKind::kRetire, 0).ok());
  ExpectDataLoss("is still being read");
  EXPECT_EQ(client_->TakeElements()[0].tensor(0).data<uint8_t>()[kShmBlobBytes - 1], 8);
}

TEST_F(HostileWorker, WritesIntoAReceivedHeadAreNotSeen) {
  const SlotWord word = Written(6);
  Say(WordKind::kElement, word);
  ASSERT_TRUE(client_->AwaitCount(1));
  std::memset(Head(word), 0xff, word.head_bytes);
  const std::vector<Element> elements = client_->TakeElements();
  EXPECT_EQ(elements[0].identity().index, 6);
  EXPECT_EQ(elements[0].tensor(0).data<uint8_t>().size(), static_cast<size_t>(kShmBlobBytes));
}

// --- Segments of the worker's
// --------------------------------------------------------

class HostileSharer : public HostileWorker {
 protected:
  // Announces `segment` to the client under `number`, true or not.
  void Show(int segment, uint64_t number = 0, uint64_t slots = 2, uint64_t body_bytes = kBody) {
    const Descriptor hold(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    ASSERT_TRUE(
        socket_.Send(PacketKind::kShared, number, slots, body_bytes, {}, {segment, hold.get()})
            .ok());
  }
  void ShowWell() {
    Show(own_.fd());
    const Packet answer = Await(socket_);
    ASSERT_EQ(answer.kind, PacketKind::kMapped);
    EXPECT_EQ(answer.b, 0u);
  }
  // Writes an element into slot 0, and returns its word.
  SlotWord Write(Index index) {
    const Element element = ShmBlob(DefaultPool(), index);
    const auto head = PrefixOf(element.block().data()).head_bytes;
    std::memcpy(own_.memory().data() + kHeadRoom - head, element.block().data(),
                element.block().size());
    return {.slot = 0, .generation = 0, .head_bytes = head};
  }

  static constexpr uint64_t kBody = 128 << 10;
  SharedSegment own_ =
      *SharedSegment::Create(2 * (kHeadRoom + kBody), SharedSegment::Writers::kOwner);
};

TEST_F(HostileSharer, AnHonestElementIsReceivedAndItsSlotIsGivenBack) {
  ShowWell();
  Say(WordKind::kShared, Write(3));
  ASSERT_TRUE(client_->AwaitCount(1));
  EXPECT_EQ(client_->TakeElements()[0].tensor(0).data<uint8_t>()[kShmBlobBytes - 1], 3);
  uint64_t word = NextWordOf(*channel_);
  while (KindOf(word) == WordKind::kReceived) word = NextWordOf(*channel_);
  EXPECT_EQ(KindOf(word), WordKind::kReturnShared);
  EXPECT_EQ(SlotOf(word).slot, 0u);
}

TEST_F(HostileSharer, ASegmentThatMayShrinkEndsTheLink) {
  const Descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 2 * (kHeadRoom + kBody)), 0);
  Show(unsealed.get());
  ExpectDataLoss("sealed size");
}

TEST_F(HostileSharer, ASegmentOfAnotherSizeThanAnnouncedEndsTheLink) {
  Show(own_.fd(), 0, 3);
  ExpectDataLoss("does not have the announced size");
}

TEST_F(HostileSharer, ALayoutThatCannotBeEndsTheLink) {
  Show(own_.fd(), 0, uint64_t{1} << 40);
  ExpectDataLoss("an invalid layout");
}

TEST_F(HostileSharer, ASegmentThatIsShownTwiceEndsTheLink) {
  ShowWell();
  Show(own_.fd());
  ExpectDataLoss("twice");
}

TEST_F(HostileSharer, ASegmentWithoutDescriptorsEndsTheLink) {
  ASSERT_TRUE(socket_.Send(PacketKind::kShared, 0, 2, kBody).ok());
  ExpectDataLoss("without its descriptors");
}

TEST_F(HostileSharer, ASlotOfASegmentThatWasNotShownEndsTheLink) {
  Say(WordKind::kShared, Write(0));
  ExpectDataLoss("does not exist");
}

TEST_F(HostileSharer, ASlotThatIsBeingReadIsNotGivenTwice) {
  ShowWell();
  const SlotWord word = Write(5);
  Say(WordKind::kShared, word);
  Say(WordKind::kShared, word);
  ExpectDataLoss("being read");
  EXPECT_EQ(client_->TakeElements()[0].tensor(0).data<uint8_t>()[0], 5);
}

TEST_F(HostileSharer, WritesIntoAReceivedHeadAreNotSeen) {
  ShowWell();
  const SlotWord word = Write(6);
  Say(WordKind::kShared, word);
  ASSERT_TRUE(client_->AwaitCount(1));
  std::memset(own_.memory().data(), 0xee, kHeadRoom);
  EXPECT_EQ(client_->TakeElements()[0].identity().index, 6);
}

TEST_F(HostileSharer, ASegmentThatIsBeingReadCannotBeGivenUp) {
  ShowWell();
  Say(WordKind::kShared, Write(8));
  ASSERT_TRUE(client_->AwaitCount(1));
  ASSERT_TRUE(socket_.Send(PacketKind::kGiveUp, 0).ok());
  ExpectDataLoss("is still being read");
  EXPECT_EQ(client_->TakeElements()[0].tensor(0).data<uint8_t>()[kShmBlobBytes - 1], 8);
}

}  // namespace
}  // namespace penstock::transfer::shm
