// SPDX-License-Identifier: Apache-2.0
// The objects that all partitions of a worker share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "control/env/files.h"
#include "control/protocol/worker_messages.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/read_ahead.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/dataset/transforms/map/thread_pool.h"
#include "dataplane/memory/buffer_budget.h"
#include "dataplane/memory/pool.h"
#include "dataplane/worker/budget.h"
#include "dataplane/worker/dataset_cache.h"
#include "dataplane/worker/file_access.h"
#include "dataplane/worker/per_job.h"
#include "dataplane/worker/permits.h"
#include "dataplane/worker/shared_slots.h"

namespace penstock::worker {

struct WorkerContextOptions {
  int permits = 1;
  int threads = 0;                          // threads of parallel nodes; 0: one per core
  int job_threads = 0;                      // threads of a pool for one job; 0: the process's pool
  int64_t budget_bytes = 256 << 20;         // for all elements in transit to clients
  int64_t ram_budget_bytes = 0;             // for read-ahead (read_ahead.h); 0: the process's limit
  int64_t buffer_budget_bytes = 256 << 20;  // for elements that transforms keep
  int64_t job_buffer_budget_bytes = 0;      // of them, for one job; 0: all
  int64_t window_bytes = 256 << 20;         // for each window that trainers share
  SharedSlots shared_slots;
  std::shared_ptr<PythonHost> python;  // nullptr: the process's own
  Files* files = nullptr;              // the files that datasets read; nullptr: those of `access`
  std::shared_ptr<const FileAccess> access;  // nullptr: all files of this user
  DatasetCache::Fetch fetch;
  std::function<absl::Time()> now;  // the clock by which bookmarks are due
};

// Thread-safe. Every runner shares the ownership, so that a runner that cannot be interrupted,
// because a user's function does not return, may end after the worker.
class WorkerContext {
 public:
  // Sends a message to the dispatcher; must not wait.
  using Reporter = std::function<void(control::WorkerUp)>;

  explicit WorkerContext(WorkerContextOptions options)
      : permits(options.permits),
        definitions(std::move(options.fetch)),
        threads(options.threads),
        window_bytes(options.window_bytes),
        shared_slots(options.shared_slots),
        python(std::move(options.python)),
        access(options.access == nullptr ? std::make_shared<const FileAccess>()
                                         : std::move(options.access)),
        files(options.files == nullptr ? access->files() : *options.files),
        now(std::move(options.now)),
        pool(Pool::Create()),
        budget(std::make_shared<Budget>(options.budget_bytes)),
        buffers(options.buffer_budget_bytes),
        job_buffers([this, bytes = options.job_buffer_budget_bytes] {
          if (bytes == 0) return std::shared_ptr<BufferBudget>(std::shared_ptr<void>(), &buffers);
          return std::make_shared<BufferBudget>(bytes, "job_buffer_budget_bytes", buffers);
        }),
        job_threads([threads = options.job_threads]() -> std::shared_ptr<ThreadPool> {
          return threads == 0 ? nullptr : std::make_shared<ThreadPool>(threads);
        }) {
    if (options.ram_budget_bytes > 0) read_ahead.emplace(options.ram_budget_bytes);
  }

  Permits permits;
  DatasetCache definitions;
  const int threads;
  const int64_t window_bytes;
  const SharedSlots shared_slots;
  const std::shared_ptr<PythonHost> python;  // runs the Python parts of datasets
  const std::shared_ptr<const FileAccess> access;
  Files& files;
  const std::function<absl::Time()> now;
  const std::shared_ptr<Pool> pool;
  const std::shared_ptr<Budget> budget;
  BufferBudget buffers;
  PerJob<BufferBudget> job_buffers;  // `buffers` itself if jobs have no limits of their own
  PerJob<ThreadPool> job_threads;    // nullptr: the process's pool
  // The shortest time between two bookmarks of one partition, as the dispatcher wants it.
  std::atomic<int64_t> bookmark_interval_ns = 0;
  std::optional<ReadAheadBudget> read_ahead;  // never replaced; its contents change

  // Sets the function that Say() calls from now on; nullptr: none. Once this has returned, the
  // previous function is no longer called.
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
