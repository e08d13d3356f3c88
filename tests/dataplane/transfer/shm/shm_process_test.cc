// SPDX-License-Identifier: Apache-2.0
// Properties of shared memory only: where elements are and when they are copied, who owns them when
// a peer dies or forks, and that nothing of it remains.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/copied.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/memory/shared_segment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/observe/descriptors_left.h"
#include "tests/dataplane/transfer/child_process.h"
#include "tests/dataplane/transfer/ends.h"
#include "tests/dataplane/transfer/shm/shm_blob.h"

namespace penstock::transfer {
namespace {

constexpr char kShmChild[] = "ShmChild.ObeysTheParent";

Transport& Shm() {
  return **FindTransport("shm");
}

bool IsShmBlob(const Element& element, Index index) {
  const absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
  return element.identity().index == index && values.size() == static_cast<size_t>(kShmBlobBytes) &&
         std::all_of(values.begin(), values.end(),
                     [&](uint8_t value) { return value == static_cast<uint8_t>(index); });
}

std::unique_ptr<ReceiveLink> Dial(const std::string& address,
                                  const std::shared_ptr<ClientEnd>& client,
                                  absl::Duration timeout = absl::Seconds(10)) {
  DialOptions options;
  options.timeout = timeout;
  options.hello.token = "sesame";
  options.spec = BlobSpec();
  return *Shm().Dial(address, std::move(options), client);
}

// Limits further mappings to this many MiB.
void LimitFurtherMemory(int mib) {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t bytes = pages * kPageBytes + (rlim_t{static_cast<rlim_t>(mib)} << 20);
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(1);
}

int Descriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// Dials, grants `credits`, keeps the elements it receives and reports their number when asked.
[[noreturn]] void BeClient(int64_t credits) {
  auto client = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link = Dial(HearFromParent(), client);
  if (!client->AwaitOpen()) ::_exit(1);
  const std::string room = HearFromParent();
  if (room != "any") LimitFurtherMemory(std::atoi(room.c_str()));
  link->Grant({credits});
  while (true) {
    const std::string said = HearFromParent();
    if (said == "let go") {
      client->TakeElements();
    } else if (said == "leave") {
      link.reset();
    } else if (!client->AwaitCount(std::atoi(said.c_str()))) {
      ::_exit(1);
    }
    SayToParent(said);
  }
}

// Listens, sends three elements of its own pool to the first client.
[[noreturn]] void BeWorker() {
  Worker worker(Shm());
  SayToParent(worker.address());
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({});
  const std::shared_ptr<WorkerEnd> end = worker.Link(0);
  if (end == nullptr || !end->AwaitGranted(3)) ::_exit(1);
  for (Index i = 0; i < 3; ++i) {
    if (!end->link().Send(ShmBlob(*pool, i)).ok()) ::_exit(1);
  }
  HearFromParent();
  ::_exit(0);
}

// Dials a worker that does not answer within a second, and then once more.
[[noreturn]] void BeTurnedAway() {
  const std::string address = HearFromParent();
  auto refused = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link = Dial(address, refused, absl::Seconds(1));
  SayToParent(refused->AwaitClosed().ToString());
  HearFromParent();
  auto let_in = std::make_shared<ClientEnd>();
  link = Dial(address, let_in);
  SayToParent(let_in->AwaitOpen() ? "open" : "not opened");
  HearFromParent();
  ::_exit(0);
}

TEST(ShmChild, ObeysTheParent) {
  if (std::getenv(kChildVariable) == nullptr) GTEST_SKIP() << "this is the parent";
  const std::string role = std::getenv(kChildVariable);
  if (role == "worker") BeWorker();
  if (role == "turned away") BeTurnedAway();
  BeClient(100);
}

// --- The worker has no descriptors left ----------------------------------------------

TEST(ShmWorker, WithoutDescriptorsForAClientWaitsForThemAndSleeps) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer needs descriptors of its own, to look at what memory there is";
#endif
  Worker worker(Shm());
  Child child("turned away", kShmChild);
  {
    const DescriptorsLeft none(0);
    const absl::Duration before = CpuTime();
    child.Say(worker.address());
    EXPECT_THAT(child.Hear(), testing::HasSubstr("did not answer within 1s"));
    EXPECT_LT(CpuTime() - before, absl::Milliseconds(300));
  }
  child.Say("again");
  EXPECT_EQ(child.Hear(), "open");
}

// --- The client dies ---------------------------------------------------------------

class ShmClientDies : public testing::Test {
 protected:
  void SetUp() override { Begin("any"); }
  // `room`: how much further memory the client may map, in MiB.
  void Begin(const std::string& room) {
    child_.Say(worker_.address());
    end_ = worker_.Link(0);
    ASSERT_NE(end_, nullptr);
    child_.Say(room);
    ASSERT_TRUE(end_->AwaitGranted(100));
  }
  void Send(Index count) {
    for (Index i = 0; i < count; ++i) {
      ASSERT_TRUE(end_->link().Send(ShmBlob(*pool_, sent_++)).ok());
    }
  }
  void AwaitInChild(Index count) {
    child_.Say(std::to_string(count));
    ASSERT_EQ(child_.Hear(), std::to_string(count));
    ASSERT_TRUE(end_->AwaitReceived(count));
  }
  void ExpectBroken() { EXPECT_EQ(end_->AwaitClosed().code(), absl::StatusCode::kUnavailable); }

