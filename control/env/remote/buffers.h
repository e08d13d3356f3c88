// SPDX-License-Identifier: Apache-2.0
// Buffers into which ranges are received. They are reused, because fresh pages for each range would
// double the cost of receiving it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "control/sync/mutex.h"

namespace penstock::remote {

// Any thread may call any method. Must outlive the buffers that it returns.
class Buffers {
 public:
  class Return {
   public:
    Return() = default;  // deletes the bytes
    explicit Return(Buffers* to) : to_(to) {}
    void operator()(char* bytes) const;

   private:
    Buffers* to_ = nullptr;
  };
  using Buffer = std::unique_ptr<char[], Return>;

  // `bytes`: the size of a range. Up to `most` unused buffers are kept.
  Buffers(size_t bytes, size_t most) : bytes_(bytes), most_(most) {}
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Returns an uninitialised buffer. It is not kept for reuse if it is larger than `bytes_`, or at
  // most half as large.
  Buffer Get(size_t bytes);

 private:
  const size_t bytes_;
  const size_t most_;
  Mutex mu_;
  std::vector<char*> free_ GUARDED_BY(mu_);
};

}  // namespace penstock::remote
