// SPDX-License-Identifier: Apache-2.0
#include "python/core/without_gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace penstock::python {

namespace {

std::atomic<int> calls{0};               // running without the GIL, or acquiring it
std::atomic<std::thread::id> leaving{};  // the thread that ends the process

// A forked child does not have the threads that these count.
[[maybe_unused]] const int forgotten_in_children = pthread_atfork(nullptr, nullptr, [] {
  calls = 0;
  leaving = std::thread::id();
});

bool MustStay() {
  const std::thread::id thread = leaving;
  return thread != std::thread::id() && thread != std::this_thread::get_id();
}

[[noreturn]] void StayForEver() {
  while (true) ::pause();
}

}  // namespace

WithoutGil::WithoutGil() {
  ++calls;
  thread_ = PyEval_SaveThread();
}

WithoutGil::~WithoutGil() {
  if (MustStay()) {
    --calls;
    StayForEver();
  }
  PyEval_RestoreThread(thread_);
  --calls;  // only now; until then the leaving thread waits without the GIL
}

void BeginToLeave() {
  leaving = std::this_thread::get_id();
}

void AwaitOthers() {
  PyThreadState* const thread = PyEval_SaveThread();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (calls > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  PyEval_RestoreThread(thread);
}

void StayAwayIfLeaving() {
  if (!MustStay()) return;
  PyEval_SaveThread();
  StayForEver();
}

}  // namespace penstock::python
