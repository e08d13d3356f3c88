// SPDX-License-Identifier: Apache-2.0
// Objects that all partitions of a job on a worker share, such as a limit on their memory.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "control/sync/mutex.h"
#include "penstock/ids.h"

namespace penstock::worker {

// One object for each job that has partitions here. Thread-safe.
template <class T>
class PerJob {
 public:
  using Make = std::function<std::shared_ptr<T>()>;

  // `make`: called for each job; may return nullptr.
  explicit PerJob(Make make) : make_(std::move(make)) {}

  // Returns the job's object. All that hold it at the same time share it.
  std::shared_ptr<T> Of(JobId job) {
    MutexLock lock(mu_);
    absl::erase_if(of_, [](const auto& entry) { return entry.second.expired(); });
    std::shared_ptr<T> its = of_[job].lock();
    if (its == nullptr) of_[job] = its = make_();
    return its;
  }

 private:
  const Make make_;
  Mutex mu_;
  absl::flat_hash_map<JobId, std::weak_ptr<T>> of_ GUARDED_BY(mu_);
};

}  // namespace penstock::worker
