// SPDX-License-Identifier: Apache-2.0
// Lets an index over many objects follow their changes at the cost of the changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace penstock::control {

// The keys of the objects that changed last, in order. A value without locks.
template <class Key>
class ChangeLog {
 public:
  void Add(const Key& key) {
    if (keys_.size() == 2 * kKept) {
      keys_.erase(keys_.begin(), keys_.begin() + kKept);
      forgotten_ += kKept;
    }
    keys_.push_back(key);
  }
  // Returns the number of changes so far.
  uint64_t count() const { return forgotten_ + keys_.size(); }
  // Returns the keys of all changes but the first `seen`; a key may occur several times. Returns
  // nullopt if some of them are forgotten; then the caller looks at all objects. Valid until the
  // next change.
  std::optional<absl::Span<const Key>> After(uint64_t seen) const {
    if (seen < forgotten_ || seen > count()) return std::nullopt;
    return absl::MakeConstSpan(keys_).subspan(static_cast<size_t>(seen - forgotten_));
  }

  // Logs are not compared: the same objects may have changed in different ways.
  friend bool operator==(const ChangeLog&, const ChangeLog&) { return true; }

 private:
  // At least this many changes are remembered. More than follow from one event in a large fleet.
  static constexpr ptrdiff_t kKept = 1 << 15;

  std::vector<Key> keys_;
  uint64_t forgotten_ = 0;  // the number of changes before keys_
};

}  // namespace penstock::control
