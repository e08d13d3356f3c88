// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/parallel_for.h"

#include <optional>
#include <utility>
#include <vector>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::replica {

absl::Status ParallelFor(int count, const std::function<absl::Status(int)>& fn) {
  std::vector<absl::Status> results(static_cast<size_t>(count));
  std::vector<Thread> threads;
  threads.reserve(results.size());
  struct {
    Mutex mu;
    Condition decided;
    std::optional<bool> go GUARDED_BY(mu);
  } all;  // calls may wait for each other, so either all run or none
  absl::Status status;
  for (int i = 1; i < count && status.ok(); ++i) {
    absl::StatusOr<Thread> thread = StartThread("replicas side by side", [&, i] {
      MutexLock lock(all.mu);
      all.decided.Wait(lock, [&]() REQUIRES(all.mu) { return all.go.has_value(); });
      const bool go = *all.go;
      lock.unlock();
      if (go) results[static_cast<size_t>(i)] = fn(i);
    });
    status = thread.status();
    if (thread.ok()) threads.push_back(*std::move(thread));
  }
  {
    MutexLock lock(all.mu);
    all.go = status.ok();
  }
  all.decided.NotifyAll();
  if (count > 0 && status.ok()) results[0] = fn(0);
  for (Thread& thread : threads) thread.join();
  for (const absl::Status& result : results) status.Update(result);
  return status;
}

}  // namespace penstock::replica
