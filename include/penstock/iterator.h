// SPDX-License-Identifier: Apache-2.0
// Reads a dataset, one element after another, from a position that can be saved.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/element.h"

#pragma GCC visibility push(default)
namespace penstock {

struct IteratorOptions {
  // The seed for all nodes for which the dataset gives none; if it is given, the first epoch is 0.
  // Not given: random seeds, and each iterator over a Dataset is the next epoch (ShuffleOptions). A
  // state contains the seeds and the epoch.
  std::optional<uint64_t> seed;
};

// A trainer's checkpoint of its reading: bytes to store with the model.
struct State {
  std::string bytes;
};

// Counts of one node of a dataset since the iterator was made, over all its threads.
struct NodeStats {
  std::string node;         // "Map#3", as in Dataset::Explain() and in errors
  int64_t elements = 0;     // produced, including errors in place of elements
  int64_t bytes = 0;        // of the elements' blocks; 0 for rows written into a batch
  absl::Duration busy;      // spent in this node's own code, an estimate from samples
  absl::Duration waiting;   // spent by readers waiting for its next element
  int64_t parallelism = 0;  // calls at a time; 0: the node makes none
  int64_t ahead = 0;        // elements it may hold, ready or in progress; 0: it reads none ahead
  friend bool operator==(const NodeStats&, const NodeStats&) = default;
};
struct IteratorStats {
  std::vector<NodeStats> nodes;  // inputs before their users
  friend bool operator==(const IteratorStats&, const IteratorStats&) = default;
};

// The implementation of an Iterator, in dataplane/dataset.
class IteratorImpl {
 public:
  virtual ~IteratorImpl() = default;
  virtual absl::StatusOr<std::optional<Element>> Next(absl::Time deadline) = 0;
  virtual absl::Status CheckStep(int64_t step) const = 0;
  virtual absl::StatusOr<State> Save() = 0;
  virtual absl::Status Restore(const State& state) = 0;
  virtual absl::Status Commit(const State& state) = 0;
  virtual absl::Status Stop(absl::Duration bound) = 0;
  virtual IteratorStats Stats() const = 0;
};

// Reads a dataset. One thread at a time may call Next() and Restore(); any thread may call Save(),
// Commit() and Stop(). The destructor stops the iterator.
class Iterator {
 public:
  explicit Iterator(std::unique_ptr<IteratorImpl> impl) : impl_(std::move(impl)) {}

  // Returns the next element, or nullopt at the end and ever after. An error takes the place of one
  // element; reading may continue after it, unless it is Cancelled (after Stop()) or
  // FailedPrecondition (the session is lost). DeadlineExceeded loses nothing.
  absl::StatusOr<std::optional<Element>> Next() { return Next(absl::InfiniteFuture()); }
  absl::StatusOr<std::optional<Element>> Next(absl::Time deadline) { return impl_->Next(deadline); }
  // Checks that the next element belongs to the trainer's step `step`, counted from 0 or from the
  // restored state. If it does not, returns OutOfRange with both numbers.
  absl::Status CheckStep(int64_t step) const { return impl_->CheckStep(step); }
  [[deprecated("CheckStep")]] absl::StatusOr<std::optional<Element>> Next(int64_t step) {
    if (absl::Status next = CheckStep(step); !next.ok()) return next;
    return Next();
  }

  // Returns the position after the last element that Next() returned. The position is exact: an
  // iterator of an equal dataset that restores it continues with the next element.
  absl::StatusOr<State> Save() { return impl_->Save(); }
  // Moves to a saved position. InvalidArgument if the state is not valid, or if it belongs to a
  // different dataset; in that case the message names the first node that differs.
  absl::Status Restore(const State& state) { return impl_->Restore(state); }
  // Declares a saved state durable: the elements that it contains are never delivered again, to any
  // reader. When this returns OK, the commit is durable at the dispatcher. An iterator that reads
  // in process merely checks the state: FailedPrecondition unless this iterator restored it in its
  // last Restore(), or has saved it since.
  absl::Status Commit(const State& state) { return impl_->Commit(state); }

  // Ends reading; a waiting Next() returns Cancelled. Elements already returned stay valid. Returns
  // within `bound`. DeadlineExceeded if work is still running then; this work ends in the
  // background.
  absl::Status Stop(absl::Duration bound = absl::Seconds(10)) { return impl_->Stop(bound); }

  // Returns the work of each node in this process so far. Nodes before a Distribute run in the
  // workers: `penstock trace` shows them. Any thread, at any time.
  IteratorStats Stats() const { return impl_->Stats(); }

 private:
  std::unique_ptr<IteratorImpl> impl_;
};

// A range over absl::StatusOr<Element>. Ends at the end of the data, or after an error that ends
// reading.
class ElementRange {
 public:
  explicit ElementRange(absl::StatusOr<Iterator> iterator) : iterator_(std::move(iterator)) {}

  class Cursor {
   public:
    explicit Cursor(ElementRange* range) : range_(range) { ++*this; }
    absl::StatusOr<Element>& operator*() { return *range_->current_; }
    Cursor& operator++() {
      range_->Advance();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !range_->current_.has_value(); }

   private:
    ElementRange* range_;
  };
  Cursor begin() { return Cursor(this); }
  std::default_sentinel_t end() { return std::default_sentinel; }

 private:
  friend class Cursor;
  void Advance();  // dataplane/dataset/engine/iterator.cc

  absl::StatusOr<Iterator> iterator_;
  std::optional<absl::StatusOr<Element>> current_;
  bool over_ = false;
};

}  // namespace penstock
#pragma GCC visibility pop
