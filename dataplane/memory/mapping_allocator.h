// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

namespace penstock {

// An allocator for buffers whose size a stranger announces. A buffer of kMappedBytes or more is a
// mapping of its own: a page uses memory only after something was written to it, and the system has
// the memory back when the buffer is freed. malloc() would keep it, by thread.
// std::vector::resize() leaves new elements as they are, so that it writes no page.
template <typename T>
struct MappingAllocator {
  static_assert(std::is_trivially_default_constructible_v<T>);
  static constexpr size_t kMappedBytes = 64 << 10;

  using value_type = T;

  MappingAllocator() = default;
  template <typename U>
  MappingAllocator(const MappingAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  // Throws std::bad_alloc, as std::allocator does.
  T* allocate(size_t n) {
    const size_t bytes = n * sizeof(T);
    if (bytes < kMappedBytes) return static_cast<T*>(::operator new(bytes));
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(at);
  }
  void deallocate(T* at, size_t n) {
    const size_t bytes = n * sizeof(T);
    bytes < kMappedBytes ? ::operator delete(at) : static_cast<void>(::munmap(at, bytes));
  }
  template <typename U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }

  friend bool operator==(const MappingAllocator&, const MappingAllocator&) { return true; }
};

}  // namespace penstock
