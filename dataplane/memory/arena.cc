// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/arena.h"

#include <algorithm>
#include <new>

namespace penstock {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kFirstChunk = 64 << 10;
// Larger chunks are freed when nothing uses them, so that one large image does not keep its memory
// in every thread.
constexpr size_t kLargestKept = 32 << 20;

}  // namespace

void Arena::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t(kAlignment));
}

std::byte* Arena::Allocate(size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  while (current_ < chunks_.size() && chunks_[current_].bytes - used_ < bytes) {
    ++current_;
    used_ = 0;
  }
  if (current_ == chunks_.size()) {
    size_t size = std::max(bytes, chunks_.empty() ? kFirstChunk : 2 * chunks_.back().bytes);
    if (bytes < kLargestKept) size = std::min(size, kLargestKept);
    auto* memory = new (std::align_val_t(kAlignment)) std::byte[size];
    chunks_.push_back({std::unique_ptr<std::byte[], Free>(memory), size});
    used_ = 0;
  }
  std::byte* result = chunks_[current_].memory.get() + used_;
  used_ += bytes;
  return result;
}

void Arena::Rewind(Mark mark) {
  current_ = mark.chunk;
  used_ = mark.used;
  while (chunks_.size() > current_ + 1 && chunks_.back().bytes > kLargestKept) chunks_.pop_back();
  if (current_ == 0 && used_ == 0 && chunks_.size() == 1 && chunks_[0].bytes > kLargestKept)
    chunks_.clear();
}

Arena& Arena::OfThisThread() {
  thread_local Arena arena;
  return arena;
}

}  // namespace penstock
