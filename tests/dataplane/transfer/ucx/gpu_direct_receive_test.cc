// SPDX-License-Identifier: Apache-2.0
// Bodies of elements that go from a link straight into a GPU's memory. UCX is real, over tcp lanes,
// and pretends to support CUDA; the GPU is a fake device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "dataplane/memory/device/page_locking.h"
#include "dataplane/memory/heap_pool.h"
#include "dataplane/transfer/ucx/loader.h"
#include "dataplane/transfer/ucx/transport.h"
#include "tests/dataplane/memory/fake_device.h"
#include "tests/dataplane/transfer/ends.h"
#include "tests/dataplane/transfer/ucx/pretended_cuda.h"

namespace penstock::transfer::ucx {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kValues = 20'000;  // in an element: 160,000 bytes
constexpr size_t kPlaces = 3;

Spec ValuesSpec() {
  return Spec::Dict({{"values", TensorSpec{kInt64, {kValues}}}, {"word", TensorSpec{kString, {}}}});
}

class GpuDirectReceive : public testing::Test {
 protected:
  GpuDirectReceive() {
    here_memory_ = std::make_shared<Memory>(fabric_);
    there_memory_ = std::make_shared<Memory>(real_);
    here_ = std::make_unique<Resources>(
        Resources{fabric_, here_memory_, RegisteredPool({}, here_memory_), &PretendedFabric::now});
    there_ = std::make_unique<Resources>(
        Resources{real_, there_memory_, RegisteredPool({}, there_memory_)});
    client_ = MakeTransport("client", [this] { return Ready{kTcp, here_.get()}; });
    server_ = MakeTransport("server", [this] { return Ready{kTcp, there_.get()}; });
    worker_ = std::make_unique<penstock::transfer::Worker>(*server_);
  }
  ~GpuDirectReceive() override {
    Hang();
    worker_.reset();
    client_.reset();
    server_.reset();
    gpu_pool_.reset();
    EXPECT_THAT(device_.Misuses(), testing::IsEmpty());
    EXPECT_EQ(fabric_.without_context, 0);
  }

  void MakeGpuPool() {
    gpu_pool_ = std::make_unique<GpuDirectPool>(
        device_, driver_, GpuDirectPoolOptions{.device = 0, .places = static_cast<int>(kPlaces)});
  }
  // Dials a new link; sets its end at the worker.
  void Dial(Pool* pool) {
    Hang();
    events_ = std::make_shared<ClientEnd>();
    DialOptions options{.spec = ValuesSpec(), .pool = pool};
    options.hello.token = "sesame";
    link_ = client_->Dial(worker_->address(), options, events_).value();
    end_ = worker_->Link(links_++);
    ASSERT_NE(end_, nullptr);
    ASSERT_TRUE(events_->AwaitOpen());
  }
  void Hang() {
    link_.reset();
    end_.reset();
    events_.reset();
  }
  // Sends element number `index` to the client.
  void Send(int64_t index) {
    link_->Grant({1});
    ASSERT_TRUE(end_->AwaitGranted(++granted_));
    Element element = NumbersFrom(index);
    ASSERT_TRUE(end_->link().Send(std::move(element)).ok());
    end_->link().Flush();
  }
  Element NumbersFrom(int64_t index) {
    std::vector<int64_t> values(kValues);
    for (int64_t i = 0; i < kValues; ++i) values[static_cast<size_t>(i)] = index * kValues + i;
    const int64_t dims[] = {kValues};
    const uint64_t offsets[] = {0, 4};
    const Tensor tensors[] = {
        Tensor(kInt64, dims, reinterpret_cast<const std::byte*>(values.data())),
        Tensor(kString, {}, reinterpret_cast<const std::byte*>(offsets), "word")};
    Element element = MakeElement(*there_->pool, tensors, ValuesSpec()).value();
    element.set_identity({.partition = PartitionId(1), .placement = Placement(1), .index = index});
    return element;
  }
  // Sends until elements go to the device, or it is certain that they never will.
  void SendUntilDecided() {
    for (int64_t index = 1000; gpu_pool_->state() == "not asked for"; ++index) {
      Send(index);
      ASSERT_TRUE(events_->AwaitCount(static_cast<size_t>(index) - 999));
    }
    ASSERT_TRUE(Eventually([&] { return gpu_pool_->state() != "being tried"; }));
    events_->TakeElements();
  }
  std::vector<int64_t> ValuesOn(const DeviceElement& element) {
    std::vector<int64_t> values(kValues);
    // The fake device's memory is the host's.
    std::memcpy(values.data(), element["values"].raw(), kValues * sizeof(int64_t));
    return values;
  }
  std::vector<int64_t> ValuesOf(const Element& element) {
    const absl::Span<const int64_t> values = element["values"].data<int64_t>();
    return {values.begin(), values.end()};
  }