  std::shared_ptr<Pool> pool_ = Pool::Create();
  Worker worker_{Shm()};
  Child child_{"client", kShmChild};
  std::shared_ptr<WorkerEnd> end_;
  Index sent_ = 0;
};

TEST_F(ShmClientDies, WhileItsSlotIsFilledTheElementGoesToAnotherByOneCopy) {
  Send(3);
  AwaitInChild(3);
  std::shared_ptr<Pool> slots = end_->link().pool();
  ASSERT_NE(slots, nullptr);
  Element element = ShmBlob(*slots, 7);
  child_.Kill();
  ExpectBroken();
  end_.reset();
  EXPECT_TRUE(IsShmBlob(element, 7));  // in this process's own mapping
  slots.reset();

  auto other = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link = Dial(worker_.address(), other);
  std::shared_ptr<WorkerEnd> end = worker_.Link(1);
  ASSERT_NE(end, nullptr);
  link->Grant({1});
  ASSERT_TRUE(end->AwaitGranted(1));
  const int64_t before = BytesCopied();
  const auto bytes = static_cast<int64_t>(element.block().size());
  ASSERT_TRUE(end->link().Send(std::move(element)).ok());
  ASSERT_TRUE(other->AwaitCount(1));
  EXPECT_EQ(BytesCopied() - before, bytes);
  EXPECT_TRUE(IsShmBlob(other->TakeElements()[0], 7));
}

// --- Elements with several readers ---------------------------------------------------

// Two clients of one worker: another process, and this one.
class ShmSharedElements : public ShmClientDies {
 protected:
  void SetUp() override {}
  void Open(const std::string& room = "any") {
    Begin(room);
    link_ = Dial(worker_.address(), client_);
    here_ = worker_.Link(1);
    ASSERT_NE(here_, nullptr);
    link_->Grant({1000});
    ASSERT_TRUE(here_->AwaitGranted(1000));
  }
  // Sends one element of the shared pool to both.
  void SendToBoth() {
    const Element element = ShmBlob(*shared_, sent_++);
    ASSERT_TRUE(SharedPool::Find(element.block()).has_value());
    ASSERT_TRUE(end_->link().Send(element.Share()).ok());
    ASSERT_TRUE(here_->link().Send(element.Share()).ok());
    ++received_here_;  // now or soon
  }
  void SendHere() {
    ASSERT_TRUE(here_->link().Send(ShmBlob(*shared_, sent_++)).ok());
    ASSERT_TRUE(client_->AwaitCount(static_cast<size_t>(++received_here_)));
  }
  int64_t Lent() const {
    return shared_->counters().slots_lent - shared_->counters().slots_returned;
  }
  bool AwaitLent(int64_t count) {
    return Eventually([&] { return Lent() == count; });
  }
  bool Do(const std::string& what) {
    child_.Say(what);
    return child_.Hear() == what;
  }

