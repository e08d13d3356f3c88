// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace penstock {
namespace {

std::atomic<uint64_t> forks{0};

}  // namespace

uint64_t ForkCount() {
  static const int noticed = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)noticed;
  return forks.load(std::memory_order_relaxed);
}

}  // namespace penstock
