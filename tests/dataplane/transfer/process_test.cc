// SPDX-License-Identifier: Apache-2.0
// Worker and client in two processes, over every transport that leaves a process: what remains when
// one of them is killed while a slot is in a certain state (docs/slots.md), and what happens to
// others while one is stopped.
#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "dataplane/memory/device/device_copy_engine.h"
#include "dataplane/memory/shared_segment.h"
#include "gmock/gmock.h"
#include "tests/dataplane/memory/fake_device.h"
#include "tests/dataplane/transfer/child_process.h"
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBlobBytes = 100'000;

std::vector<std::string> ProtocolsBetweenProcesses() {
  std::vector<std::string> names = TransportsThatRun();
  std::erase(names, "local");
  return names;
}

Element Blob(Pool& pool, Index index) {
  std::vector<uint8_t> values(kBlobBytes);
  for (int64_t i = 0; i < kBlobBytes; ++i) values[i] = static_cast<uint8_t>(i * 7 + index);
  const int64_t dims[] = {kBlobBytes};
  Element element = *MakeElement(pool, {Tensor(kUInt8, dims, values.data())}, BlobSpec());
  element.set_identity(IdentityOf(index));
  return element;
}

std::unique_ptr<ReceiveLink> Dial(Transport& transport, const std::string& address,
                                  const std::shared_ptr<ClientEnd>& client) {
  DialOptions options;
  options.hello.token = "sesame";
  options.spec = BlobSpec();
  return *transport.Dial(address, std::move(options), client);
}

// --- The child -------------------------------------------------------------------------

// Listens, sends its address, and obeys: "fill" takes memory for an element and keeps it, "seal N"
// makes N elements and keeps them, "N" sends N elements. Answers each order with "done".
[[noreturn]] void BeWorker(Transport& transport) {
  Worker worker(transport);
  SayToParent(worker.address());
  std::shared_ptr<WorkerEnd> end = worker.Link(0);
  const std::shared_ptr<Pool> slots = end->link().pool();
  Pool& pool = slots != nullptr ? *slots : DefaultPool();
  Index sent = 0;
  std::vector<Loan> filling;
  std::vector<Element> sealed;
  while (true) {
    const std::string order = HearFromParent();
    if (order == "fill") {
      filling.push_back(*pool.LendBlock(192, kBlobBytes));
    } else if (order.starts_with("seal ")) {
      for (int i = std::atoi(order.c_str() + 5); i > 0; --i) sealed.push_back(Blob(pool, sent + i));
    } else {
      const Index count = std::atoi(order.c_str());
      end->AwaitGranted(sent + count);
      for (Index i = 0; i < count; ++i) {
        if (!end->link().Send(Blob(pool, sent++)).ok()) ::_exit(1);
      }
      end->link().Flush();
    }
    SayToParent("done");
  }
}

// Dials, grants 20 credits, and keeps the elements it receives. When sent a number, waits until it
// has that many and answers "whole" if their bytes are right.
[[noreturn]] void BeClient(Transport& transport) {
  auto client = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link = Dial(transport, HearFromParent(), client);
  link->Grant({20});
  std::vector<Element> held;
  while (true) {
    const size_t count = std::atoi(HearFromParent().c_str());
    if (!client->AwaitCount(count)) ::_exit(1);
    for (Element& element : client->TakeElements()) held.push_back(std::move(element));
    bool whole = held.size() >= count;
    for (size_t i = 0; i < held.size(); ++i) whole = whole && IsBlob(held[i], i, kBlobBytes);
    SayToParent(whole ? "whole" : "changed");
  }
}

TEST(ChildProcess, ObeysTheParent) {
  const char* variable = std::getenv(kChildVariable);
  if (variable == nullptr) GTEST_SKIP() << "this is the parent";
  const std::string role(variable, std::strcspn(variable, " "));
  Transport& transport = **FindTransport(variable + role.size() + 1);
  if (role == "worker") BeWorker(transport);
  BeClient(transport);
}

// --- The worker dies -------------------------------------------------------------------

