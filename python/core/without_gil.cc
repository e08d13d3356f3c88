// SPDX-License-Identifier: Apache-2.0
#include "python/core/without_gil.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace penstock::python {

namespace {

std::atomic<int> calls{0};               // under way without the GIL
std::atomic<std::thread::id> leaving{};  // the thread that ends the process

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
  --calls;
  if (MustStay()) StayForEver();
  PyEval_RestoreThread(thread_);
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