  std::shared_ptr<SharedPool> shared_ = SharedPool::Create({.max_loan_bytes = 1 << 20});
  std::shared_ptr<ClientEnd> client_ = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link_;
  std::shared_ptr<WorkerEnd> here_;
  int64_t received_here_ = 0;
};

TEST_F(ShmSharedElements, AreReadWhereTheWorkerMadeThem) {
  Open();
  const int64_t before = BytesCopied();
  for (int i = 0; i < 5; ++i) SendToBoth();
  AwaitInChild(5);
  ASSERT_TRUE(client_->AwaitCount(5));
  EXPECT_EQ(BytesCopied(), before);
  EXPECT_EQ(end_->link().pool()->counters().segments_allocated, 0);  // the client's own slots
  const std::vector<Element> elements = client_->TakeElements();
  for (Index i = 0; i < 5; ++i) EXPECT_TRUE(IsShmBlob(elements[i], i));
}

TEST_F(ShmSharedElements, AReadersWritesArePrivateAndGoWithTheSlot) {
  Open();
  const Element element = ShmBlob(*shared_, sent_);
  ASSERT_TRUE(here_->link().Send(element.Share()).ok());
  ASSERT_TRUE(client_->AwaitCount(1) && here_->AwaitReceived(1));
  std::vector<Element> received = client_->TakeElements();
  std::ranges::fill(received[0].mutable_data<uint8_t>(0), uint8_t{99});
  EXPECT_TRUE(IsShmBlob(element, 0));
  received.clear();
  ASSERT_TRUE(AwaitLent(1));
  ASSERT_TRUE(here_->link().Send(element.Share()).ok());
  ASSERT_TRUE(client_->AwaitCount(2));
  EXPECT_TRUE(IsShmBlob(client_->TakeElements()[0], 0));
}

TEST_F(ShmSharedElements, ASlotIsFreeWhenEveryReaderHasReturnedIt) {
  Open();
  SendToBoth();
  AwaitInChild(1);
  ASSERT_TRUE(client_->AwaitCount(1) && here_->AwaitReceived(1));
  client_->TakeElements();
  for (int i = 0; i < 20; ++i) {
    SendHere();
    client_->TakeElements();
    ASSERT_TRUE(AwaitLent(1));  // the child's element
  }
  ASSERT_TRUE(Do("let go"));
  EXPECT_TRUE(AwaitLent(0));
  EXPECT_EQ(shared_->counters().segments_allocated, 1);
}

TEST_F(ShmSharedElements, ALeavingReaderKeepsItsElementsAndReturnsThem) {
  Open();
  SendToBoth();
  AwaitInChild(1);
  ASSERT_TRUE(Do("let go"));
  ASSERT_TRUE(client_->AwaitCount(1) && here_->AwaitReceived(1));
  std::vector<Element> kept = client_->TakeElements();
  link_.reset();
  ASSERT_TRUE(here_->AwaitClosed().ok());
  ASSERT_TRUE(AwaitLent(1));
  for (int i = 0; i < 20; ++i) ShmBlob(*shared_, 77);
  EXPECT_TRUE(IsShmBlob(kept[0], 0));
  EXPECT_EQ(Lent(), 1);
  kept.clear();
  EXPECT_TRUE(AwaitLent(0));
}

TEST_F(ShmSharedElements, AReaderThatLeftAndIsThenKilledLeavesNothing) {
  Open();
  for (int i = 0; i < 4; ++i) SendToBoth();
  AwaitInChild(4);
  ASSERT_TRUE(client_->AwaitCount(4) && here_->AwaitReceived(4));
  client_->TakeElements();
  ASSERT_TRUE(Do("leave"));
  ASSERT_TRUE(end_->AwaitClosed().ok());
  EXPECT_TRUE(AwaitLent(4));
  child_.Kill();
  EXPECT_TRUE(AwaitLent(0));
}

TEST_F(ShmSharedElements, AReaderThatIsKilledLeavesNothing) {
  Open();
  for (int i = 0; i < 4; ++i) SendToBoth();  // some in the ring, some received, some lent
  AwaitInChild(2);
  SendToBoth();
  child_.Kill();
  ExpectBroken();
  end_->ForgetUnconfirmed();
  ASSERT_TRUE(client_->AwaitCount(5) && here_->AwaitReceived(5));
  EXPECT_TRUE(AwaitLent(5));  // lent to this process
  const std::vector<Element> elements = client_->TakeElements();
  for (Index i = 0; i < 5; ++i) EXPECT_TRUE(IsShmBlob(elements[i], i));
}

TEST_F(ShmSharedElements, AStoppedReaderKeepsALittleAndHoldsUpNobody) {
  Open();
  SendToBoth();
  AwaitInChild(1);
  child_.Stop();
  for (int i = 0; i < 60; ++i) SendToBoth();
  ASSERT_TRUE(client_->AwaitCount(61) && here_->AwaitReceived(61));
  client_->TakeElements();
  ASSERT_TRUE(AwaitLent(61));  // lent to the child, or waiting in its link
  const int64_t reserved = shared_->counters().bytes_reserved;
  for (int i = 0; i < 100; ++i) {
    SendHere();
    EXPECT_TRUE(IsShmBlob(client_->TakeElements().back(), sent_ - 1));
    ASSERT_TRUE(AwaitLent(61));
  }
  EXPECT_EQ(shared_->counters().bytes_reserved, reserved);
  child_.Continue();
  AwaitInChild(61);
  EXPECT_TRUE(Eventually([&] { return Lent() <= 7; }));  // within max_loan_bytes, 1 MiB
  ASSERT_TRUE(Do("let go"));
  EXPECT_TRUE(AwaitLent(0));
}

TEST_F(ShmSharedElements, AReaderThatCannotMapThemGetsCopies) {
  std::vector<Element> held;  // makes segments large: 4, 4, 8, 16 and 32 slots and so on
  for (int i = 0; i < 500; ++i) held.push_back(ShmBlob(*shared_, 0));
  Open("48");
  testing::internal::CaptureStderr();
  const int64_t before = BytesCopied();
  SendToBoth();
  AwaitInChild(1);
  ASSERT_TRUE(client_->AwaitCount(1));
  EXPECT_EQ(BytesCopied() - before, static_cast<int64_t>(held[0].block().size()));
  EXPECT_TRUE(IsShmBlob(client_->TakeElements()[0], 0));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("shared_segment_refused"));
  EXPECT_THAT(said, testing::HasSubstr("cannot map"));
}

