// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/parallel_for.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "control/sync/start_thread.h"

namespace penstock::replica {

absl::Status ParallelFor(int count, const std::function<absl::Status(int)>& fn) {
  std::vector<absl::Status> results(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  enum class Go { kNotYet, kAll, kNone };
  std::atomic<Go> go{Go::kNotYet};  // calls may wait for each other: run all or none
  absl::Status status;
  for (int i = 1; i < count && status.ok(); ++i) {
    absl::StatusOr<std::thread> thread = StartThread("replicas side by side", [&, i] {
      go.wait(Go::kNotYet);
      if (go == Go::kAll) results[static_cast<size_t>(i)] = fn(i);
    });
    status = thread.status();
    if (thread.ok()) threads.push_back(*std::move(thread));
  }
  go = status.ok() ? Go::kAll : Go::kNone;
  go.notify_all();
  if (count > 0 && status.ok()) results[0] = fn(0);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) status.Update(result);
  return status;
}

}  // namespace penstock::replica
