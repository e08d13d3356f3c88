// SPDX-License-Identifier: Apache-2.0
// Jobs whose elements a NIC writes to replicas' devices: a dispatcher, workers and a trainer over a
// real UCX on tcp that pretends to support CUDA; the devices are fake.
#include <cstdlib>
#include <functional>
#include <set>

#include "dataplane/memory/heap_pool.h"
#include "dataplane/transfer/ucx/loader.h"
#include "dataplane/transfer/ucx/transport.h"
#include "tests/cluster/cluster.h"
#include "tests/dataplane/replica/replicas.h"
#include "tests/dataplane/replica/without_page_locks.h"
#include "tests/dataplane/transfer/ucx/pretended_cuda.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using transfer::ucx::Calls;
using transfer::ucx::MemoryType;
using transfer::ucx::PretendedDriver;
using transfer::ucx::PretendedFabric;

constexpr int64_t kBatch = 40'000;  // rows: elements of 320,000 bytes, which no frame takes
constexpr int64_t kRows = 40 * kBatch;

// A protocol of the given name, on a UCX of its own, which a process keeps for good.
struct Pretended {
  explicit Pretended(const std::string& protocol) {
    auto memory = std::make_shared<transfer::ucx::Memory>(fabric);
    resources = std::make_unique<transfer::ucx::Resources>(transfer::ucx::Resources{
        fabric, memory, RegisteredPool({}, memory), &PretendedFabric::now});
    EXPECT_TRUE(
        transfer::RegisterTransport(transfer::ucx::MakeTransport(protocol, [this] {
          return transfer::ucx::Ready{{.lanes = transfer::ucx::Lanes::kTcp}, resources.get()};
        })).ok());
    UseGpuDirectDriver(&driver);
  }
  Calls calls;
  PretendedFabric fabric{**transfer::ucx::OpenTheFabric(), calls};
  PretendedDriver driver{calls};
  std::unique_ptr<transfer::ucx::Resources> resources;
};