TEST(ShmSharedWorker, ThatIsKilledLeavesItsReadersTheirElements) {
  {
    Child worker("worker", kShmChild);
    auto client = std::make_shared<ClientEnd>();
    std::unique_ptr<ReceiveLink> link = Dial(worker.Hear(), client);
    link->Grant({3});
    ASSERT_TRUE(client->AwaitCount(3));
    worker.Kill();
    EXPECT_EQ(client->AwaitClosed().code(), absl::StatusCode::kUnavailable);
    link.reset();
    const std::vector<Element> elements = client->TakeElements();
    for (Index i = 0; i < 3; ++i) EXPECT_TRUE(IsShmBlob(elements[i], i));
    EXPECT_GT(SharedMappings(), 0);
  }
  EXPECT_TRUE(Eventually([] { return SharedMappings() == 0; }));
}

// --- In one process ----------------------------------------------------------------

class InPlace : public testing::Test {
 protected:
  void SetUp() override {
    link_ = Dial(worker_.address(), client_);
    end_ = worker_.Link(0);
    ASSERT_NE(end_, nullptr);
    link_->Grant({100});
    ASSERT_TRUE(end_->AwaitGranted(100));
    // The first element makes the client create slots.
    ASSERT_TRUE(end_->link().Send(ShmBlob(DefaultPool(), 0)).ok());
    ASSERT_TRUE(client_->AwaitCount(1));
  }

  Worker worker_{Shm()};
  std::shared_ptr<ClientEnd> client_ = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link_;
  std::shared_ptr<WorkerEnd> end_;
};