class WorkerDies : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    client_ = std::make_shared<ClientEnd>();
    link_ = Dial(transport_, child_.Hear(), client_);
    ASSERT_TRUE(client_->AwaitOpen());
    link_->Grant({20});
  }
  void SendOrder(const std::string& order) {
    child_.Say(order);
    ASSERT_EQ(child_.Hear(), "done");
  }
  void ExpectBroken() { EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kUnavailable); }
  // Expects that no slot is lent once the link and all elements are destroyed.
  void ExpectNothingLeft() {
    link_.reset();
    client_->TakeElements();
    client_.reset();
    EXPECT_TRUE(Eventually([&] { return DefaultPool().counters().bytes_lent == 0; }));
    EXPECT_TRUE(Eventually([] { return CountShared().bytes_reserved == 0; }));
    EXPECT_TRUE(Eventually([] { return SharedMappings() == 0; }));
  }

  Transport& transport_ = **FindTransport(GetParam());
  Child child_{"worker " + GetParam()};
  std::shared_ptr<ClientEnd> client_;
  std::unique_ptr<ReceiveLink> link_;
};

INSTANTIATE_TEST_SUITE_P(Over, WorkerDies, testing::ValuesIn(ProtocolsBetweenProcesses()),
                         [](const auto& its) { return its.param; });

TEST_P(WorkerDies, WhileNothingIsOnItsWay) {
  child_.Kill();
  ExpectBroken();
  ExpectNothingLeft();
}

TEST_P(WorkerDies, WhileItFillsASlot) {
  SendOrder("2");
  ASSERT_TRUE(client_->AwaitCount(2));
  client_->TakeElements();
  SendOrder("fill");
  child_.Kill();
  ExpectBroken();
  EXPECT_THAT(client_->indices(), ElementsAre(0, 1));
  ExpectNothingLeft();
}

TEST_P(WorkerDies, WhileElementsAreSealed) {
  SendOrder("2");
  ASSERT_TRUE(client_->AwaitCount(2));
  client_->TakeElements();
  SendOrder("seal 3");
  child_.Kill();
  ExpectBroken();
  EXPECT_THAT(client_->indices(), ElementsAre(0, 1));
  ExpectNothingLeft();
}

TEST_P(WorkerDies, WhileElementsAreAnnounced) {
  std::atomic<bool> killed{false};
  client_->LookAtElements([&](const Element& element) {
    if (element.identity().index == 1) killed.wait(false);  // the others stay on their way
  });
  SendOrder("1");
  ASSERT_TRUE(client_->AwaitCount(1));
  SendOrder("4");
  child_.Kill();
  killed = true;
  killed.notify_all();
  ExpectBroken();
  // The received elements are here, in order, and whole.
  const std::vector<Element> elements = client_->TakeElements();
  ASSERT_GE(elements.size(), 1u);
  for (size_t i = 0; i < elements.size(); ++i) {
    EXPECT_TRUE(IsBlob(elements[i], static_cast<Index>(i), kBlobBytes));
  }
}

TEST_P(WorkerDies, WhileElementsAreLent) {
  SendOrder("5");
  ASSERT_TRUE(client_->AwaitCount(5));
  child_.Kill();
  ExpectBroken();
  link_.reset();
  std::vector<Element> elements = client_->TakeElements();
  for (Index i = 0; i < 5; ++i) EXPECT_TRUE(IsBlob(elements[i], i, kBlobBytes));
  elements.clear();
  ExpectNothingLeft();
}

TEST_P(WorkerDies, WhileSlotsAreRetiring) {
  FakeDevice device;
  const std::unique_ptr<DeviceCopyEngine> engine =
      *DeviceCopyEngine::Create(device, {.places = 3, .place_bytes = 2 * kBlobBytes});
  SendOrder("3");
  ASSERT_TRUE(client_->AwaitCount(3));
  std::vector<DeviceElement> batches;
  for (Element& element : client_->TakeElements()) {
    batches.push_back(*engine->CopyToDevice(std::move(element)));
  }
  child_.Kill();
  ExpectBroken();
  link_.reset();
  EXPECT_EQ(engine->Progress(), 3);  // the device still reads them
  device.Run();
  EXPECT_EQ(engine->Progress(), 0);
  EXPECT_THAT(device.Misuses(), IsEmpty());
  for (Index index = 0; index < 3; ++index) {  // the fake's memory is the host's
    const auto* bytes = static_cast<const uint8_t*>(batches[index].tensor(0).raw());
    bool whole = true;
    for (int64_t i = 0; i < kBlobBytes; ++i)
      whole &= bytes[i] == static_cast<uint8_t>(i * 7 + index);
    EXPECT_TRUE(whole) << index;
  }
  batches.clear();
  ExpectNothingLeft();
}

// --- The client dies, or stands still ----------------------------------------------------

