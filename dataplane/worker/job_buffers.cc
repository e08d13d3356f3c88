// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/job_buffers.h"

namespace penstock::worker {

std::shared_ptr<BufferBudget> JobBuffers::Of(JobId job) {
  if (bytes_ == 0) return {std::shared_ptr<void>(), &whole_};  // owned by no holder
  MutexLock lock(mu_);
  absl::erase_if(budgets_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<BufferBudget>& kept = budgets_[job];
  std::shared_ptr<BufferBudget> budget = kept.lock();
  if (budget == nullptr) {
    budget = std::make_shared<BufferBudget>(bytes_, "job_buffer_budget_bytes", whole_);
    kept = budget;
  }
  return budget;
}

}  // namespace penstock::worker
