// SPDX-License-Identifier: Apache-2.0
// Memory into which ranges are received, kept for the next ranges. Fresh pages for each range would
// double the cost of receiving it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "control/sync/mutex.h"

namespace penstock::remote {

// Any thread. Must outlive the buffers that it returns.
class Buffers {
 public:
  class Return {
   public:
    Return() = default;  // deletes them
    explicit Return(Buffers* to) : to_(to) {}
    void operator()(char* bytes) const;

   private:
    Buffers* to_ = nullptr;
  };
  using Buffer = std::unique_ptr<char[], Return>;

  // Ranges have `bytes`; up to `most` unused buffers are kept.
  Buffers(size_t bytes, size_t most) : bytes_(bytes), most_(most) {}
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Not initialised. A buffer of more than `bytes_`, or of at most half of it, is not kept.
  Buffer Get(size_t bytes);

 private:
  const size_t bytes_;
  const size_t most_;
  Mutex mu_;
  std::vector<char*> free_ GUARDED_BY(mu_);
};

}  // namespace penstock::remote
