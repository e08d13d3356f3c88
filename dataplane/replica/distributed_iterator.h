// SPDX-License-Identifier: Apache-2.0
// An iterator over the steps of all pipelines of this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "dataplane/replica/copy_completion_thread.h"
#include "dataplane/replica/device_prefetch.h"
#include "dataplane/replica/input_plan.h"
#include "dataplane/replica/pipeline.h"
#include "penstock/distributed_dataset.h"
#include "penstock/step_aligner.h"

namespace penstock::replica {

class StepIterator final : public DistributedIteratorImpl {
 public:
  // Starts a new pass.
  static absl::StatusOr<std::unique_ptr<StepIterator>> Start(
      std::shared_ptr<const DistributedDataset::Plan> plan);

  absl::StatusOr<std::optional<DistributedValues>> Next() override;
  absl::Status CheckStep(int64_t step) const override;
  absl::StatusOr<State> Save() override;
  absl::Status Restore(const State& state) override;
  absl::Status Commit(const State& state) override;
  absl::Status Stop(absl::Duration bound) override;
  std::vector<DeviceCopyStats> CopyStats() const override;

 private:
  // The fields before the pipelines' positions in a state.
  struct Head {
    uint64_t seed = 0;
    int64_t pass = 0;
    int64_t step = 0;
    bool over = false;
  };

  StepIterator(std::shared_ptr<const DistributedDataset::Plan> plan, uint64_t seed, int64_t pass)
      : plan_(std::move(plan)), seed_(seed), pass_(pass) {}

  // Calls `fn` for all pipelines in parallel.
  absl::Status Each(const std::function<absl::Status(size_t)>& fn) const;
  // Checks that all processes read the same data in the same way. Called before the first step,
  // including the first step after a Restore().
  absl::Status Meet();
  absl::Status MeetOthers();  // makes aligner_ if plan_->aligned
  // Drops the agreements on steps that this process and others made before a Restore().
  void LeaveOthers();
  // Calls `wait`, which waits for the other processes; returns Cancelled once Stop() has been
  // called.
  absl::Status AwaitOthers(absl::FunctionRef<absl::Status()> wait);
  // Ends the wait of AwaitOthers(), in all processes.
  void AbandonOthers();
  absl::StatusOr<std::optional<DistributedValues>> Step();
  // Returns true if the next step is to be made. `any`, `all`: whether there is data for some, or
  // all, local replicas.
  absl::StatusOr<bool> GoesOn(bool any, bool all);
  absl::Status Map(std::vector<Element>& elements) const;
  // Adds a handle on each element for every replica that shares the element.
  void ShareOut(std::vector<Element>& elements, std::vector<std::vector<float>>& weights) const;
  // Returns the elements on their way to the devices, for the replicas whose values go to a device.
  absl::StatusOr<std::vector<DeviceElement>> CopyToDevices(std::vector<Element>& elements) const;
  absl::StatusOr<Head> ReadHead(StateReader& reader) const;
  absl::Status RestorePipelines(StateReader& reader);

  const std::shared_ptr<const DistributedDataset::Plan> plan_;
  uint64_t seed_;
  int64_t pass_;
  std::shared_ptr<const DevicePrefetchQueues> queues_;  // nullptr: no values go to devices
  std::unique_ptr<CopyCompletionThread> progress_;      // for the queues
  Pool* output_pool_ = &DefaultPool();                  // for elements that go to devices
  std::vector<std::unique_ptr<Pipeline>> pipelines_;    // constant after Start()
  std::optional<StepAligner> aligner_;                  // if plan_->aligned, from Meet() on
  std::atomic<bool> has_aligner_ = false;               // for AbandonOthers(), on any thread
  int64_t unanswered_ = 0;  // steps started on aligner_ but not finished
  bool met_ = false;
  std::stop_source stop_;
  int64_t step_ = 0;
  bool over_ = false;
  absl::Status restore_failed_;  // the error of a Restore() that left pipelines at different steps
};

}  // namespace penstock::replica