class ClientDies : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    child_.Say(worker_.address());
    end_ = worker_.Link(0);
    ASSERT_NE(end_, nullptr);
    ASSERT_TRUE(end_->AwaitGranted(20));
  }
  Pool& PoolOfLink() {
    slots_ = end_->link().pool();
    return slots_ != nullptr ? *slots_ : *pool_;
  }
  void Send(Index count) {
    for (Index i = 0; i < count; ++i) {
      ASSERT_TRUE(end_->link().Send(Blob(PoolOfLink(), sent_++)).ok());
    }
    end_->link().Flush();
  }
  void AwaitInChild(Index count) {
    child_.Say(std::to_string(count));
    ASSERT_EQ(child_.Hear(), "whole");
    ASSERT_TRUE(end_->AwaitReceived(count));
  }
  void ExpectBroken() { EXPECT_EQ(end_->AwaitClosed().code(), absl::StatusCode::kUnavailable); }
  void ExpectNothingLeft() {
    end_->ForgetUnconfirmed();
    end_->LetGo();
    slots_.reset();
    worker_.Stop();
    EXPECT_TRUE(Eventually([this] { return pool_->counters().bytes_lent == 0; }));
    EXPECT_TRUE(Eventually([] { return SharedMappings() == 0; }));
  }

  Transport& transport_ = **FindTransport(GetParam());
  std::shared_ptr<Pool> pool_ = Pool::Create();
  std::shared_ptr<Pool> slots_;
  Worker worker_{transport_};
  Child child_{"client " + GetParam()};
  std::shared_ptr<WorkerEnd> end_;
  Index sent_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Over, ClientDies, testing::ValuesIn(ProtocolsBetweenProcesses()),
                         [](const auto& its) { return its.param; });

TEST_P(ClientDies, WhileNothingIsOnItsWay) {
  child_.Kill();
  ExpectBroken();
  ExpectNothingLeft();
}

TEST_P(ClientDies, WhileASlotIsFilled) {
  Send(3);
  AwaitInChild(3);
  absl::StatusOr<Loan> filling = PoolOfLink().LendBlock(192, kBlobBytes);
  ASSERT_TRUE(filling.ok()) << filling.status();
  child_.Kill();
  ExpectBroken();
  std::ranges::fill(filling->bytes(), std::byte{1});  // it writes into its own memory
  filling = absl::CancelledError("");
  ExpectNothingLeft();
}

TEST_P(ClientDies, WhileElementsAreSealed) {
  Send(3);
  AwaitInChild(3);
  std::vector<Sent> sealed;
  for (Index i = 0; i < 3; ++i) sealed.emplace_back(Blob(PoolOfLink(), i));
  child_.Kill();
  ExpectBroken();
  for (Index i = 0; i < 3; ++i) {
    EXPECT_TRUE(IsBlob(sealed[i].element, i, kBlobBytes));
    EXPECT_FALSE(end_->link().Send(std::move(sealed[i])).ok());
  }
  sealed.clear();
  ExpectNothingLeft();
}

TEST_P(ClientDies, WhileElementsAreAnnounced) {
  Send(3);
  AwaitInChild(3);
  child_.Stop();
  Send(4);
  child_.Kill();
  ExpectBroken();
  EXPECT_THAT(end_->unconfirmed(), ElementsAre(3, 4, 5, 6));
  ExpectNothingLeft();
}

TEST_P(ClientDies, WhileElementsAreLent) {
  Send(3);
  AwaitInChild(3);
  child_.Kill();
  ExpectBroken();
  EXPECT_THAT(end_->unconfirmed(), IsEmpty());
  ExpectNothingLeft();
}

TEST_P(ClientDies, AStoppedClientHoldsUpNoOther) {
  Send(3);
  AwaitInChild(3);
  child_.Stop();
  Send(17);  // everything that it requested

  auto other = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link = Dial(transport_, worker_.address(), other);
  std::shared_ptr<WorkerEnd> end = worker_.Link(1);
  ASSERT_NE(end, nullptr);
  link->Grant({50});
  ASSERT_TRUE(end->AwaitGranted(50));
  for (Index i = 0; i < 50; ++i) ASSERT_TRUE(end->link().Send(Blob(*pool_, i)).ok());
  end->link().Flush();
  ASSERT_TRUE(other->AwaitCount(50));
  ASSERT_TRUE(end->AwaitReceived(50));

  child_.Continue();
  AwaitInChild(20);  // earlier elements are unchanged too
}

}  // namespace
}  // namespace penstock::transfer
