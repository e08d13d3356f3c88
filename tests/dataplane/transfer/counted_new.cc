// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/transfer/counted_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> allocations{0};
thread_local int64_t allocations_here = 0;

void Count() {
  allocations.fetch_add(1, std::memory_order_relaxed);
  ++allocations_here;
}
}  // namespace

namespace penstock::transfer {
int64_t Allocations() {
  return allocations.load();
}
int64_t AllocationsOfThisThread() {
  return allocations_here;
}
}  // namespace penstock::transfer

void* operator new(std::size_t bytes) {
  Count();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  Count();
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<std::size_t>(alignment), bytes) != 0) {
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
