// SPDX-License-Identifier: Apache-2.0
// Memory that ranges are received into, kept for the next ones: pages that are
// fresh each time cost as much again as receiving.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "control/sync/mutex.h"

namespace penstock::remote {

// Any thread. Outlives what it gives.
class Buffers {
 public:
  class Return {
   public:
    Return() = default;  // to nobody
    explicit Return(Buffers* to) : to_(to) {}
    void operator()(char* bytes) const;

   private:
    Buffers* to_ = nullptr;
  };
  using Buffer = std::unique_ptr<char[], Return>;

  // Ranges have `bytes`; up to `most` buffers that are not in use are kept.
  Buffers(size_t bytes, size_t most) : bytes_(bytes), most_(most) {}
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Not initialised. What is far smaller than a range, or larger, is not kept.
  Buffer Get(size_t bytes);

 private:
  const size_t bytes_;
  const size_t most_;
  Mutex mu_;
  std::vector<char*> free_ GUARDED_BY(mu_);
};

}  // namespace penstock::remote
