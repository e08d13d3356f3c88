// SPDX-License-Identifier: Apache-2.0
// Worker and client in two processes: what is left when one of them is killed
// while a slot is in a certain state, and when a client forks.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/memory/copied.h"
#include "dataplane/memory/shared_segment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock::transfer {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kBytes = 100'000;
constexpr char kChildVariable[] = "PENSTOCK_SHM_TEST_CHILD";

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

// Mappings of shared segments in this process.
int Mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("memfd:penstock") != std::string::npos;
  }
  return count;
}

int Descriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// The loop lets go of a link a moment after its end. False after a bound that only
// a broken program reaches.
bool BecomesTrue(const std::function<bool()>& condition) {
  const auto bound = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > bound) return false;
    std::this_thread::yield();
  }
  return true;
}

// This program again, as the other side: its standard input and output are pipes.
class Child {
 public:
  explicit Child(const std::string& role) {
    int to[2];
    int from[2];
    EXPECT_EQ(::pipe2(to, O_CLOEXEC) | ::pipe2(from, O_CLOEXEC), 0);
    const std::string variable = std::string(kChildVariable) + "=" + role;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      ::putenv(const_cast<char*>(variable.c_str()));
      ::execl("/proc/self/exe", "child", "--gtest_filter=ShmChild.*", "--gtest_brief=1", nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
  }
  ~Child() {
    Kill();
    std::fclose(to_);
    std::fclose(from_);
  }

  // The rest of the child's next line that begins with '>'.
  std::string Hear() {
    char line[4096];
    while (std::fgets(line, sizeof(line), from_) != nullptr) {
      if (line[0] == '>') return std::string(line + 1, std::strcspn(line + 1, "\n"));
    }
    return "gone";
  }
  void Say(const std::string& line) {
    std::fprintf(to_, "%s\n", line.c_str());
    std::fflush(to_);
  }
  void Stop() {
    ::kill(pid_, SIGSTOP);
    int status;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

void SayToParent(const std::string& line) {
  std::printf("\n>%s\n", line.c_str());
  std::fflush(stdout);
}

std::string HearFromParent() {
  char line[4096];
  if (std::fgets(line, sizeof(line), stdin) == nullptr) ::_exit(0);
  return std::string(line, std::strcspn(line, "\n"));
}

// Listens, says where, then sends as many elements as it is told, and says so.
[[noreturn]] void BeWorker() {
  Worker worker(Shm());
  SayToParent(worker.address());
  std::shared_ptr<WorkerEnd> end = worker.Link(0);
  Index sent = 0;
  Loan filling;
  while (true) {
    const std::string order = HearFromParent();
    if (order == "fill") {
      filling = *end->link().pool()->LendBlock(192, kBytes);
    } else {
      const Index count = std::atoi(order.c_str());
      end->AwaitGranted(sent + count);
      for (Index i = 0; i < count; ++i) {
        if (!end->link().Send(Blob(DefaultPool(), sent++)).ok()) ::_exit(1);
      }
    }
    SayToParent("done");
  }
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

TEST(ShmChild, DoesWhatItIsTold) {
  const char* role = std::getenv(kChildVariable);
  if (role == nullptr) GTEST_SKIP() << "this is the parent";
  if (std::string(role) == "worker") BeWorker();
  BeClient();
}

// --- The worker dies ---------------------------------------------------------------

class WorkerDies : public testing::Test {
 protected:
  void SetUp() override {
    client_ = std::make_shared<ClientEnd>();
    link_ = Dial(child_.Hear(), client_);
    ASSERT_TRUE(client_->AwaitOpen());
    link_->Grant({100});
  }
  void Tell(const std::string& order) {
    child_.Say(order);
    ASSERT_EQ(child_.Hear(), "done");
  }
  void ExpectBroken() { EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kUnavailable); }
  // When the link and all elements are let go of, no slot is left.
  void ExpectNothingLeft() {
    link_.reset();
    client_->TakeElements();
    client_.reset();
    EXPECT_TRUE(BecomesTrue([] { return CountShared().bytes_reserved == 0; }));
    EXPECT_TRUE(BecomesTrue([] { return Mappings() == 0; }));
  }

  Child child_{"worker"};
  std::shared_ptr<ClientEnd> client_;
  std::unique_ptr<ReceiveLink> link_;
};

TEST_F(WorkerDies, WhileNothingIsOnItsWay) {
  child_.Kill();
  ExpectBroken();
  ExpectNothingLeft();
}

TEST_F(WorkerDies, WhileItFillsASlot) {
  Tell("2");
  ASSERT_TRUE(client_->AwaitCount(2));
  client_->TakeElements();
  Tell("fill");
  child_.Kill();
  ExpectBroken();
  EXPECT_THAT(client_->indices(), ElementsAre(0, 1));
  ExpectNothingLeft();
}

TEST_F(WorkerDies, WhileElementsAreAnnounced) {
  std::atomic<bool> killed{false};
  client_->LookAtElements([&](const Element& element) {
    if (element.identity().index == 1) killed.wait(false);  // the others stay in the ring
  });
  Tell("1");
  ASSERT_TRUE(client_->AwaitCount(1));
  Tell("4");
  child_.Kill();
  killed = true;
  killed.notify_all();
  ExpectBroken();
  // Those that found a slot are here, in order, and whole.
  const std::vector<Element> elements = client_->TakeElements();
  ASSERT_GE(elements.size(), 2u);
  for (size_t i = 0; i < elements.size(); ++i) {
    EXPECT_TRUE(IsBlob(elements[i], static_cast<Index>(i)));
  }
}

TEST_F(WorkerDies, WhileElementsAreLent) {
  Tell("5");
  ASSERT_TRUE(client_->AwaitCount(5));
  child_.Kill();
  ExpectBroken();
  link_.reset();
  std::vector<Element> elements = client_->TakeElements();
  for (Index i = 0; i < 5; ++i) EXPECT_TRUE(IsBlob(elements[i], i));
  EXPECT_GT(CountShared().bytes_reserved, 0);
  elements.clear();
  ExpectNothingLeft();
}

// --- The client dies ---------------------------------------------------------------

class ClientDies : public testing::Test {
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

TEST_F(ClientDies, WhileElementsAreLent) {
  Send(3);
  AwaitInChild(3);
  child_.Kill();
  ExpectBroken();
  EXPECT_THAT(end_->unconfirmed(), testing::IsEmpty());
  end_->LetGo();
  worker_.Stop();
  EXPECT_EQ(pool_->counters().bytes_lent, 0);
  EXPECT_TRUE(BecomesTrue([] { return Mappings() == 0; }));
}

TEST_F(ClientDies, WhileElementsAreAnnounced) {
  Send(3);
  AwaitInChild(3);
  child_.Stop();
  Send(4);
  child_.Kill();
  ExpectBroken();
  EXPECT_THAT(end_->unconfirmed(), ElementsAre(3, 4, 5, 6));
}

TEST_F(ClientDies, WhileItsSlotIsFilledTheElementGoesToAnotherByOneCopy) {
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
  ASSERT_TRUE(BecomesTrue([] { return Mappings() == 0; }));
  const int one = Descriptors();  // those of the loop, which stays, and what it is about to close
  for (int i = 0; i < 10; ++i) UseALink();
  EXPECT_TRUE(BecomesTrue([&] { return Mappings() == 0 && Descriptors() <= one; }));
}

}  // namespace
}  // namespace penstock::transfer
