// SPDX-License-Identifier: Apache-2.0
// Limits the elements that the transforms of one job keep on a worker (job_buffer_budget_bytes).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/buffer_budget.h"
#include "penstock/ids.h"

namespace penstock::worker {

// The budgets of the jobs that have partitions here. Thread-safe.
class JobBuffers {
 public:
  // `whole`: of all jobs together; must outlive all budgets. `bytes`: of one job; 0: the whole.
  JobBuffers(BufferBudget& whole, int64_t bytes) : whole_(whole), bytes_(bytes) {}

  // Returns the job's budget, which all that hold it share.
  std::shared_ptr<BufferBudget> Of(JobId job);

 private:
  BufferBudget& whole_;
  const int64_t bytes_;
  Mutex mu_;
  absl::flat_hash_map<JobId, std::weak_ptr<BufferBudget>> budgets_ GUARDED_BY(mu_);
};

}  // namespace penstock::worker
