// SPDX-License-Identifier: Apache-2.0
// Scratch memory of one thread, reused by every call.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace penstock {

// Gives out memory until it is rewound to a mark. Used on one thread.
class Arena {
 public:
  struct Mark {
    size_t chunk = 0;
    size_t used = 0;
  };

  // Returns `bytes` bytes of uninitialised memory, 64 B aligned, valid until a rewind.
  std::byte* Allocate(size_t bytes);
  template <class T>
  T* AllocateArray(size_t count) {
    return reinterpret_cast<T*>(Allocate(count * sizeof(T)));
  }

  Mark Save() const { return {current_, used_}; }
  // Frees everything that was given out since `mark`.
  void Rewind(Mark mark);

  static Arena& OfThisThread();

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte[], Free> memory;
    size_t bytes = 0;
  };
  std::vector<Chunk> chunks_;
  size_t current_ = 0;  // of chunks_
  size_t used_ = 0;     // bytes of that chunk
};

// Rewinds at the end of a scope.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.Save()) {}
  ~ArenaScope() { arena_.Rewind(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace penstock
