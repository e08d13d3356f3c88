// SPDX-License-Identifier: Apache-2.0
// What all partitions of a worker share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "control/env/files.h"
#include "control/protocol/session_messages.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/python_host.h"
#include "dataplane/dataset/read_ahead.h"
#include "dataplane/memory/pool.h"
#include "dataplane/worker/budget.h"
#include "dataplane/worker/dataset_cache.h"
#include "dataplane/worker/permits.h"
#include "dataplane/worker/shared_slots.h"

namespace penstock::worker {

struct WorkerContextOptions {
  int permits = 1;
  int threads = 0;                   // of parallel nodes; 0: one per core
  int64_t budget_bytes = 256 << 20;  // of elements on their way to clients
  int64_t ram_budget_bytes = 0;      // of read-ahead (read_ahead.h); 0: within the process's
  int64_t window_bytes = 256 << 20;  // of each window that trainers share
  SharedSlots shared_slots;
  std::shared_ptr<PythonHost> python;  // nullptr: the process's
  Files* files = nullptr;              // what datasets read; nullptr: DefaultFiles()
  DatasetCache::Fetch fetch;
  std::function<absl::Time()> now;  // for bookmarks
};

// Thread-safe. Shared by every runner, so that one that cannot be interrupted
// (a user's function that does not return) may end after the worker has.
class WorkerContext {
 public:
  // Says something to the dispatcher; must not wait.
  using Reporter = std::function<void(control::WorkerUp)>;

  explicit WorkerContext(WorkerContextOptions options)
      : permits(options.permits),
        definitions(std::move(options.fetch)),
        threads(options.threads),
        window_bytes(options.window_bytes),
        shared_slots(options.shared_slots),
        python(std::move(options.python)),
        files(options.files == nullptr ? DefaultFiles() : *options.files),
        now(std::move(options.now)),
        pool(Pool::Create()),
        budget(std::make_shared<Budget>(options.budget_bytes)) {
    if (options.ram_budget_bytes > 0) read_ahead.emplace(options.ram_budget_bytes);
  }

  Permits permits;
  DatasetCache definitions;
  const int threads;
  const int64_t window_bytes;
  const SharedSlots shared_slots;
  const std::shared_ptr<PythonHost> python;  // runs what datasets bring along in Python
  Files& files;
  const std::function<absl::Time()> now;
  const std::shared_ptr<Pool> pool;
  const std::shared_ptr<Budget> budget;
  std::optional<ReadAheadBudget> read_ahead;  // constant but for what is in it

  // To whom Say() speaks from now on; nullptr: to nobody. When it returns, the
  // one before is not being called and will not be.
  void SetReporter(Reporter reporter) {
    MutexLock lock(mu_);
    reporter_ = std::move(reporter);
  }
  void Say(control::WorkerUp message) {
    MutexLock lock(mu_);
    if (reporter_) reporter_(std::move(message));
  }

 private:
  Mutex mu_;
  Reporter reporter_ GUARDED_BY(mu_);
};

}  // namespace penstock::worker
