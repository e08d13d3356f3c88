// SPDX-License-Identifier: Apache-2.0
// A queue that reuses its memory: unlike std::deque, it allocates nothing in a steady state.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "penstock/check.h"

#pragma GCC visibility push(default)
namespace penstock::transfer {

// Not thread-safe. T is default-constructible and movable.
template <class T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // Returns element `i`, counted from the front. REQUIRES: i < size().
  T& operator[](size_t i) { return ring_[(begin_ + i) & (ring_.size() - 1)]; }
  const T& operator[](size_t i) const { return ring_[(begin_ + i) & (ring_.size() - 1)]; }
  T& front() { return (*this)[0]; }

  void Push(T value) {
    if (size_ == ring_.size()) Grow();
    ++size_;
    (*this)[size_ - 1] = std::move(value);
  }
  T Pop() {
    PENSTOCK_CHECK(size_ > 0);
    T value = std::exchange(ring_[begin_], T());
    begin_ = (begin_ + 1) & (ring_.size() - 1);
    --size_;
    return value;
  }

 private:
  void Grow() {
    std::vector<T> larger(ring_.empty() ? 8 : ring_.size() * 2);  // a power of two, for the mask
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    ring_ = std::move(larger);
    begin_ = 0;
  }

  std::vector<T> ring_;
  size_t begin_ = 0;
  size_t size_ = 0;
};

}  // namespace penstock::transfer
#pragma GCC visibility pop
