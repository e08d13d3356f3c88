// SPDX-License-Identifier: Apache-2.0
// What is of shared memory alone: where elements lie and when they are copied,
// whose they are when a peer dies or forks, and that nothing of it is left.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/memory/copied.h"
#include "dataplane/memory/shared_segment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/child_process.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::transfer {
namespace {

constexpr int64_t kBytes = 100'000;

Transport& Shm() {
  return **FindTransport("shm");
}

Spec BlobSpec() {
  return Dense(kUInt8, {kUnknownDim});
}

Element Blob(Pool& pool, Index index) {
  const std::vector<uint8_t> values(kBytes, static_cast<uint8_t>(index));
  const int64_t dims[] = {kBytes};
  Element element = *MakeElement(pool, {Tensor(kUInt8, dims, values.data())}, BlobSpec());
  element.set_identity({.partition = PartitionId(1), .placement = Placement(1), .index = index});
  return element;
}

bool IsBlob(const Element& element, Index index) {
  const absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
  return element.identity().index == index && values.size() == static_cast<size_t>(kBytes) &&
         std::all_of(values.begin(), values.end(),
                     [&](uint8_t value) { return value == static_cast<uint8_t>(index); });
}

std::unique_ptr<ReceiveLink> Dial(const std::string& address,
                                  const std::shared_ptr<ClientEnd>& client) {
  DialOptions options;
  options.hello.token = "sesame";
  options.spec = BlobSpec();
  return *Shm().Dial(address, std::move(options), client);
}

int Descriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// Dials, grants 100, keeps what lands and says how much that is when asked.
[[noreturn]] void BeClient() {
  auto client = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link = Dial(HearFromParent(), client);
  link->Grant({100});
  while (true) {
    const size_t count = std::atoi(HearFromParent().c_str());
    if (!client->AwaitCount(count)) ::_exit(1);
    SayToParent("landed");
  }
}

TEST(ChildProcess, DoesWhatItIsTold) {
  if (std::getenv(kChildVariable) == nullptr) GTEST_SKIP() << "this is the parent";
  BeClient();
}

// --- The client dies ---------------------------------------------------------------

class ShmClientDies : public testing::Test {
 protected:
  void SetUp() override {
    child_.Say(worker_.address());
    end_ = worker_.Link(0);
    ASSERT_NE(end_, nullptr);
    ASSERT_TRUE(end_->AwaitGranted(100));
  }
  void Send(Index count) {
    for (Index i = 0; i < count; ++i) {
      ASSERT_TRUE(end_->link().Send(Blob(*pool_, sent_++)).ok());
    }
  }
  void AwaitInChild(Index count) {
    child_.Say(std::to_string(count));
    ASSERT_EQ(child_.Hear(), "landed");
    ASSERT_TRUE(end_->AwaitLanded(count));
  }
  void ExpectBroken() { EXPECT_EQ(end_->AwaitClosed().code(), absl::StatusCode::kUnavailable); }

  std::shared_ptr<Pool> pool_ = Pool::Create();
  Worker worker_{Shm()};
  Child child_{"client"};
  std::shared_ptr<WorkerEnd> end_;
  Index sent_ = 0;
};

TEST_F(ShmClientDies, WhileItsSlotIsFilledTheElementGoesToAnotherByOneCopy) {
  Send(3);
  AwaitInChild(3);
  std::shared_ptr<Pool> slots = end_->link().pool();
  ASSERT_NE(slots, nullptr);
  Element element = Blob(*slots, 7);
  child_.Kill();
  ExpectBroken();
  end_.reset();
  EXPECT_TRUE(IsBlob(element, 7));  // in this process's own mapping
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
  EXPECT_TRUE(IsBlob(other->TakeElements()[0], 7));
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
    // The first makes the slots.
    ASSERT_TRUE(end_->link().Send(Blob(DefaultPool(), 0)).ok());
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
    ASSERT_TRUE(end_->link().Send(Blob(*end_->link().pool(), i)).ok());
    ASSERT_TRUE(client_->AwaitCount(static_cast<size_t>(i) + 1));
    ASSERT_TRUE(end_->AwaitLanded(i + 1));
    EXPECT_TRUE(IsBlob(client_->TakeElements().back(), i));
  }
  EXPECT_EQ(BytesCopied(), before);
}

TEST_F(InPlace, AnElementMadeElsewhereIsCopiedOnce) {
  const int64_t before = BytesCopied();
  Element element = Blob(DefaultPool(), 1);
  const auto bytes = static_cast<int64_t>(element.block().size());
  ASSERT_TRUE(end_->link().Send(std::move(element)).ok());
  ASSERT_TRUE(client_->AwaitCount(2));
  EXPECT_EQ(BytesCopied() - before, bytes);
}

TEST_F(InPlace, WhatTheWorkerReadsTooIsNotTheClientsToWrite) {
  Element element = Blob(*end_->link().pool(), 1);
  const Element kept = element.Share();
  ASSERT_TRUE(end_->link().Send(std::move(element)).ok());
  ASSERT_TRUE(client_->AwaitCount(2));
  Element landed = std::move(client_->TakeElements().back());
  std::ranges::fill(landed.mutable_data<uint8_t>(0), uint8_t{99});
  EXPECT_TRUE(IsBlob(kept, 1));
}

TEST_F(InPlace, WhatWasInDoubtComesBackOutOfTheClientsMemory) {
  client_->LookAtElements([&](const Element& element) {
    if (element.identity().index == 1) link_.reset();
  });
  ASSERT_TRUE(end_->link().Send(Blob(*end_->link().pool(), 1)).ok());
  for (Index i = 2; i < 5; ++i) {
    if (!end_->link().Send(Blob(*end_->link().pool(), i)).ok()) break;
  }
  EXPECT_TRUE(end_->AwaitClosed().ok());
  Index expected = 2;
  for (Index index : end_->unconfirmed()) EXPECT_EQ(index, expected++);
}

TEST_F(InPlace, AForkedClientLeavesTheParentsSlotsAlone) {
  std::vector<Element> elements = client_->TakeElements();
  const pid_t child = ::fork();
  if (child == 0) {
    elements.clear();  // void: goes nowhere
    link_->Grant({5});
    link_.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsBlob(elements[0], 0));
  ASSERT_TRUE(end_->link().Send(Blob(DefaultPool(), 1)).ok());
  ASSERT_TRUE(client_->AwaitCount(2));
  EXPECT_TRUE(IsBlob(client_->TakeElements()[0], 1));
  EXPECT_EQ(end_->link().credits(), 98);
}

// Opens a link, sends on it, and lets go of everything.
void UseALink() {
  Worker worker(Shm());
  auto client = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link = Dial(worker.address(), client);
  std::shared_ptr<WorkerEnd> end = worker.Link(0);
  link->Grant({3});
  ASSERT_TRUE(end->AwaitGranted(3));
  for (Index i = 0; i < 3; ++i) ASSERT_TRUE(end->link().Send(Blob(DefaultPool(), i)).ok());
  ASSERT_TRUE(client->AwaitCount(3));
  worker.Stop();
  ASSERT_FALSE(client->AwaitClosed().ok());
}

TEST(ShmLeaks, ManyLinksLeaveNothingBehind) {
  UseALink();
  ASSERT_TRUE(BecomesTrue([] { return SharedMappings() == 0; }));
  const int one = Descriptors();  // those of the loop, which stays, and what it is about to close
  for (int i = 0; i < 10; ++i) UseALink();
  EXPECT_TRUE(BecomesTrue([&] { return SharedMappings() == 0 && Descriptors() <= one; }));
}

}  // namespace
}  // namespace penstock::transfer
