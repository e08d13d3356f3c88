// SPDX-License-Identifier: Apache-2.0
// The input of a node that reads ahead of its output. PositionedInput remembers the input's
// position from time to time. A position after any element that is not released can therefore be
// saved as a remembered position and a number of elements to skip.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/engine/pending_deliveries.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/memory/catch_exhausted.h"

namespace penstock {

// Returns whether `status` ends reading. Other errors take the place of an element.
inline bool EndsReading(const absl::Status& status) {
  return absl::IsCancelled(status) || IsExhausted(status);
}

// The number of elements between two remembered positions. The number is smaller where each element
// represents many others or much work, and larger where skipping is cheap.
inline constexpr int64_t kRememberOften = 16;
inline constexpr int64_t kRemember = 64;
inline constexpr int64_t kRememberSeldom = 1024;

// Elements are counted from 0 in the input's order. An error that takes the place of an element
// counts as one. One thread at a time, except for SaveBehind(), Release() and Gave…().
class PositionedInput {
 public:
  // kElements: the node still holds elements after the Next() call that read them has returned. It
  // then calls Gave…() when its output includes them.
  enum class Holds : bool { kNothing, kElements };

  // Remembers a position every `every` elements. After a restore, the number of elements that are
  // read again is less than `every` plus the number of elements that had not been released, plus a
  // thirtieth of that number if the positions' states take 16 MiB.
  PositionedInput(std::unique_ptr<NodeIterator> input, int64_t every, Holds holds = Holds::kNothing)
      : input_(std::move(input)), every_(every), holds_(holds), stride_(every) {}

  absl::StatusOr<std::optional<Element>> Next();
  absl::StatusOr<bool> NextInto(ResultSink& sink);
  absl::StatusOr<bool> NextViews(ElementViews& views);
  absl::StatusOr<int64_t> Skip(int64_t count);

  // Skips to element `n`, for a restore, and remembers positions that are due. DataLoss if `n` is
  // before the current position, or if the input ends before `n`.
  absl::Status PassTo(int64_t n);

  // Remembers the current position if it is due; the first position always is. Next…() and Skip()
  // do this themselves.
  void Remember();

  int64_t pulled() const { return pulled_; }  // elements read or skipped so far
  // Promises that no position below `n` is saved from now on. Any thread.
  void Release(int64_t n);

  // Report which elements the node's current output was made from: element `number`; all elements
  // below `n`; all elements up to the end of the input. Called on the thread that returns the
  // output. An element that is part of several outputs counts with the first.
  void Gave(int64_t number);
  void GaveBelow(int64_t n);
  void GaveEnd() { GaveBelow(std::numeric_limits<int64_t>::max()); }

  // Saves the position after the first `n` elements. The saved position starts from the same state
  // of the input as earlier saves, or from a later one. REQUIRES: released ≤ n ≤ pulled().
  absl::Status Save(StateWriter& writer, int64_t n);
  // Does the same, but uses only remembered positions, because another thread may be in Next().
  absl::Status SaveBehind(StateWriter& writer, int64_t n);
  // Restores a saved position; pulled() is then the `n` that was passed to Save(). REQUIRES: newly
  // built.
  absl::Status Restore(StateReader& reader);

 private:
  struct Remembered {
    int64_t at;                                          // elements read or skipped
    absl::StatusOr<StateWriter> state;                   // of the input, or its error
    std::vector<StateWriter::WhenPartOf> attached = {};  // to `state`
    int64_t bytes() const;
  };
  // Runs `read`, which reads from the input, and keeps the deliveries that are pending for the
  // result.
  template <class Read>
  auto Reading(Read read);
  Remembered Here(uint64_t save_number = 0) const;
  // Remembers the current position, unless it is remembered already.
  void RememberHere();
  // Remembers `here`, in place of a position at the same element.
  void Keep(Remembered here);
  // Doubles the distance between positions and forgets those that are closer, but not the one from
  // which the last saved state starts.
  void Thin() REQUIRES(mu_);
  static absl::Status Write(StateWriter& writer, int64_t n, const Remembered& from);

  std::unique_ptr<NodeIterator> input_;
  const int64_t every_;
  const Holds holds_;
  int64_t pulled_ = 0;
  int64_t remember_at_ = 0;  // value of pulled_ at which the next position is due
  bool exact_ = true;        // the input is exactly after element pulled_ - 1

  Mutex mu_;
  std::deque<Remembered> remembered_ GUARDED_BY(mu_);                        // ascending
  int64_t state_bytes_ GUARDED_BY(mu_) = 0;                                  // of remembered_
  int64_t stride_ GUARDED_BY(mu_);                                           // every_ or more
  int64_t saved_at_ GUARDED_BY(mu_) = 0;                                     // by the last save
  absl::flat_hash_map<int64_t, PendingDeliveries> pending_ GUARDED_BY(mu_);  // by number
  int64_t gave_below_ GUARDED_BY(mu_) = 0;
};

}  // namespace penstock
