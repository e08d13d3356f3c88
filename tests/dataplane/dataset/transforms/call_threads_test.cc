// SPDX-License-Identifier: Apache-2.0
// The threads on which parallel nodes make their calls.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/transforms/map/thread_pool.h"
#include "include/status_macros.h"
#include "penstock/dataset.h"
#include "penstock/expr.h"
#include "penstock/register.h"

namespace penstock {
namespace {

// The threads that have made a call. The reader's thread waits in its calls until another thread
// has made one.
struct Callers {
  explicit Callers(std::thread::id reader) : reader(reader) {}
  void Called() {
    const std::thread::id caller = std::this_thread::get_id();
    if (caller == reader) return another.wait();
    std::lock_guard lock(mu);
    if (others.insert(caller).second && others.size() == 1) another.count_down();
  }

  const std::thread::id reader;
  std::latch another{1};
  std::mutex mu;
  std::set<std::thread::id> others;  // guarded by mu
};
std::atomic<Callers*> callers = nullptr;

absl::Status NoteTheThread(CallContext& call) {
  callers.load()->Called();
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = call.inputs()[0].scalar<int64_t>();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("test.note_the_thread", 1, Scalar(kInt64), NoteTheThread);

std::thread::id OnlyThreadOf(ThreadPool& pool) {
  std::thread::id only;
  std::latch known(1);
  pool.Post([&] {
    only = std::this_thread::get_id();
    known.count_down();
  });
  known.wait();
  return only;
}

void ReadsWith(ThreadPool& pool, const Dataset& dataset, int64_t elements) {
  Callers now(std::this_thread::get_id());
  callers = &now;
  {
    RunContext run;
    run.calls = &pool;
    std::unique_ptr<NodeIterator> iterator = BuildIterator(dataset, run).value();
    for (int64_t i = 0; i < elements; ++i) EXPECT_TRUE(iterator->Next().value().has_value());
    EXPECT_FALSE(iterator->Next().value().has_value());
  }
  EXPECT_EQ(now.others, std::set<std::thread::id>{OnlyThreadOf(pool)});
}

TEST(CallThreads, AreThoseOfTheRunAlone) {
  const Dataset mapped = Dataset::Range(100).Map(
      [](Expr x) { return Call("test.note_the_thread", x); }, {.num_parallel_calls = 4});
  ThreadPool first(1);
  ThreadPool second(1);
  ReadsWith(first, mapped, 100);
  ReadsWith(second, mapped, 100);
  ReadsWith(second, mapped.Batch(10), 10);  // a Map into batches
}

}  // namespace
}  // namespace penstock