  static constexpr Settings kTcp{.lanes = Lanes::kTcp};
  Calls calls_;
  FakeDevice device_;
  Fabric& real_ = **OpenTheFabric();
  PretendedFabric fabric_{real_, calls_};
  PretendedDriver driver_{calls_};
  std::shared_ptr<Memory> here_memory_, there_memory_;
  std::unique_ptr<Resources> here_, there_;
  std::unique_ptr<Transport> client_, server_;
  std::unique_ptr<GpuDirectPool> gpu_pool_;
  std::unique_ptr<penstock::transfer::Worker> worker_;
  std::shared_ptr<ClientEnd> events_;
  std::unique_ptr<ReceiveLink> link_;
  std::shared_ptr<WorkerEnd> end_;
  size_t links_ = 0;
  int64_t granted_ = 0;
};

// The device itself then copies staged elements.
TEST_F(GpuDirectReceive, SlotsOfTheHostArePageLockedAsWellOnceADeviceIsNamed) {
  FakeDevice device;
  device.SayUnused();
  PageLocking locking(PageLockMode::kAuto, device, SilentEventLog());
  {
    const std::shared_ptr<Pool> pool = RegisteredPool({}, std::make_shared<Memory>(real_, locking));
    Loan before = pool->Lend(1 << 20).value();
    EXPECT_EQ(device.KindOf(before.bytes().data()).value(), MemoryKind::kHost);
    locking.UseDevice(0);
    Loan after = pool->Lend(2 << 20).value();
    for (Loan* const loan : {&before, &after}) {
      EXPECT_EQ(device.KindOf(loan->bytes().data()).value(), MemoryKind::kPageLocked);
    }
  }
  EXPECT_EQ(device.page_locked_bytes(), 0);
  EXPECT_THAT(device.Misuses(), testing::IsEmpty());
}

TEST_F(GpuDirectReceive, BodiesGoToTheGpuAndAreFlushedBeforeTheyAreHandedOver) {
  MakeGpuPool();
  Dial(gpu_pool_.get());
  SendUntilDecided();
  ASSERT_EQ(gpu_pool_->state(), "on");
  const int64_t lent = here_->pool->counters().slots_lent;
  calls_.Clear();
  events_->LookAtElements([&](const Element&) { calls_.Add("hand over"); });
  const size_t before = events_->indices().size();
  for (int64_t index = 0; index < 10; ++index) {
    Send(index);
    ASSERT_TRUE(events_->AwaitCount(before + static_cast<size_t>(index) + 1));
    std::vector<Element> elements = events_->TakeElements();
    ASSERT_EQ(elements.size(), 1u);
    DeviceElement on_device = gpu_pool_->Take(elements[0]);
    ASSERT_TRUE(on_device);
    EXPECT_EQ(on_device.identity().index, index);
    EXPECT_EQ(on_device["word"].ToString(), NumbersFrom(index)["word"].ToString());
    EXPECT_EQ(ValuesOn(on_device), ValuesOf(NumbersFrom(index)));
    EXPECT_EQ(device_.KindOf(on_device["values"].raw()).value(), MemoryKind::kDevice);
  }
  const std::vector<std::string> calls = calls_.all();
  ASSERT_EQ(calls.size(), 40u) << testing::PrintToString(calls);
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(
        std::vector(calls.begin() + 4 * i, calls.begin() + 4 * i + 4),
        ElementsAre("receive(cuda)", "received(cuda)", "cuFlushGPUDirectRDMAWrites", "hand over"));
  }
  EXPECT_THAT(calls_.all(), Not(Contains("receive(host)")));
  EXPECT_EQ(here_->pool->counters().slots_lent, lent);  // none on the host
}

TEST_F(GpuDirectReceive, ElementsWithoutAPlaceAreStagedAndPlacesComeBack) {
  MakeGpuPool();
  Dial(gpu_pool_.get());
  SendUntilDecided();
  const size_t before = events_->indices().size();
  for (int64_t index = 0; index < 5; ++index) Send(index);
  ASSERT_TRUE(events_->AwaitCount(before + 5));
  std::vector<Element> elements = events_->TakeElements();
  for (size_t i = 0; i < 5; ++i) {
    DeviceElement on_device = gpu_pool_->Take(elements[i]);
    EXPECT_EQ(static_cast<bool>(on_device), i < kPlaces) << i;
    const auto expected = ValuesOf(NumbersFrom(static_cast<int64_t>(i)));
    EXPECT_EQ(on_device ? ValuesOn(on_device) : ValuesOf(elements[i]), expected);
  }
  elements.clear();
  Send(5);
  ASSERT_TRUE(events_->AwaitCount(before + 6));
  EXPECT_TRUE(gpu_pool_->Take(events_->TakeElements()[0]));
}

