// SPDX-License-Identifier: Apache-2.0
// One end is ours; the other speaks the protocol by hand and lies. A lie ends the link with
// DataLoss and does no other harm.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "dataplane/element/block.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/shm/channel.h"
#include "dataplane/transfer/shm/host.h"
#include "dataplane/transfer/shm/send_end.h"
#include "dataplane/transfer/shm/send_slots.h"
#include "dataplane/transfer/shm/socket.h"
#include "dataplane/transfer/shm/word.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/ends.h"
#include "tests/dataplane/transfer/shm_blob.h"

namespace penstock::transfer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kAddress[] = "shm:by-hand";
constexpr char kName[] = "penstock-shm:by-hand";

// Returns the next packet that is not kRing; kGoodbye if the peer is gone or sends none.
Packet Await(const PacketSocket& socket) {
  Packet next;
  EXPECT_TRUE(Eventually([&] {
    absl::StatusOr<Packet> packet = socket.Receive();
    if (packet.ok() ? packet->kind == PacketKind::kRing : absl::IsNotFound(packet.status())) {
      return false;
    }
    if (packet.ok()) next = *std::move(packet);
    return true;
  })) << "no packet came";
  return next;
}

// Returns the next word; 0 if none comes.
uint64_t NextWordOf(Channel& channel) {
  uint64_t word = 0;
  EXPECT_TRUE(Eventually([&] { return channel.Read(word) == RingReader::Found::kWord; }))
      << "no word came";
  return word;
}

// --- A worker by hand --------------------------------------------------------------

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

  // Writes an element into a slot, and returns the word that gives the slot away.
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

// --- Segments of the worker's --------------------------------------------------------

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

TEST_F(HostileWorker, WritesIntoAReceivedHeadAreNotSeen) {
  const SlotWord word = Written(6);
  Say(WordKind::kElement, word);
  ASSERT_TRUE(client_->AwaitCount(1));
  std::memset(Head(word), 0xff, word.head_bytes);
  const std::vector<Element> elements = client_->TakeElements();
  EXPECT_EQ(elements[0].identity().index, 6);
  EXPECT_EQ(elements[0].tensor(0).data<uint8_t>().size(), static_cast<size_t>(kShmBlobBytes));
}

// --- A client by hand --------------------------------------------------------------

class HostileClient : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(worker_.listening());
    socket_ = *PacketSocket::Connect("penstock-" + worker_.address());
    const std::string hello = Encode(Hello{.token = "sesame"});
    SharedSegment control = *SharedSegment::Create(sizeof(ControlMemory) + hello.size());
    std::memcpy(control.memory().data() + sizeof(ControlMemory), hello.data(), hello.size());
    ASSERT_TRUE(
        socket_
            .Send(PacketKind::kGreeting, kShmVersion, hello.size(), abilities(), {}, {control.fd()})
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
  // Lets the worker send an element without a slot for it; it then asks for slots.
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

// The worker finds both words at once, for an element that was made in the client's slot.
TEST_F(HostileClient, ASlotReturnedWithItsReceiptServesAWaitingElement) {
  std::atomic<bool> full = false;
  std::atomic<int64_t> calls = 0;
  SlotWord first;
  end_->on_credits = [&](SendLink& link, Credits) {  // runs on the thread that reads the words
    ++calls;
    if (!full) return;
    EXPECT_TRUE(link.Send(ShmBlob(DefaultPool(), 99)).ok());
    channel_->Send(Pack(WordKind::kReceived, int64_t{1}));
    channel_->Send(Pack(WordKind::kReturn, first));
  };
  ASSERT_EQ(end_->received(), 0);  // takes the lock, after which events see on_credits
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
  // Returns the word of an element in the shared pool, after answering the worker's segment.
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

TEST(SameHost, DifferencesAreSaidInWords) {
  const std::string ours = DescribeHost();
  EXPECT_TRUE(CheckSameHost(ours, ours).ok());
  const std::pair<std::string, std::string> cases[] = {
      {"", "different version"},
      {"v2 boot net user pid ipc uid:0", "different version"},
      {"v1 other net user pid ipc uid:0", "different machine"},
      {"v1 boot other user pid ipc uid:0", "different network namespace"},
      {"v1 boot net other pid ipc uid:0", "different user namespace"},
      {"v1 boot net user other ipc uid:0", "different PID namespace"},
      {"v1 boot net user pid other uid:0", "different IPC namespace"},
      {"v1 boot net user pid ipc uid:7", "different user"},
  };
  for (const auto& [theirs, why] : cases) {
    const absl::Status status = CheckSameHost(theirs, "v1 boot net user pid ipc uid:0");
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

}  // namespace
}  // namespace penstock::transfer
