// SPDX-License-Identifier: Apache-2.0
// The input of a node that reads ahead of what it gives out: remembers where
// the input stood now and then, so that a position behind any element not yet
// released can be saved as "from there, pass over so many".
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
#include "dataplane/dataset/function.h"
#include "dataplane/dataset/node_iterator.h"
#include "dataplane/dataset/pending_deliveries.h"
#include "dataplane/dataset/state_bytes.h"
#include "dataplane/memory/catch_exhausted.h"

namespace penstock {

// Whether `status` ends reading rather than standing at an element's place.
inline bool EndsReading(const absl::Status& status) {
  return absl::IsCancelled(status) || IsExhausted(status);
}

// Elements between two remembered positions: fewer where each stands for many others or for
// much work, more where passing over it again costs little.
inline constexpr int64_t kRememberOften = 16;
inline constexpr int64_t kRemember = 64;
inline constexpr int64_t kRememberSeldom = 1024;

// Elements are counted from 0 in the input's order; an error at the place of an
// element counts as one. All but SaveBehind(), Release() and Gave…() are for one thread
// at a time.
class PositionedInput {
 public:
  // Whether the node has elements that it read and will give out in a later Next() than the one
  // that read them. It then says when it gives them (Gave…()).
  enum class Holds : bool { kNothing, kElements };

  // Remembers a position each `every` elements: what is read again after a
  // restore is shorter than that plus what was not released.
  PositionedInput(std::unique_ptr<NodeIterator> input, int64_t every, Holds holds = Holds::kNothing)
      : input_(std::move(input)), every_(every), holds_(holds) {}

  absl::StatusOr<std::optional<Element>> Next();
  absl::StatusOr<bool> NextInto(ResultSink& sink);
  absl::StatusOr<bool> NextViews(ElementViews& views);
  absl::StatusOr<int64_t> Skip(int64_t count);

  // Passes over elements up to number `n`, for restoring: DataLoss if that lies
  // behind, or if there are not so many any more. Keeps positions that fall due.
  absl::Status PassTo(int64_t n);

  // Keeps the present position if one is due, as the first always is. Next…()
  // and Skip() do it by themselves.
  void Remember();

  int64_t pulled() const { return pulled_; }  // elements passed so far
  // Promises that no position below `n` is saved from now on. Any thread.
  void Release(int64_t n);

  // What the node gives now is made of element `number`, of all below `n`, or is the end; to be
  // said on the thread that gives it. An element counts with the first that it is part of.
  void Gave(int64_t number);
  void GaveBelow(int64_t n);
  void GaveEnd() { GaveBelow(std::numeric_limits<int64_t>::max()); }

  // The position behind the first `n` elements. REQUIRES: released ≤ n ≤ pulled(). From a later
  // state of the input, or the same, as those before it were written.
  absl::Status Save(StateWriter& writer, int64_t n);
  // The same while another thread may be in Next(): from what is remembered alone.
  absl::Status SaveBehind(StateWriter& writer, int64_t n);
  // Takes up a saved position; pulled() is its `n` then. REQUIRES: freshly built.
  absl::Status Restore(StateReader& reader);

 private:
  struct Remembered {
    int64_t at;                         // elements passed
    absl::StatusOr<StateWriter> state;  // the input's; the error if it has none to give
    std::vector<StateWriter::WhenPartOf> attached = {};  // to it
  };
  // Runs `read`, which reads of the input, and keeps what is pending of that.
  template <class Read>
  auto Reading(Read read);
  Remembered Here(uint64_t save_number = 0) const;
  // Keeps the present position, unless it is kept already.
  void RememberHere();
  // In place of one that is kept of the same element.
  void Keep(Remembered here);
  static absl::Status Write(StateWriter& writer, int64_t n, const Remembered& from);

  std::unique_ptr<NodeIterator> input_;
  const int64_t every_;
  const Holds holds_;
  int64_t pulled_ = 0;
  int64_t remember_at_ = 0;  // value of pulled_ at which the next position is kept
  bool exact_ = true;        // the input stands behind element pulled_ - 1, and nowhere else

  Mutex mu_;
  std::deque<Remembered> remembered_ GUARDED_BY(mu_);                        // ascending
  absl::flat_hash_map<int64_t, PendingDeliveries> pending_ GUARDED_BY(mu_);  // by number
  int64_t gave_below_ GUARDED_BY(mu_) = 0;
};

}  // namespace penstock
