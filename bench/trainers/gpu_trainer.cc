// SPDX-License-Identifier: Apache-2.0
#include "bench/trainers/gpu_trainer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/measure.h"
#include "bench/trainers/trainer.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/transfer/ucx/lanes_used.h"
#include "include/status_macros.h"
#include "penstock/distributed_dataset.h"

namespace penstock::bench {
namespace {

constexpr int kStepsAhead = 2;
constexpr size_t kChecksAhead = 4;  // elements whose stamps are being copied back to the host
constexpr size_t kStampBytes = 8;

// Page-locked, because the host waits when a GPU copies to other memory.
struct alignas(4096) Page {
  std::array<std::array<uint64_t, 2>, kChecksAhead> stamps;
};

struct Check {
  std::unique_ptr<DeviceEvent> copied;
  std::optional<uint64_t> number;  // expected stamps; none: no element is being checked
};

class GpuTrainer final : public Side {
 public:
  static absl::StatusOr<std::unique_ptr<GpuTrainer>> Start(const Workload& workload,
                                                           const Setup& setup) {
    auto trainer = std::unique_ptr<GpuTrainer>(new GpuTrainer);
    RETURN_IF_ERROR(trainer->StartPass(workload, setup));
    RETURN_IF_ERROR(trainer->Read(std::min(0.3, setup.window_s)).status());
    return trainer;
  }
  ~GpuTrainer() override {
    for (const Check& check : checks_) {
      if (check.copied != nullptr) check.copied->Wait().IgnoreError();
    }
  }

  std::string name() const override { return "GPU trainer"; }
  const Roles& roles() const override { return roles_; }
  std::set<std::string> lanes() const override {
    std::set<std::string> lanes = transfer::ucx::LanesOfProcess();
    for (const DeviceCopyStats& stats : it_->CopyStats()) {
      lanes.insert(absl::StrCat("GPUDirect ", stats.gpu_direct));
    }
    return lanes;
  }

  absl::StatusOr<Done> Read(double seconds) override {
    std::vector<float> next_us;
    Done done;
    const double start = Now();
    for (double now = start; now < start + seconds; now = Now()) {
      ASSIGN_OR_RETURN(const DistributedValues values, it_->GetNext());
      next_us.push_back(static_cast<float>((Now() - now) * 1e6));
      ASSIGN_OR_RETURN(const int64_t bytes, Take(values.on_device(0)));
      done.bytes += bytes;
      ++done.elements;
    }
    for (size_t i = 0; i < kChecksAhead; ++i) RETURN_IF_ERROR(Finish(i));
    done.seconds = Now() - start;
    done.SetLatencies(next_us);
    return done;
  }

 private:
  GpuTrainer() = default;

  absl::Status StartPass(const Workload& workload, const Setup& setup) {
    ASSIGN_OR_RETURN(const ReplicaGroup group, ReplicaGroup::Mirrored({setup.device}));
    ASSIGN_OR_RETURN(DistributedDataset dataset,
                     DistributeDataset(group, Distributed(workload, setup)));
    ASSIGN_OR_RETURN(dataset, dataset.PrefetchToDevice(kStepsAhead));
    ASSIGN_OR_RETURN(DistributedIterator it, dataset.MakeIterator());
    it_.emplace(std::move(it));
    const std::vector<DeviceCopyStats> stats = it_->CopyStats();
    if (stats.empty()) return absl::InvalidArgumentError(absl::StrCat(setup.device, " is no GPU"));
    return MakeChecks(stats.front().device);
  }

  absl::Status MakeChecks(int device) {
    DeviceBackend& gpu = LinkedDeviceBackend();
    ASSIGN_OR_RETURN(locked_, gpu.page_lock().Register(
                                  {reinterpret_cast<std::byte*>(page_.get()), sizeof(Page)}));
    ASSIGN_OR_RETURN(stream_, gpu.MakeStream(device));
    for (Check& check : checks_) {
      ASSIGN_OR_RETURN(check.copied, gpu.MakeEvent(device));
    }
    return absl::OkStatus();
  }

  // Starts copying the stamps back. The element's place is free once they are read.
  absl::StatusOr<int64_t> Take(const DeviceElement& element) {
    const Tensor values = element.tensor(0);
    const size_t bytes = values.byte_count();
    if (bytes < kStampBytes) return absl::DataLossError("an element is too short for its stamps");
    const size_t at = static_cast<size_t>(taken_++) % kChecksAhead;
    RETURN_IF_ERROR(Finish(at));
    RETURN_IF_ERROR(element.ReadyOn(*stream_));
    const auto* const first = static_cast<const std::byte*>(values.raw());
    const std::byte* const last = first + bytes - kStampBytes;
    RETURN_IF_ERROR(stream_->CopyToHost(&page_->stamps[at][0], first, kStampBytes));
    RETURN_IF_ERROR(stream_->CopyToHost(&page_->stamps[at][1], last, kStampBytes));
    RETURN_IF_ERROR(element.ReadBy(*stream_));
    RETURN_IF_ERROR(stream_->Record(*checks_[at].copied));
    checks_[at].number = static_cast<uint64_t>(element.identity().index);
    return static_cast<int64_t>(bytes);
  }

  // Returns DataLoss if an element's stamps differ from its number.
  absl::Status Finish(size_t at) {
    Check& check = checks_[at];
    if (!check.number.has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(check.copied->Wait());
    const uint64_t number = *std::exchange(check.number, std::nullopt);
    if (page_->stamps[at] == std::array{number, number}) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("element ", number, " has wrong contents in the GPU"));
  }

  const Roles roles_{{"consumer", {::getpid()}}};
  std::optional<DistributedIterator> it_;
  const std::unique_ptr<Page> page_ = std::make_unique<Page>();
  std::unique_ptr<Registration> locked_;
  std::unique_ptr<DeviceStream> stream_;
  std::array<Check, kChecksAhead> checks_;
  int64_t taken_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Side>> StartGpuTrainer(const Workload& workload,
                                                      const Setup& setup) {
  return GpuTrainer::Start(workload, setup);
}

}  // namespace penstock::bench
