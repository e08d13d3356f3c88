// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/buffers.h"

#include "control/sync/mutex.h"

namespace penstock::remote {

void Buffers::Return::operator()(char* bytes) const {
  if (to_ != nullptr) {
    MutexLock lock(to_->mu_);
    if (to_->free_.size() < to_->most_) {
      to_->free_.push_back(bytes);
      return;
    }
  }
  delete[] bytes;
}

Buffers::~Buffers() {
  for (char* bytes : free_) delete[] bytes;
}

Buffers::Buffer Buffers::Get(size_t bytes) {
  if (bytes > bytes_ || bytes <= bytes_ / 2) return Buffer(new char[bytes]);
  {
    MutexLock lock(mu_);
    if (!free_.empty()) {
      Buffer kept(free_.back(), Return(this));
      free_.pop_back();
      return kept;
    }
  }
  return Buffer(new char[bytes_], Return(this));
}

}  // namespace penstock::remote
