// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/polling.h"

#include <sys/eventfd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "control/env/descriptor.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/fifo.h"
#include "gtest/gtest.h"
#include "penstock/check.h"
#include "tests/eventually.h"

namespace penstock::transfer {
namespace {

// Runs posted tasks, as a transport handles what a peer does. Post() wakes the loop only if a
// thread has announced that it sleeps.
class TaskLoop final : public EventLoop {
 public:
  static std::shared_ptr<TaskLoop> Begin() {
    auto loop = std::make_shared<TaskLoop>();
    PENSTOCK_CHECK(loop->Start("tasks").ok());
    PENSTOCK_CHECK(AddPolledLoop(loop).ok());
    return loop;
  }
  ~TaskLoop() override { End(); }
  void End() {
    RemovePolledLoop(*this);
    Stop();
  }

  // `by`: the thread that runs the task; none: any.
  void Post(std::function<void()> task, std::thread::id by = {}) {
    {
      std::lock_guard lock(mu_);
      tasks_.Push({std::move(task), by});
    }
    if (sleeps_) ::eventfd_write(wake_fd_.get(), 1);
  }
  using EventLoop::WakeAt;

  int descriptor() const override { return wake_fd_.get(); }
  bool idle() const override { return false; }

  std::atomic<Nanoseconds> deadline = kNever;
  std::atomic<int> late = 0;  // deadlines that have passed

 private:
  struct Task {
    std::function<void()> run;
    std::thread::id by;
  };
  bool Serve(Nanoseconds now, bool descriptors) override {
    PENSTOCK_CHECK(!serving_.exchange(true));
    eventfd_t wakeups;
    if (descriptors) [[maybe_unused]]
      const int read = ::eventfd_read(wake_fd_.get(), &wakeups);
    if (now >= deadline) {
      deadline = kNever;
      ++late;
    }
    bool found = false;
    for (Task task = Take(); task.run; task = Take()) {
      task.run();
      found = true;
    }
    serving_ = false;
    return found;
  }
  void SetSleeps(bool sleeps) override { sleeps_ = sleeps; }
  Nanoseconds NextDeadline() override { return deadline; }

  Task Take() {
    std::lock_guard lock(mu_);
    if (tasks_.empty()) return {};
    const std::thread::id by = tasks_.front().by;
    if (by != std::thread::id() && by != std::this_thread::get_id()) return {};
    return tasks_.Pop();
  }

  const Descriptor wake_fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  std::atomic<bool> sleeps_{false};
  std::atomic<bool> serving_{false};
  std::mutex mu_;
  Fifo<Task> tasks_;  // guarded by mu_
};

// A flag that a thread waits for.
struct Flag {
  void Set() {
    {
      MutexLock lock(mu);
      set = true;
    }
    changed.NotifyAll();
  }
  void Await() {
    MutexLock lock(mu);
    while (!set) changed.WaitFor(lock, std::chrono::seconds(1));
    set = false;
  }
  void AwaitPassive() {
    MutexLock lock(mu);
    while (!set) changed.WaitPassive(lock);
    set = false;
  }
  Mutex mu;
  PollingCondition changed;
  bool set = false;  // guarded by mu
};

TEST(Polling, WaitingThreadRunsPendingWork) {
  auto loop = TaskLoop::Begin();
  Flag flag;
  for (int i = 0; i < 100; ++i) {
    loop->Post([&] { flag.Set(); }, std::this_thread::get_id());
    flag.Await();
  }
  loop->End();
}

TEST(Polling, TheLoopsOwnThreadWorksWhileNobodyPolls) {
  auto loop = TaskLoop::Begin();
  Flag flag;
  for (int i = 0; i < 20; ++i) {
    if (i % 5 == 0) PollTransports();  // a thread polled once, and never again
    loop->Post([&] { flag.Set(); });
    flag.AwaitPassive();
  }
  loop->End();
}

TEST(Polling, PollingRunsPendingWork) {
  auto loop = TaskLoop::Begin();
  std::atomic<bool> done = false;
  loop->Post([&] { done = true; }, std::this_thread::get_id());
  EXPECT_TRUE(Eventually([&] {
    PollTransports();  // the loop's own thread may be first
    return done.load();
  }));
  loop->End();
}

TEST(Polling, ADeadlineComesWhileOthersPoll) {
  auto loop = TaskLoop::Begin();
  loop->deadline = EventLoop::Now();
  loop->WakeAt(loop->deadline);
  EXPECT_TRUE(Eventually([&] {
    PollTransports();
    return loop->late > 0;
  }));
  loop->deadline = EventLoop::Now() + 1'000'000;
  loop->WakeAt(loop->deadline);
  EXPECT_TRUE(Eventually([&] { return loop->late > 1; }));
  loop->End();
}

TEST(Polling, AnotherThreadIsNotified) {
  auto loop = TaskLoop::Begin();
  Flag mine, other;
  std::thread waits([&] {
    for (int i = 0; i < 1000; ++i) {
      other.Await();
      loop->Post([&] { mine.Set(); });
    }
  });
  for (int i = 0; i < 1000; ++i) {
    loop->Post([&] { other.Set(); });
    mine.Await();
  }
  waits.join();
  loop->End();
}

TEST(Polling, AnotherWaiterTakesOverFromALeavingOne) {
  auto loop = TaskLoop::Begin();
  Flag first, second;
  std::atomic<bool> waits = false;
  std::thread goes([&] {
    loop->Post(
        [&] {
          EXPECT_TRUE(Eventually([&] { return waits.load(); }));
          first.Set();
        },
        std::this_thread::get_id());
    first.Await();
  });
  std::thread stays([&] {
    waits = true;
    loop->Post([&] { second.Set(); }, std::this_thread::get_id());
    second.Await();
  });
  goes.join();
  stays.join();
  loop->End();
}

TEST(Polling, ManyThreadsWaitAtOneCondition) {
  auto loop = TaskLoop::Begin();
  constexpr int kThreads = 4;
  Mutex mu;
  PollingCondition changed;
  int tickets = 0;  // guarded by mu
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        loop->Post([&] {
          {
            MutexLock lock(mu);
            ++tickets;
          }
          changed.NotifyAll();
        });
        MutexLock lock(mu);
        while (tickets == 0) changed.WaitFor(lock, std::chrono::seconds(1));
        --tickets;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tickets, 0);
  loop->End();
}

TEST(Polling, WaitsWithoutAnyLoop) {
  Flag flag;
  std::thread sets([&] { flag.Set(); });
  flag.Await();
  sets.join();
}

TEST(Polling, AnEndedLoopIsReleased) {
  auto stays = TaskLoop::Begin();
  auto ends = TaskLoop::Begin();
  const std::weak_ptr<TaskLoop> gone = ends;
  Flag flag;
  std::atomic<bool> leads = false;
  std::thread waits([&] {
    stays->Post([&] { leads = true; }, std::this_thread::get_id());
    flag.Await();
  });
  EXPECT_TRUE(Eventually([&] { return leads.load(); }));
  ends->End();
  ends.reset();
  flag.Set();
  waits.join();
  EXPECT_TRUE(gone.expired());
  stays->End();
}

}  // namespace
}  // namespace penstock::transfer