class GpuDirectJobs : public WithoutPageLocks {
 protected:
  GpuDirectJobs()
      : protocol_(
            absl::StrCat("ucx-", ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        ucx_(*new Pretended(protocol_)) {}
  ~GpuDirectJobs() override {
    UseGpuDirectDriver(nullptr);
    EXPECT_THAT(FakeGpus().Misuses(), IsEmpty());
  }

  void StartWorkers() {
    cluster_.emplace(0);
    for (int i = 0; i < 2; ++i) cluster_->AddWorker({.data_transfer_protocol = protocol_});
  }
  DistributeOptions Job(int64_t consumers = 0) {
    DistributeOptions options = cluster_->Options(ShardingPolicy::kDynamic, protocol_);
    options.data_transfer_protocol = protocol_;
    options.max_outstanding_requests = 4;
    if (consumers > 0) options.delivery = CoordinatedRounds{.num_consumers = consumers};
    return options;
  }

  struct Read {
    std::vector<Rows> rows;  // by replica, in the order they came
    std::vector<DeviceCopyStats> stats;
  };
  // Reads all. Calls `between` after each step, before its values are read.
  Read ReadAllOf(const ReplicaGroup& group, const Dataset& dataset,
                 const InputOptions& options = {},
                 const std::function<void(DistributedIterator&)>& between = nullptr) {
    Read read;
    read.rows.resize(static_cast<size_t>(group.num_local_replicas()));
    const absl::StatusOr<DistributedDataset> distributed =
        DistributeDataset(group, dataset, options);
    EXPECT_TRUE(distributed.ok()) << distributed.status();
    if (!distributed.ok()) return read;
    DistributedIterator it = distributed->PrefetchToDevice(2)->MakeIterator().value();
    while (true) {
      const absl::StatusOr<std::optional<DistributedValues>> values = it.Next();
      EXPECT_TRUE(values.ok()) << values.status();
      if (!values.ok() || !values->has_value()) break;
      if (between) between(it);
      for (size_t i = 0; i < read.rows.size(); ++i) {
        const Rows rows = RowsOnDevice((*values)->on_device(i));
        read.rows[i].insert(read.rows[i].end(), rows.begin(), rows.end());
      }
    }
    read.stats = it.CopyStats();
    return read;
  }
  // Waits until it is decided whether the NIC writes to the device. Elements received before that
  // are staged.
  static void AwaitDecision(DistributedIterator& it) {
    const auto undecided = [&] {
      for (const DeviceCopyStats& stats : it.CopyStats())
        if (stats.gpu_direct == "being tried") return true;
      return false;
    };
    EXPECT_TRUE(Eventually([&] { return !undecided(); }));
  }

  // Expects that each row came once.
  static void ExpectAllOnce(const std::vector<Rows>& parts) {
    std::vector<int8_t> times(kRows);
    for (const Rows& rows : parts) {
      for (const int64_t row : rows) ++times.at(static_cast<size_t>(row));
    }
    EXPECT_EQ(times, std::vector<int8_t>(kRows, 1));
  }

  // Expects that all rows came once, were read by one replica and were staged, and that `reason`
  // explains why.
  void ExpectStaged(const std::string& reason) {
    StartWorkers();
    const Read read = ReadAllOf(Gpus(1), Dataset::Range(kRows).Batch(kBatch).Distribute(Job()), {},
                                AwaitDecision);
    ExpectAllOnce(read.rows);
    ASSERT_EQ(read.stats.size(), 1u);
    EXPECT_EQ(read.stats[0].direct, 0);
    EXPECT_GE(read.stats[0].elements, kRows / kBatch);
    EXPECT_THAT(read.stats[0].gpu_direct, StartsWith("off: gpu_direct=off: stopped at rung "));
    EXPECT_THAT(read.stats[0].gpu_direct, HasSubstr(reason));
    EXPECT_TRUE(ucx_.fabric.cuda_memory().empty());
  }

  const std::string protocol_;
  Pretended& ucx_;  // never destroyed: protocols stay registered
  RunningGpus running_;
  std::optional<Cluster> cluster_;
};

TEST_F(GpuDirectJobs, ALoneReplicasElementsTakeNoHostSlot) {
  StartWorkers();
  int host_before = -1;
  const Read read = ReadAllOf(Gpus(1), Dataset::Range(kRows).Batch(kBatch).Distribute(Job()), {},
                              [&](DistributedIterator& it) {
                                AwaitDecision(it);
                                // Counts the elements received before the decision, which fill the
                                // window.
                                if (it.CopyStats()[0].direct > 0 && host_before < 0)
                                  host_before = ucx_.calls.Count("receive(host)");
                              });
  ExpectAllOnce(read.rows);
  ASSERT_EQ(read.stats.size(), 1u);
  EXPECT_EQ(read.stats[0].gpu_direct, "on");
  EXPECT_GT(read.stats[0].direct, 0);
  EXPECT_GE(host_before, 0);
  EXPECT_EQ(ucx_.calls.Count("receive(host)"), host_before);  // none after the decision
}

TEST_F(GpuDirectJobs, ConsumersOfACoordinatedJobHaveTheirsOnTheirOwnDevices) {
  StartWorkers();
  InputOptions options;
  options.partial_batches = PartialBatches::kEmpty;
  const Read read = ReadAllOf(Gpus(2), Dataset::Range(kRows).Batch(kBatch).Distribute(Job(2)),
                              options, AwaitDecision);
  ExpectAllOnce(read.rows);
  ASSERT_EQ(read.stats.size(), 2u);
  for (const DeviceCopyStats& stats : read.stats) {
    EXPECT_EQ(stats.gpu_direct, "on");
    EXPECT_GT(stats.direct, 0);
  }
}

TEST_F(GpuDirectJobs, AWorkerThatGoesTakesNothingWithIt) {
  StartWorkers();
  int step = 0;
  const Read read = ReadAllOf(Gpus(1), Dataset::Range(kRows).Batch(kBatch).Distribute(Job()), {},
                              [&](DistributedIterator& it) {
                                AwaitDecision(it);
                                if (++step == 10) cluster_->RemoveWorker(0);
                              });
  ExpectAllOnce(read.rows);
  EXPECT_EQ(read.stats[0].gpu_direct, "on");
}

TEST_F(GpuDirectJobs, AStateIsAfterTheReturnedStepWhereverElementsAre) {
  StartWorkers();
  DistributeOptions job = Job();
  job.ack_mode = AckMode::kOnCommit;
  job.max_outstanding_requests = 16;
  // Elements on their way to a device come after the state.
  job.delivery = DeterministicOrder();
  const DistributedDataset dataset =
      *DistributeDataset(Gpus(1), Dataset::Range(kRows).Batch(kBatch).Distribute(job))
           ->PrefetchToDevice(2);
  Rows all;
  State state;
  {
    DistributedIterator it = dataset.MakeIterator().value();
    for (int step = 0; step < 20; ++step) {
      const DistributedValues values = it.GetNext().value();
      AwaitDecision(it);
      const Rows rows = RowsOnDevice(values.on_device(0));
      all.insert(all.end(), rows.begin(), rows.end());
    }
    EXPECT_GT(it.CopyStats()[0].direct, 0);
    state = it.Save().value();
  }
  DistributedIterator it = dataset.MakeIterator().value();
  ASSERT_TRUE(it.Restore(state).ok());
  for (absl::StatusOr<std::optional<DistributedValues>> values = it.Next();
       values.ok() && values->has_value(); values = it.Next()) {
    const Rows rows = RowsOnDevice((*values)->on_device(0));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  ExpectAllOnce({all});
}

TEST_F(GpuDirectJobs, ReceivesAndFlushesThatFailLoseNothing) {
  StartWorkers();
  int step = 0;
  const Read read = ReadAllOf(Gpus(1), Dataset::Range(kRows).Batch(kBatch).Distribute(Job()), {},
                              [&](DistributedIterator& it) {
                                AwaitDecision(it);
                                if (++step == 10) ucx_.fabric.fails = 2;
                                if (step == 25) ucx_.driver.fails_behind = 0;
                              });
  ExpectAllOnce(read.rows);
  EXPECT_EQ(ucx_.fabric.fails, 0);
  EXPECT_THAT(read.stats[0].gpu_direct, StartsWith("off: the device is gone"));
  EXPECT_GT(read.stats[0].direct, 0);
  EXPECT_GT(read.stats[0].elements, 0);
}

TEST_F(GpuDirectJobs, ElementsThatTheHostReadsAreStaged) {
  StartWorkers();
  // Batches of a job that several replicas share are cut. Below, a map reads them.
  const Read shared =
      ReadAllOf(Gpus(2), Dataset::Range(kRows).Batch(kBatch).Distribute(Job()), {}, AwaitDecision);
  ExpectAllOnce(shared.rows);
  for (const DeviceCopyStats& stats : shared.stats) EXPECT_EQ(stats.gpu_direct, "not asked for");
  EXPECT_EQ(ucx_.calls.Count("receive(cuda)"), 0);
}

TEST_F(GpuDirectJobs, Rung1) {
  ucx_.fabric.cuda = false;
  ExpectStaged("1 of 7 (UCX supports CUDA): this UCX was built without CUDA");
}

TEST_F(GpuDirectJobs, Rung2) {
  ucx_.driver.facts->peer_module = false;
  ExpectStaged("2 of 7 (the driver allows it): neither nvidia_peermem nor dma-buf is available");
}

TEST_F(GpuDirectJobs, Rung4) {
  ucx_.fabric.says = MemoryType::kHost;
  ExpectStaged(
      "4 of 7 (the NIC registered the slots): UCX does not recognize the slots as CUDA memory");
}

TEST_F(GpuDirectJobs, Rung5) {
  ucx_.driver.facts->several_paths = true;
  ExpectStaged("5 of 7 (writes are seen in order): the GPU is reached over several paths");
}

TEST_F(GpuDirectJobs, Rung6) {
  ucx_.fabric.cuda_receive_takes = absl::Milliseconds(20);
  ExpectStaged("6 of 7 (it is correct and fast): ");
}

}  // namespace
}  // namespace penstock