TEST_F(GpuDirectReceive, APlaceStaysUntilItsReadersAreDone) {
  MakeGpuPool();
  Dial(gpu_pool_.get());
  SendUntilDecided();
  const auto stream = device_.MakeStream(0).value();
  std::vector<int64_t> read(kValues);
  const size_t before = events_->indices().size();
  for (size_t i = 0; i < kPlaces; ++i) {
    Send(static_cast<int64_t>(i));
    ASSERT_TRUE(events_->AwaitCount(before + i + 1));
    const DeviceElement on_device = gpu_pool_->Take(events_->TakeElements()[0]);
    ASSERT_TRUE(on_device);
    ASSERT_TRUE(on_device.ReadyOn(*stream).ok());
    ASSERT_TRUE(
        stream->CopyToHost(read.data(), on_device["values"].raw(), kValues * sizeof(int64_t)).ok());
    ASSERT_TRUE(on_device.ReadBy(*stream).ok());
  }
  Send(100);  // all places are still being read
  ASSERT_TRUE(events_->AwaitCount(before + kPlaces + 1));
  EXPECT_FALSE(gpu_pool_->Take(events_->TakeElements()[0]));
  device_.Run();
  EXPECT_EQ(read, ValuesOf(NumbersFrom(kPlaces - 1)));
  Send(101);
  ASSERT_TRUE(events_->AwaitCount(before + kPlaces + 2));
  EXPECT_TRUE(gpu_pool_->Take(events_->TakeElements()[0]));
}

TEST_F(GpuDirectReceive, ALinkThatIsNotAskedForTwoPiecesGetsOne) {
  Dial(nullptr);
  Send(7);
  ASSERT_TRUE(events_->AwaitCount(1));
  EXPECT_EQ(ValuesOf(events_->TakeElements()[0]), ValuesOf(NumbersFrom(7)));
  EXPECT_THAT(calls_.all(), ElementsAre("receive(host)"));
}

TEST_F(GpuDirectReceive, AFlushThatFailsHandsNothingOverAndTheNextLinkIsStaged) {
  MakeGpuPool();
  Dial(gpu_pool_.get());
  SendUntilDecided();
  ASSERT_EQ(gpu_pool_->state(), "on");
  const size_t before = events_->indices().size();
  driver_.fails_behind = 0;
  Send(0);
  EXPECT_THAT(std::string(events_->AwaitClosed().message()), HasSubstr("the device is gone"));
  EXPECT_EQ(events_->indices().size(), before);
  EXPECT_THAT(gpu_pool_->state(), HasSubstr("off: the device is gone; data that a NIC wrote"));
  granted_ = 0;
  Dial(gpu_pool_.get());
  Send(0);
  ASSERT_TRUE(events_->AwaitCount(1));
  const std::vector<Element> elements = events_->TakeElements();
  EXPECT_FALSE(gpu_pool_->Take(elements[0]));
  EXPECT_EQ(ValuesOf(elements[0]), ValuesOf(NumbersFrom(0)));
}

TEST_F(GpuDirectReceive, ReceivesUnderWayCountAsOneFailure) {
  MakeGpuPool();
  Dial(gpu_pool_.get());
  SendUntilDecided();
  ASSERT_EQ(gpu_pool_->state(), "on");
  link_->Grant({static_cast<int64_t>(kPlaces)});
  ASSERT_TRUE(end_->AwaitGranted(granted_ += kPlaces));
  fabric_.stay = kPlaces - 1;
  fabric_.fails = 1;
  for (size_t i = 0; i < kPlaces; ++i) ASSERT_TRUE(end_->link().Send(NumbersFrom(0)).ok());
  end_->link().Flush();
  EXPECT_FALSE(events_->AwaitClosed().ok());
  EXPECT_EQ(gpu_pool_->state(), "on");
}

TEST_F(GpuDirectReceive, ReceivesThatFailInARowEndIt) {
  MakeGpuPool();
  for (int failed = 0; failed < 3; ++failed) {
    granted_ = 0;
    Dial(gpu_pool_.get());
    if (failed == 0) SendUntilDecided();
    ASSERT_EQ(gpu_pool_->state(), "on");
    fabric_.fails = 1;
    Send(0);
    EXPECT_FALSE(events_->AwaitClosed().ok());
  }
  EXPECT_THAT(gpu_pool_->state(), HasSubstr("off: 3 receives into the GPU failed in a row"));
  EXPECT_THAT(gpu_pool_->state(), HasSubstr("local protection error"));
  granted_ = 0;
  Dial(gpu_pool_.get());
  Send(0);
  ASSERT_TRUE(events_->AwaitCount(1));
  EXPECT_EQ(ValuesOf(events_->TakeElements()[0]), ValuesOf(NumbersFrom(0)));
}

TEST_F(GpuDirectReceive, PlacesOutliveThePoolAndAreThenGivenBack) {
  MakeGpuPool();
  Dial(gpu_pool_.get());
  SendUntilDecided();
  const size_t before = events_->indices().size();
  Send(3);
  ASSERT_TRUE(events_->AwaitCount(before + 1));
  std::vector<Element> elements = events_->TakeElements();
  DeviceElement on_device = gpu_pool_->Take(elements[0]);
  elements.clear();
  Hang();
  gpu_pool_.reset();
  EXPECT_EQ(fabric_.cuda_memory().size(), 1u);
  EXPECT_EQ(ValuesOn(on_device), ValuesOf(NumbersFrom(3)));
  on_device = DeviceElement();
  EXPECT_TRUE(Eventually([&] { return fabric_.cuda_memory().empty(); }));
}

}  // namespace
}  // namespace penstock::transfer::ucx
