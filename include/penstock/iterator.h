// SPDX-License-Identifier: Apache-2.0
// Reading a dataset, one element after the other, with a position that can be
// saved.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/element.h"

namespace penstock {

struct IteratorOptions {
  // Seeds that the dataset leaves open, and its first epoch; not given: random, and each iterator
  // over a Dataset is the next epoch (ShuffleOptions). Both are kept in the state.
  std::optional<uint64_t> seed;
};

// A trainer's checkpoint of its reading: bytes to be stored beside the model.
struct State {
  std::string bytes;
};

// What a node of a dataset did since the iterator was made, in all its threads.
struct NodeStats {
  std::string node;         // "Map#3", as in Dataset::Explain() and in errors
  int64_t elements = 0;     // given out; errors in an element's place count
  int64_t bytes = 0;        // of their blocks; 0 for rows written into a batch
  absl::Duration busy;      // at work in this node's own code, an estimate from samples
  absl::Duration waiting;   // readers stood still for its next element
  int64_t parallelism = 0;  // calls at a time; 0: the node makes none
  int64_t ahead = 0;        // elements it may hold ready or in work; 0: it reads none ahead
  friend bool operator==(const NodeStats&, const NodeStats&) = default;
};
struct IteratorStats {
  std::vector<NodeStats> nodes;  // inputs before their users
  friend bool operator==(const IteratorStats&, const IteratorStats&) = default;
};

// What an iterator is made of; dataplane/dataset implements it in process,
// dataplane/client behind Distribute.
class IteratorImpl {
 public:
  virtual ~IteratorImpl() = default;
  virtual absl::StatusOr<std::optional<Element>> Next(std::optional<int64_t> step,
                                                      absl::Time deadline) = 0;
  virtual absl::StatusOr<State> Save() = 0;
  virtual absl::Status Restore(const State& state) = 0;
  virtual absl::Status Commit(const State& state) = 0;
  virtual absl::Status Stop(absl::Duration bound) = 0;
  virtual IteratorStats Stats() const = 0;
};

// Next() and Restore() are for one thread at a time; Save(), Commit() and
// Stop() for any. Destroying an iterator stops it.
class Iterator {
 public:
  explicit Iterator(std::unique_ptr<IteratorImpl> impl) : impl_(std::move(impl)) {}

  // The next element, or nullopt at the end (and ever after). An error belongs
  // to the element at its place; reading may go on behind it, unless it says
  // otherwise (Cancelled after Stop(), FailedPrecondition when the session is
  // lost). DeadlineExceeded loses nothing.
  absl::StatusOr<std::optional<Element>> Next() { return Next(absl::InfiniteFuture()); }
  absl::StatusOr<std::optional<Element>> Next(absl::Time deadline) {
    return impl_->Next(std::nullopt, deadline);
  }
  // The same, and checks that this is the trainer's step `step`, counted from 0
  // (or from the restored state): OutOfRange with both numbers otherwise.
  absl::StatusOr<std::optional<Element>> Next(int64_t step) {
    return impl_->Next(step, absl::InfiniteFuture());
  }

  // The position behind the last element that Next() returned. Exact: an
  // iterator of an equal dataset that restores it goes on with the next one.
  absl::StatusOr<State> Save() { return impl_->Save(); }
  // Takes up a saved position. InvalidArgument if the state is of another
  // dataset (naming the first node that differs) or not a state at all.
  absl::Status Restore(const State& state) { return impl_->Restore(state); }
  // Declares a saved state durable: what it contains is never delivered again,
  // to anyone. Durable at the dispatcher when it returns OK. In process it only
  // checks: FailedPrecondition for a state that this iterator neither gave since
  // its last Restore() nor took up then.
  absl::Status Commit(const State& state) { return impl_->Commit(state); }

  // Ends reading; a Next() that waits returns Cancelled. Elements already
  // returned stay valid. Returns within `bound`, DeadlineExceeded if something
  // is still running then (it ends in the background).
  absl::Status Stop(absl::Duration bound = absl::Seconds(10)) { return impl_->Stop(bound); }

  // What each node of this process did so far: what stands behind Distribute if it is
  // there (`penstock trace` shows what workers do). Any thread, at any time.
  IteratorStats Stats() const { return impl_->Stats(); }

 private:
  std::unique_ptr<IteratorImpl> impl_;
};

// A range over absl::StatusOr<Element>. Ends at the end of data or behind an
// error that ends reading.
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
  void Advance();  // dataplane/dataset/iterator.cc

  absl::StatusOr<Iterator> iterator_;
  std::optional<absl::StatusOr<Element>> current_;
  bool over_ = false;
};

}  // namespace penstock
