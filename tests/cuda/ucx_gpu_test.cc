// SPDX-License-Identifier: Apache-2.0
// Needs a real GPU and a UCX that supports CUDA: UCX receives bodies into the GPU's memory. The
// lanes are tcp, so that UCX itself writes them there; over RDMA a NIC would. The test driver
// claims to allow that, and with the test's clock both ways take the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/memory/device/gpu_direct_pool.h"
#include "dataplane/memory/heap_pool.h"
#include "dataplane/transfer/ucx/loader.h"
#include "dataplane/transfer/ucx/transport.h"
#include "tests/dataplane/memory/device_conformance.h"
#include "tests/dataplane/transfer/ends.h"
#include "tests/eventually.h"

namespace penstock::transfer::ucx {
namespace {

class AllowingDriver final : public GpuDirectDriver {
 public:
  absl::StatusOr<GpuDirectFacts> Ask(int) override {
    return GpuDirectFacts{.rdma_supported = true,
                          .peer_module = true,
                          .ordering = GpuDirectFacts::Ordering::kAllDevices};
  }
  absl::Status FlushWrites(int) override { return absl::OkStatus(); }
};

// Advances by the same step at each call.
absl::Time Now() {
  thread_local absl::Time now = absl::UnixEpoch();
  return now += absl::Nanoseconds(1);
}

class UcxToGpu : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if (!gpu_.Count().ok() && DeviceRequired()) FAIL() << DescribeDevices(gpu_);
    if (!gpu_.Count().ok()) GTEST_SKIP() << DescribeDevices(gpu_);
    stream_ = gpu_.MakeStream(0).value();  // UCX looks for a GPU in use when it is opened
    const absl::StatusOr<Fabric*> fabric = OpenTheFabric();
    if (!fabric.ok()) GTEST_SKIP() << fabric.status();
    if (!(*fabric)->knows_cuda()) GTEST_SKIP() << "this UCX knows no CUDA";
    auto memory = std::make_shared<Memory>(**fabric);
    resources_ =
        std::make_unique<Resources>(Resources{**fabric, memory, RegisteredPool({}, memory), &Now});
    ucx_ = MakeTransport("ucx-to-gpu", [this] {
      return Ready{{.lanes = Lanes::kTcp}, resources_.get()};
    });
    worker_ = std::make_unique<penstock::transfer::Worker>(*ucx_);
    gpu_pool_ = std::make_unique<GpuDirectPool>(gpu_, driver_, GpuDirectPoolOptions{.places = 3});
    DialOptions options{.spec = ValuesSpec(), .pool = gpu_pool_.get()};
    options.hello.token = "sesame";
    link_ = ucx_->Dial(worker_->address(), options, events_).value();
    end_ = worker_->Link(0);
    ASSERT_NE(end_, nullptr);
    ASSERT_TRUE(events_->AwaitOpen());
  }
  void TearDown() override {
    link_.reset();
    end_.reset();
    worker_.reset();
    ucx_.reset();
    gpu_pool_.reset();
  }

  Spec ValuesSpec() { return Spec(Dense(kInt64, {GetParam()})); }
  std::vector<int64_t> Values(int64_t index) {
    std::vector<int64_t> values(static_cast<size_t>(GetParam()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = index * GetParam() + static_cast<int64_t>(i);
    return values;
  }
  // Sends the element of that number and returns it as received.
  Element Pass(int64_t index) {
    link_->Grant({1});
    EXPECT_TRUE(end_->AwaitGranted(++passed_));
    const int64_t dims[] = {GetParam()};
    Element element =
        MakeElement(*resources_->pool, {Tensor(kInt64, dims, Values(index).data())}, ValuesSpec())
            .value();
    element.set_identity({.partition = PartitionId(1), .placement = Placement(1), .index = index});
    EXPECT_TRUE(end_->link().Send(std::move(element)).ok());
    end_->link().Flush();
    EXPECT_TRUE(events_->AwaitCount(static_cast<size_t>(passed_)));
    return std::move(events_->TakeElements().at(0));
  }
  std::vector<int64_t> Read(const DeviceElement& element) {
    std::vector<int64_t> values(static_cast<size_t>(GetParam()));
    const auto read = gpu_.MakeEvent(0).value();
    EXPECT_TRUE(element.ReadyOn(*stream_).ok());
    EXPECT_TRUE(
        stream_->CopyToHost(values.data(), element.tensor(0).raw(), values.size() * 8).ok());
    EXPECT_TRUE(element.ReadBy(*stream_).ok());
    EXPECT_TRUE(stream_->Record(*read).ok());
    EXPECT_TRUE(read->Wait().ok());
    return values;
  }

  DeviceBackend& gpu_ = LinkedDeviceBackend();
  AllowingDriver driver_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Resources> resources_;
  std::unique_ptr<Transport> ucx_;
  std::unique_ptr<penstock::transfer::Worker> worker_;
  std::unique_ptr<GpuDirectPool> gpu_pool_;
  std::shared_ptr<ClientEnd> events_ = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link_;
  std::shared_ptr<WorkerEnd> end_;
  int64_t passed_ = 0;
};

TEST_P(UcxToGpu, BodiesLieThereAsTheyWereSent) {
  int64_t index = 0;
  ASSERT_TRUE(Eventually([&] {
    Pass(index++);
    return gpu_pool_->state() != "not asked for";
  }));
  ASSERT_TRUE(Eventually([&] { return gpu_pool_->state() != "being tried"; }));
  ASSERT_EQ(gpu_pool_->state(), "on");
  for (int i = 0; i < 100; ++i, ++index) {
    Element element = Pass(index);
    const DeviceElement on_device = gpu_pool_->Take(element);
    ASSERT_TRUE(on_device) << "element " << index << " lies in host memory";
    element = Element();
    EXPECT_EQ(gpu_.KindOf(on_device.tensor(0).raw()).value(), MemoryKind::kDevice);
    ASSERT_EQ(Read(on_device), Values(index));
  }
  EXPECT_EQ(gpu_pool_->state(), "on");
}

INSTANTIATE_TEST_SUITE_P(Of, UcxToGpu, testing::Values(20'000, 131'072, 1'200'000),
                         [](const auto& values) {
                           return std::to_string(values.param) + "_values";
                         });

}  // namespace
}  // namespace penstock::transfer::ucx