TEST_F(InPlace, AnElementMadeInTheClientsMemoryIsNotCopied) {
  const int64_t before = BytesCopied();
  for (Index i = 1; i < 20; ++i) {
    ASSERT_TRUE(end_->link().Send(ShmBlob(*end_->link().pool(), i)).ok());
    ASSERT_TRUE(client_->AwaitCount(static_cast<size_t>(i) + 1));
    ASSERT_TRUE(end_->AwaitReceived(i + 1));
    EXPECT_TRUE(IsShmBlob(client_->TakeElements().back(), i));
  }
  EXPECT_EQ(BytesCopied(), before);
}

TEST_F(InPlace, AnElementMadeElsewhereIsCopiedOnce) {
  const int64_t before = BytesCopied();
  Element element = ShmBlob(DefaultPool(), 1);
  const auto bytes = static_cast<int64_t>(element.block().size());
  ASSERT_TRUE(end_->link().Send(std::move(element)).ok());
  ASSERT_TRUE(client_->AwaitCount(2));
  EXPECT_EQ(BytesCopied() - before, bytes);
}

TEST_F(InPlace, AClientsWritesDoNotReachElementsTheWorkerReads) {
  Element element = ShmBlob(*end_->link().pool(), 1);
  const Element kept = element.Share();
  ASSERT_TRUE(end_->link().Send(std::move(element)).ok());
  ASSERT_TRUE(client_->AwaitCount(2));
  Element received = std::move(client_->TakeElements().back());
  std::ranges::fill(received.mutable_data<uint8_t>(0), uint8_t{99});
  EXPECT_TRUE(IsShmBlob(kept, 1));
}

TEST_F(InPlace, DoubtfulElementsAreRecoveredFromTheClientsMemory) {
  client_->LookAtElements([&](const Element& element) {
    if (element.identity().index == 1) link_.reset();
  });
  ASSERT_TRUE(end_->link().Send(ShmBlob(*end_->link().pool(), 1)).ok());
  for (Index i = 2; i < 5; ++i) {
    if (!end_->link().Send(ShmBlob(*end_->link().pool(), i)).ok()) break;
  }
  EXPECT_TRUE(end_->AwaitClosed().ok());
  Index expected = 2;
  for (Index index : end_->unconfirmed()) EXPECT_EQ(index, expected++);
}

TEST_F(InPlace, AForkedClientLeavesTheParentsSlotsAlone) {
  std::vector<Element> elements = client_->TakeElements();
  const pid_t child = ::fork();
  if (child == 0) {
    elements.clear();  // void here: does nothing
    link_->Grant({5});
    link_.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsShmBlob(elements[0], 0));
  ASSERT_TRUE(end_->link().Send(ShmBlob(DefaultPool(), 1)).ok());
  ASSERT_TRUE(client_->AwaitCount(2));
  EXPECT_TRUE(IsShmBlob(client_->TakeElements()[0], 1));
  EXPECT_EQ(end_->link().credits(), 98);
}

// Opens a link, sends on it, and destroys everything.
void UseALink() {
  Worker worker(Shm());
  auto client = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link = Dial(worker.address(), client);
  std::shared_ptr<WorkerEnd> end = worker.Link(0);
  link->Grant({3});
  ASSERT_TRUE(end->AwaitGranted(3));
  const std::shared_ptr<SharedPool> pool = SharedPool::Create({});
  for (Index i = 0; i < 2; ++i) ASSERT_TRUE(end->link().Send(ShmBlob(DefaultPool(), i)).ok());
  ASSERT_TRUE(end->link().Send(ShmBlob(*pool, 2)).ok());
  ASSERT_TRUE(client->AwaitCount(3));
  worker.Stop();
  ASSERT_FALSE(client->AwaitClosed().ok());
}

TEST(ShmLeaks, ManyLinksLeakNothing) {
  UseALink();
  ASSERT_TRUE(Eventually([] { return SharedMappings() == 0; }));
  const int one = Descriptors();  // of the loop, which stays, and some closing ones
  for (int i = 0; i < 10; ++i) UseALink();
  EXPECT_TRUE(Eventually([&] { return SharedMappings() == 0 && Descriptors() <= one; }));
}

}  // namespace
}  // namespace penstock::transfer
